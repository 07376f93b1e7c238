/* SPDX-License-Identifier: Apache-2.0 */
/* Ceilings on the clock: set, put back, and left alone where somebody else set clocks. */
#include "knob/repair.h"
#include "knob_support.h"

#include "knob/ceiling.h"
#include "knob/journal.h"

static struct knob_machine machine;

static unsigned ceiling(unsigned gpu)
{
    return emulator_ceiling_mhz(machine.emulator, gpu);
}

static void set_ceiling(unsigned gpu, unsigned ceiling_mhz)
{
    assert_int_equal(emulator_set_ceiling_mhz(machine.emulator, gpu, ceiling_mhz, NULL), 0);
}

static void test_set_and_close(void **state)
{
    int64_t ceilings[] = {1200, 0}, both[] = {900, 1005}, lift[] = {KNOB_NO_CEILING, KNOB_NO_CEILING};
    struct knob_report reports[2];
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_ceilings(knob, lift, NULL), 0); /* there is none of ours */
    assert_int_equal(knob_machine_entries(&machine), 0);
    assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
    assert_int_equal(ceiling(0), 1200);
    assert_int_equal(ceiling(1), 0);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_TURNED);
    assert_int_equal(knob_report(knob, 0)->ceiling_mhz, 1200);
    assert_int_equal(knob_report(knob, 1)->state, KNOB_UNTURNED);
    assert_int_equal(knob_machine_entries(&machine), 1);
    assert_int_equal(knob_set_ceilings(knob, both, NULL), 0);
    assert_int_equal(ceiling(0), 900);
    assert_int_equal(ceiling(1), 1005);
    assert_int_equal(knob_check(knob, NULL), 0);
    assert_int_equal(knob_set_ceilings(knob, lift, NULL), 0);
    assert_int_equal(ceiling(0), 0);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_UNTURNED);
    assert_int_equal(knob_report(knob, 0)->ceiling_mhz, 0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    assert_int_equal(knob_set_ceilings(knob, both, NULL), 0);
    knob_close(knob, reports);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(reports[i].state, KNOB_UNTURNED);
        assert_int_equal(ceiling(i), 0);
    }
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* Both knobs of a GPU at a time, and one of them back. */
static void test_with_limit(void **state)
{
    int64_t ceilings[] = {1200}, limits[] = {250000}, lift[] = {KNOB_NO_CEILING}, wrong[] = {5};
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    assert_int_equal(knob_set_ceilings(knob, wrong, NULL), FLY_EUSAGE);
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
    assert_int_equal(knob_set_ceilings(knob, lift, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_TURNED);
    assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
    assert_int_equal(knob_machine_entries(&machine), 1);
    assert_int_equal(knob_restore(knob, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_int_equal(ceiling(0), 0);
    knob_close(knob, NULL);
    knob_machine_stop(&machine);
}

static void test_all_or_none(void **state)
{
    static const char *const scripts[] = {
        "gpu 1 call nvmlDeviceSetGpuLockedClocks from 2 return UNKNOWN\n",
        "gpu 1 call nvmlDeviceSetGpuLockedClocks from 2 no-permission\n",
        "gpu 1 call nvmlDeviceSetGpuLockedClocks from 2 return NOT_SUPPORTED\n",
    };
    int64_t first[] = {1200, 1200}, second[] = {900, 900}, alone[] = {900, 0};

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct knob_report reports[2];
        struct knob *knob;

        knob_machine_start(&machine, "gpus=2,model=a100", scripts[i]);
        knob = knob_machine_open(&machine);
        assert_int_equal(knob_set_ceilings(knob, first, NULL), 0);
        assert_true(knob_set_ceilings(knob, second, NULL) < 0);
        assert_int_equal(ceiling(0), 1200);
        assert_int_equal(ceiling(1), 1200);
        assert_int_equal(knob_set_ceilings(knob, alone, NULL), 0);
        knob_close(knob, reports);
        for (unsigned gpu = 0; gpu < 2; gpu++) {
            assert_int_equal(ceiling(gpu), 0);
            assert_int_equal(reports[gpu].state, KNOB_UNTURNED);
        }
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

/* A driver that sets it and says that it failed: what may have been set is put back. */
static void test_first_fails(void **state)
{
    static const char *const codes[] = {"UNKNOWN", "TIMEOUT", "NO_PERMISSION", "NOT_SUPPORTED"};
    int64_t ceilings[] = {1200, 1200};

    (void)state;
    for (size_t i = 0; i < COUNT(codes); i++) {
        char script[96];
        struct knob_report reports[2];
        struct knob *knob;

        snprintf(script, sizeof script, "gpu 1 call nvmlDeviceSetGpuLockedClocks return %s\n", codes[i]);
        knob_machine_start(&machine, "gpus=2,model=a100", script);
        knob = knob_machine_open(&machine);
        assert_true(knob_set_ceilings(knob, ceilings, NULL) < 0);
        assert_int_equal(ceiling(0), 0);
        assert_int_equal(ceiling(1), 0);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_close(knob, reports);
        assert_int_equal(reports[1].state, KNOB_UNTURNED);
        knob_machine_stop(&machine);
    }
}

/* What cannot be lifted stays in the journal, and the next one lifts it. */
static void test_stuck(void **state)
{
    int64_t ceilings[] = {1200};
    struct knob_report report;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
    kill(knob_guard_pid(knob), SIGSTOP); /* so that it does not try too */
    knob_machine_fault(&machine, "call nvmlDeviceResetGpuLockedClocks return UNKNOWN\n");
    assert_int_equal(knob_restore(knob, NULL), FLY_EREAD);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_STUCK);
    assert_int_equal(ceiling(0), 1200);
    assert_int_equal(knob_machine_entries(&machine), 1);
    knob_machine_fault(&machine, "");
    kill(knob_guard_pid(knob), SIGCONT);
    knob_close(knob, &report);
    assert_int_equal(report.state, KNOB_UNTURNED);
    assert_int_equal(ceiling(0), 0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* Somebody's lock holds the GPU, and the driver says so. */
static void test_held_already(void **state)
{
    int64_t ceilings[] = {1200, 0}, limits[] = {250000, 0};
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    set_ceiling(0, 1005);
    emulator_set_load(machine.emulator, 0, 300.0);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_ceilings(knob, ceilings, &error), FLY_ESTATE);
    check_contains(error.text, "clock setting holds it");
    assert_int_equal(ceiling(0), 1005);
    assert_int_equal(knob_machine_entries(&machine), 0);
    assert_int_equal(knob_set(knob, limits, NULL), 0); /* its limit may be turned */
    knob_close(knob, NULL);
    assert_int_equal(ceiling(0), 1005);
    /* Without the driver's word nothing says so: then ours is set, and what goes back is none. */
    knob_machine_fault(&machine, "call nvmlDeviceGetCurrentClocksEventReasons return NOT_SUPPORTED\n");
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
    knob_close(knob, NULL);
    assert_int_equal(ceiling(0), 0);
    knob_machine_stop(&machine);
}

/* Under our ceiling another program lifts it, or sets its own: seen at the next look, or at the end. */
static void test_another_program_wins(void **state)
{
    static const unsigned theirs[] = {0, 1305, 900};
    int64_t ceilings[] = {1200, 1200}, other[] = {1005, 1005};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(theirs); i++) {
        unsigned set_mhz = theirs[i / 2];
        struct knob_report reports[2];
        struct fly_error error;
        struct knob *knob;

        knob_machine_start(&machine, "gpus=2,model=a100", NULL);
        emulator_set_load(machine.emulator, 0, 300.0);
        emulator_set_load(machine.emulator, 1, 300.0);
        knob = knob_machine_open(&machine);
        assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
        assert_int_equal(knob_check(knob, NULL), 0);
        set_ceiling(0, set_mhz);
        if (i % 2 != 0) {
            assert_int_equal(knob_check(knob, &error), FLY_ESTATE);
            check_contains(error.text, "another program");
            assert_int_equal(knob_check(knob, NULL), 0);
            assert_int_equal(knob_set_ceilings(knob, other, NULL), FLY_ESTATE);
            assert_int_equal(ceiling(1), 1200);
        }
        knob_close(knob, reports);
        assert_int_equal(reports[0].state, KNOB_FOREIGN);
        assert_true(reports[0].found_clock_mhz > 0);
        assert_int_equal(reports[0].found_mw, 0);
        assert_int_equal(reports[1].state, KNOB_UNTURNED);
        assert_int_equal(ceiling(0), set_mhz);
        assert_int_equal(ceiling(1), 0);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

/* What a GPU shows, and whether that speaks against a ceiling of 1200 MHz. */
static void test_may_stand(void **state)
{
    static const struct {
        unsigned theirs_mhz;
        double load_w;
        const char *script;
        bool may;
    } cases[] = {
        {1200, 300, "", true},
        {1200, 0, "", true},
        {0, 0, "", true}, /* without work the clock says nothing */
        {0, 300, "", false},
        {1215, 300, "", true}, /* a driver's rounding */
        {1305, 300, "", false},
        {900, 300, "", false},
        {900, 0, "", true},
        {900, 300, "call nvmlDeviceGetCurrentClocksEventReasons return NOT_SUPPORTED\n", true},
        {0, 300, "call nvmlDeviceGetClockInfo return UNKNOWN\n", true}, /* not known is no evidence */
        {0, 400, "call nvmlDeviceGetCurrentClocksEventReasons return NOT_SUPPORTED\n", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t clock_mhz = -1;
        bool may;

        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        set_ceiling(0, cases[i].theirs_mhz);
        emulator_set_load(machine.emulator, 0, cases[i].load_w);
        knob_machine_fault(&machine, cases[i].script);
        may = ceiling_may_stand(machine.devices[0], QUANTITY_CLOCK_CEILING, 1200, &clock_mhz);
        if (may != cases[i].may || (clock_mhz > 0) == may)
            fail_msg("case %zu: %d, with a clock of %lld MHz", i, may, (long long)clock_mhz);
        knob_machine_stop(&machine);
    }
}

/* The power limit holds the GPU below the ceiling: nobody has to have set clocks. */
static void test_capped_below(void **state)
{
    int64_t ceilings[] = {1200}, limits[] = {100000};
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    emulator_set_load(machine.emulator, 0, 400.0);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    assert_int_equal(knob_set_ceilings(knob, ceilings, NULL), 0);
    assert_int_equal(knob_check(knob, NULL), 0);
    knob_close(knob, NULL);
    assert_int_equal(ceiling(0), 0);
    knob_machine_stop(&machine);
}

static void test_kept_session(void **state)
{
    int64_t ceilings[] = {1200};
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    machine.options.kept = true;
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_ceilings(knob, ceilings, &error), FLY_EUSAGE);
    check_contains(error.text, "does not outlive");
    knob_close(knob, NULL);
    assert_int_equal(ceiling(0), 0);
    knob_machine_stop(&machine);
}

/* What a session left that died with its guard, as the journal has it. */
static void test_repair(void **state)
{
    static const struct {
        bool limited;
        int64_t earlier, ours;
        unsigned stands_mhz;
        double load_w;
        enum repair_end end;
        const char *text;
        unsigned left_mhz;
    } cases[] = {
        {false, 1200, 1200, 1200, 300, REPAIR_RESTORED, "ceiling of 1200 MHz on the clock of GPU 0", 0},
        {false, 1200, 1200, 1200, 0, REPAIR_RESTORED, "is lifted", 0},
        {false, 0, 1200, 0, 300, REPAIR_RESTORED, "is lifted", 0}, /* an intent that was not carried out */
        {false, 1200, 900, 900, 300, REPAIR_RESTORED, "is lifted", 0},
        {false, 1200, 0, 1200, 300, REPAIR_RESTORED, "1200 MHz", 0},
        {false, 1200, 1200, 1305, 300, REPAIR_FOREIGN, "as another program set it", 1305},
        {true, 1200, 1200, 1200, 300, REPAIR_RESTORED, "400 W again; the ceiling of 1200 MHz", 0},
        {true, 1200, 1200, 1305, 200, REPAIR_FOREIGN, "400 W again; the clock of GPU 0", 1305},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct repair repair = {.end = REPAIR_END_COUNT};
        struct journal_entry entry;

        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        set_ceiling(0, cases[i].stands_mhz);
        emulator_set_load(machine.emulator, 0, cases[i].load_w);
        journal_begin(machine.devices[0]->info.uuid, "dead", &entry);
        entry.pid = 999999999;
        if (cases[i].limited) {
            assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 350.0, NULL), 0);
            entry.turns[entry.turn_count++] = (struct turn){
                QUANTITY_POWER_LIMIT, {.number = 400000}, {.number = 350000}, {.number = 350000}, WAY_DRIVER};
        }
        entry.turns[entry.turn_count++] = (struct turn){QUANTITY_CLOCK_CEILING,
                                                        {.number = 0},
                                                        {.number = cases[i].earlier},
                                                        {.number = cases[i].ours},
                                                        WAY_DRIVER};
        assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
        assert_int_equal(knob_repair(&machine.options, &machine.list, false, &repair, 1, NULL), 1);
        if (repair.end != cases[i].end || strstr(repair.text, cases[i].text) == NULL)
            fail_msg("case %zu: end %d, '%s'; expected %d, '%s'", i, repair.end, repair.text, cases[i].end,
                     cases[i].text);
        assert_int_equal(repair.ceiling_mhz, cases[i].ours != 0 ? cases[i].ours : cases[i].earlier);
        assert_int_equal(repair.set_mw, cases[i].limited ? 350000 : 0);
        assert_int_equal(ceiling(0), cases[i].left_mhz);
        check_double(emulator_limit_w(machine.emulator, 0), 400.0);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

/* Floors and the memory's clock: put back at the close, and left to another program that set more. */
static void test_ranges(void **state)
{
    const struct clock_range wide = {900, 1200}, memory = {405, 1000}, none = {0, 0}, floor = {600, 0};
    const struct clock_range *gpu_range = &wide, *memory_range = &memory;
    unsigned memory_mhz;
    struct knob_report reports[1];
    struct emulator_locks now;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_clocks(knob, QUANTITY_CLOCK_CEILING, &gpu_range, NULL), 0);
    assert_int_equal(knob_set_clocks(knob, QUANTITY_MEMORY_CLOCK_CEILING, &memory_range, NULL), 0);
    now = emulator_locks(machine.emulator, 0);
    assert_int_equal(now.floor_mhz, 900);
    assert_int_equal(now.ceiling_mhz, 1200);
    assert_int_equal(now.memory_floor_mhz, 405);
    assert_int_equal(now.memory_ceiling_mhz, 1000);
    assert_int_equal(knob_machine_entries(&machine),
                     2); /* in the file of the first versions, and beside it */
    assert_int_equal(knob_report(knob, 0)->memory_ceiling_mhz, 1000);
    gpu_range = &floor;
    assert_int_equal(knob_set_clocks(knob, QUANTITY_CLOCK_CEILING, &gpu_range, NULL), 0);
    now = emulator_locks(machine.emulator, 0);
    assert_int_equal(now.floor_mhz, 600);
    assert_int_equal(now.ceiling_mhz, 1410);
    gpu_range = &none;
    assert_int_equal(knob_set_clocks(knob, QUANTITY_CLOCK_CEILING, &gpu_range, NULL), 0);
    assert_int_equal(ceiling(0), 0);
    assert_int_equal(knob_check(knob, NULL), 0);
    knob_close(knob, NULL);
    assert_int_equal(emulator_locks(machine.emulator, 0).memory_ceiling_mhz, 0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    /* Another program frees the memory's clock: what it set stays. */
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_clocks(knob, QUANTITY_MEMORY_CLOCK_CEILING, &memory_range, NULL), 0);
    emulator_lock_memory(machine.emulator, 0, 0, 1200);
    assert_int_equal(knob_check(knob, NULL), FLY_ESTATE);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_FOREIGN);
    check_contains(knob_report(knob, 0)->error.text, "the memory clock of GPU 0 is 1200 MHz");
    knob_close(knob, reports);
    memory_mhz = emulator_locks(machine.emulator, 0).memory_ceiling_mhz;
    assert_int_equal(memory_mhz, 1200);
    knob_machine_stop(&machine);
}

/* A ceiling on the memory's clock that a session left that died with its guard. */
static void test_repair_memory(void **state)
{
    struct repair repair = {.end = REPAIR_END_COUNT};
    struct journal_entry entry;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    emulator_lock_memory(machine.emulator, 0, 405, 1000);
    journal_begin(machine.devices[0]->info.uuid, "dead", &entry);
    entry.pid = 999999999;
    entry.turns[entry.turn_count++] = (struct turn){
        QUANTITY_MEMORY_CLOCK_CEILING, {.number = 0}, {.number = 1000}, {.number = 1000}, WAY_DRIVER};
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED_2, &entry, NULL), 0);
    assert_int_equal(knob_repair(&machine.options, &machine.list, false, &repair, 1, NULL), 1);
    assert_int_equal(repair.end, REPAIR_RESTORED);
    check_contains(repair.text, "the ceiling of 1000 MHz on the memory clock of GPU 0, left by 'dead'");
    assert_int_equal(emulator_locks(machine.emulator, 0).memory_ceiling_mhz, 0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_close),
        cmocka_unit_test(test_with_limit),
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_first_fails),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_held_already),
        cmocka_unit_test(test_another_program_wins),
        cmocka_unit_test(test_may_stand),
        cmocka_unit_test(test_capped_below),
        cmocka_unit_test(test_kept_session),
        cmocka_unit_test(test_repair),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_repair_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
