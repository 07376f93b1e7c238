/* SPDX-License-Identifier: Apache-2.0 */
/* Workload profiles: requested, put back, kept, left to others; journalled beside what older versions know.
 */
#include "knob/repair.h"
#include "knob_support.h"

#include "knob/journal.h"

enum { LIMITED = 1, FAST = 2, KINDS = 3 };

static struct knob_machine machine;
static const char *settings = "gpus=2,model=b200";

static struct workload_set set_of(const char *text)
{
    struct workload_set set = {{0}};

    assert_true(workload_parse(text, &set));
    return set;
}

/* The requested profiles of a GPU, by name. */
static const char *requested(unsigned gpu)
{
    static char text[WORKLOAD_TEXT_MAX];
    struct workload_set set = emulator_requested_workloads(machine.emulator, gpu);

    return workload_text(&set, text);
}

/* Another program's request. */
static void request(unsigned gpu, const char *text)
{
    struct workload_set set = set_of(text);

    assert_int_equal(emulator_request_workloads(machine.emulator, gpu, &set, NULL), 0);
}

static int set_both_gpus(struct knob *knob, const char *first, const char *second,
                         struct fly_error *out_error)
{
    struct workload_set sets[] = {set_of(first != NULL ? first : "none"),
                                  set_of(second != NULL ? second : "none")};
    const struct workload_set *chosen[] = {first != NULL ? &sets[0] : NULL, second != NULL ? &sets[1] : NULL};

    return knob_set_workloads(knob, chosen, out_error);
}

static bool becomes(unsigned gpu, const char *text)
{
    struct mono_time end = mono_after_s(mono_now(), knob_patience_s());

    while (strcmp(requested(gpu), text) != 0) {
        if (mono_elapsed_s(mono_now(), end) <= 0)
            return false;
        usleep(2000);
    }
    return true;
}

static bool has_file(const char *suffix)
{
    char path[KNOB_PATH_MAX + DEVICE_TEXT_MAX + 32];

    snprintf(path, sizeof path, "%s/%s%s", machine.locks, machine.devices[0]->info.uuid, suffix);
    return access(path, F_OK) == 0;
}

static void test_set_and_close(void **state)
{
    struct knob_report reports[2];
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, settings, NULL);
    request(1, "HPC");
    knob = knob_machine_open(&machine);
    assert_int_equal(set_both_gpus(knob, "MAX_Q", NULL, NULL), 0);
    assert_string_equal(requested(0), "MAX_Q");
    assert_string_equal(requested(1), "HPC");
    assert_int_equal(knob_report(knob, 0)->state, KNOB_TURNED);
    assert_int_equal(knob_report(knob, 1)->state, KNOB_UNTURNED);
    assert_true(has_file(".turned2"));
    assert_false(has_file(".turned"));
    assert_int_equal(set_both_gpus(knob, "MAX_Q,LLM_TRAINING", "none", NULL), 0);
    assert_string_equal(requested(0), "MAX_Q,LLM_TRAINING");
    assert_string_equal(requested(1), "none");
    assert_int_equal(knob_check(knob, NULL), 0);
    assert_int_equal(set_both_gpus(knob, "none", NULL, NULL), 0); /* as it was */
    assert_false(has_file(".turned2"));
    assert_int_equal(knob_report(knob, 0)->state, KNOB_UNTURNED);
    assert_int_equal(set_both_gpus(knob, "20", "3", NULL), 0);
    knob_close(knob, reports);
    assert_string_equal(requested(0), "none");
    assert_string_equal(requested(1), "HPC");
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(reports[i].state, KNOB_UNTURNED);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* Limits and profiles have files of their own, and each goes back by itself. */
static void test_with_limit(void **state)
{
    int64_t limits[] = {700000, 700000}, back[] = {1000000, 1000000};
    struct workload_set set = set_of("MAX_Q"), wrong = set_of("100");
    const struct workload_set *sets[] = {&set, &set}, *second_wrong[] = {&set, &wrong};
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, settings, NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_several(knob, limits, second_wrong, NULL, &error), FLY_EUSAGE);
    check_contains(error.text, "GPU 1 does not offer the workload power profile 100; choose of MAX_P,MAX_Q");
    check_double(emulator_limit_w(machine.emulator, 0), 1000.0);
    assert_int_equal(knob_set_several(knob, limits, sets, NULL, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 1), 700.0);
    assert_string_equal(requested(1), "MAX_Q");
    assert_true(has_file(".turned") && has_file(".turned2"));
    assert_int_equal(knob_set(knob, back, NULL), 0);
    assert_true(!has_file(".turned") && has_file(".turned2"));
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    assert_int_equal(knob_restore(knob, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 1000.0);
    assert_string_equal(requested(0), "none");
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_close(knob, NULL);
    knob_machine_stop(&machine);
}

/* The second GPU, or the second knob, fails: nothing stands of the call. */
static void test_all_or_none(void **state)
{
    static const char *const scripts[] = {
        "gpu 1 call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return UNKNOWN\n",
        "gpu 1 call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 no-permission\n",
        "gpu 1 call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return NOT_SUPPORTED\n"
        "gpu 1 call nvmlDeviceWorkloadPowerProfileSetRequestedProfiles return NOT_SUPPORTED\n",
    };
    static const int codes[] = {FLY_EREAD, FLY_EPERM, FLY_EUNSUPPORTED};
    int64_t limits[] = {700000, 700000};
    struct workload_set set = set_of("MAX_Q");
    const struct workload_set *sets[] = {&set, &set};

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct knob *knob;

        knob_machine_start(&machine, settings, scripts[i]);
        knob = knob_machine_open(&machine);
        assert_int_equal(knob_set_workloads(knob, sets, NULL), codes[i]);
        assert_string_equal(requested(0), "none");
        assert_int_equal(knob_set_several(knob, limits, sets, NULL, NULL), codes[i]);
        assert_string_equal(requested(0), "none");
        check_double(emulator_limit_w(machine.emulator, 0), 1000.0);
        check_double(emulator_limit_w(machine.emulator, 1), 1000.0);
        assert_int_equal(knob_machine_entries(&machine), 0);
        assert_int_equal(knob_set(knob, limits, NULL), 0);
        assert_int_equal(knob_set_workloads(knob, sets, NULL), codes[i]);
        check_double(emulator_limit_w(machine.emulator, 0), 700.0); /* an earlier call's stands */
        knob_close(knob, NULL);
        knob_machine_stop(&machine);
    }
}

static void test_older_board(void **state)
{
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(set_both_gpus(knob, "MAX_Q", "MAX_Q", &error), FLY_EUNSUPPORTED);
    check_contains(error.text, "since Blackwell");
    assert_int_equal(knob_reset(knob, NULL), 0);
    knob_close(knob, NULL);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

static void test_another_program_wins(void **state)
{
    struct knob_report reports[2];
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, settings, NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(set_both_gpus(knob, "MAX_Q", "MAX_Q", NULL), 0);
    request(0, "MAX_Q,HPC");
    assert_int_equal(knob_check(knob, &error), FLY_ESTATE);
    check_contains(error.text, "changed by another program to MAX_Q,HPC, after MAX_Q was requested here");
    assert_int_equal(set_both_gpus(knob, "COMPUTE", NULL, NULL), FLY_ESTATE);
    request(1, "TRAINING"); /* found only at the end */
    knob_close(knob, reports);
    assert_string_equal(requested(0), "MAX_Q,HPC");
    assert_string_equal(requested(1), "TRAINING");
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(reports[i].state, KNOB_FOREIGN);
        assert_true(reports[i].workloads_foreign);
    }
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* What is kept stays, is adopted by the next kept session, and goes back when that is asked for. */
static void test_kept(void **state)
{
    struct repair repairs[4];
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, settings, NULL);
    machine.options.kept = true;
    for (int i = 0; i < 2; i++) {
        knob = knob_machine_open(&machine);
        assert_int_equal(set_both_gpus(knob, i == 0 ? "MAX_Q" : "HPC", NULL, NULL), 0);
        knob_close(knob, NULL);
        assert_string_equal(requested(0), i == 0 ? "MAX_Q" : "HPC");
        assert_true(has_file(".kept2") && has_file(".kept")); /* and persistence mode */
    }
    machine.options.kept = false;
    assert_int_equal(knob_repair(&machine.options, &machine.list, false, repairs, 4, NULL), 0);
    assert_int_equal(knob_repair(&machine.options, &machine.list, true, repairs, 4, NULL), 2);
    check_contains(repairs[0].text, "persistence mode of GPU 0, which 'test' had turned on, is off again");
    check_contains(repairs[1].text, "left at HPC by 'test'");
    assert_int_equal(repairs[0].end, REPAIR_RESTORED);
    assert_int_equal(repairs[1].end, REPAIR_RESTORED);
    assert_string_equal(requested(0), "none");
    machine.options.kept = true;
    knob = knob_machine_open(&machine);
    assert_int_equal(set_both_gpus(knob, "MAX_Q", NULL, NULL), 0);
    knob_close(knob, NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_reset(knob, NULL), 0);
    knob_close(knob, NULL);
    assert_string_equal(requested(0), "none");
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* What a session left that died with its guard, as the journal has it. */
static void test_repair(void **state)
{
    static const struct {
        const char *earlier, *ours, *stands;
        enum repair_end end;
        const char *text, *left;
    } cases[] = {
        {"MAX_Q", "MAX_Q", "MAX_Q", REPAIR_RESTORED,
         "left at MAX_Q by 'dead', process 999999999, are HPC again", "HPC"},
        {"HPC", "MAX_Q", "HPC", REPAIR_UNNEEDED, "were HPC already", "HPC"},
        {"HPC", "MAX_Q", "MAX_Q", REPAIR_RESTORED, "are HPC again", "HPC"},
        {"HPC", "MAX_Q", "MAX_Q,HPC", REPAIR_RESTORED, "left at MAX_Q,HPC", "HPC"}, /* between two calls */
        {"HPC", "MAX_Q", "none", REPAIR_RESTORED, "are HPC again", "HPC"},
        {"HPC", "MAX_Q,HPC", "none", REPAIR_FOREIGN, "changed by another program to none", "none"},
        {"HPC", "MAX_Q", "COMPUTE", REPAIR_FOREIGN, "they are left so", "COMPUTE"},
        {"MAX_Q", "MAX_Q", "MAX_Q,COMPUTE", REPAIR_FOREIGN, "had set to MAX_Q", "MAX_Q,COMPUTE"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct repair repair = {.end = REPAIR_END_COUNT};
        struct journal_entry entry;

        knob_machine_start(&machine, settings, NULL);
        request(0, cases[i].stands);
        journal_begin(machine.devices[0]->info.uuid, "dead", &entry);
        entry.pid = 999999999;
        entry.turns[entry.turn_count++] = (struct turn){.quantity = QUANTITY_WORKLOADS,
                                                        .previous.workloads = set_of("HPC"),
                                                        .earlier.workloads = set_of(cases[i].earlier),
                                                        .ours.workloads = set_of(cases[i].ours)};
        assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED_2, &entry, NULL), 0);
        assert_true(knob_repair_is_due(&machine.options));
        assert_int_equal(knob_repair(&machine.options, &machine.list, false, &repair, 1, NULL), 1);
        if (repair.end != cases[i].end || strstr(repair.text, cases[i].text) == NULL)
            fail_msg("case %zu: end %d, '%s'; expected %d, '%s'", i, repair.end, repair.text, cases[i].end,
                     cases[i].text);
        assert_string_equal(requested(0), cases[i].left);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

/* The files of one session: the first as the first versions read it, the second of the other kinds alone. */
static void test_files(void **state)
{
    struct workload_set all = {{0}};
    struct journal_entry entry, again;
    char path[JOURNAL_PATH_MAX], text[JOURNAL_TEXT_MAX];
    struct fly_error error;
    struct knob *knob;
    FILE *file;

    (void)state;
    knob_machine_start(&machine, settings, NULL);
    for (unsigned id = 0; id < WORKLOADS_MAX; id++)
        workload_add(&all, id);
    journal_begin(machine.devices[0]->info.uuid, "test", &entry);
    entry.turns[entry.turn_count++] = (struct turn){
        QUANTITY_POWER_LIMIT, {.number = 1000000}, {.number = 900000}, {.number = 900000}, WAY_DRIVER};
    entry.turns[entry.turn_count++] = (struct turn){
        .quantity = QUANTITY_WORKLOADS, .previous.workloads = all, .ours.workloads = set_of("0,254")};
    journal_format(&entry, text);
    check_contains(text, "flyball-journal 2\n");
    assert_int_equal(journal_parse(text, &again, NULL), 0);
    assert_memory_equal(again.turns, entry.turns, sizeof entry.turns);
    for (int kind = JOURNAL_TURNED; kind <= JOURNAL_KEPT_2; kind++) {
        bool is_second;

        assert_int_equal(journal_write(machine.locks, (enum journal_kind)kind, &entry, NULL), 0);
        assert_int_equal(journal_read(machine.locks, (enum journal_kind)kind, entry.uuid, &again, NULL), 0);
        /* What is owed is in one file, which those versions do not know. */
        assert_int_equal(again.turn_count, kind == JOURNAL_OWED ? 2 : 1);
        is_second = kind == JOURNAL_TURNED_2 || kind == JOURNAL_KEPT_2;
        assert_int_equal(again.turns[0].quantity, is_second ? QUANTITY_WORKLOADS : QUANTITY_POWER_LIMIT);
        journal_format(&again, text);
        check_contains(text,
                       is_second || kind == JOURNAL_OWED ? "flyball-journal 2\n" : "flyball-journal 1\n");
    }
    /* One of a version to come is neither read nor moved, and the GPU's knobs are not turned. */
    snprintf(path, sizeof path, "%s/%s.turned2", machine.locks, entry.uuid);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "flyball-journal 4\nwho knows\n");
    fclose(file);
    assert_int_equal(journal_read(machine.locks, JOURNAL_TURNED_2, entry.uuid, &again, &error),
                     FLY_EUNSUPPORTED);
    check_contains(error.text, "of a newer version");
    entry.turn_count = 0;
    assert_int_equal(journal_write(machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
    knob_repair(&machine.options, &machine.list, false, NULL, 0, NULL);
    assert_true(has_file(".turned2"));
    assert_false(has_file(".turned2.corrupt"));
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(knob, 0, &error), FLY_ESTATE);
    check_contains(error.text, "of a newer version");
    knob_close(knob, NULL);
    knob_machine_stop(&machine);
}

/* Turns as fast as it goes, so that death comes at any moment of it. */
static void turn_on(struct knob *knob)
{
    static const char *const sets[] = {"MAX_Q", "MAX_Q,LLM_TRAINING", "COMPUTE,20", "13", "none"};

    for (unsigned i = 0;; i++) {
        if (set_both_gpus(knob, sets[i % COUNT(sets)], sets[(i + 1) % COUNT(sets)], NULL) < 0)
            break;
    }
    sleep(5);
}

/* Another process's session: turns, and says who its guard is. */
static int be_session(int mode)
{
    int64_t limits[] = {700000, 600000};
    struct knob *knob = NULL;
    struct fly_error error;

    knob_machine_paths(&machine);
    knob_machine_open_devices(&machine);
    if (knob_open(&machine.options, machine.devices, machine.list.count, &knob, &error) < 0 ||
        set_both_gpus(knob, "MAX_Q", "MAX_Q,HPC", &error) < 0 ||
        ((mode & LIMITED) != 0 && knob_set(knob, limits, &error) < 0)) {
        fprintf(stderr, "# %s\n", error.text);
        return 98;
    }
    dprintf(STDOUT_FILENO, "%d", (int)knob_guard_pid(knob));
    if ((mode & FAST) != 0)
        turn_on(knob);
    while (knob_check(knob, NULL) == 0)
        usleep(20000);
    sleep(5);
    return 0;
}

static struct role start_session(const char *mode, pid_t *out_guard)
{
    struct role role = role_start("session", mode);

    *out_guard = (pid_t)role_says(&role);
    assert_true(*out_guard > 0);
    return role;
}

static void check_back(void)
{
    struct mono_time end = mono_after_s(mono_now(), knob_patience_s());

    assert_true(becomes(0, "TRAINING"));
    assert_true(becomes(1, "none"));
    assert_true(limit_becomes(&machine, 0, 1000.0, knob_patience_s()));
    assert_true(limit_becomes(&machine, 1, 1000.0, knob_patience_s()));
    while (knob_machine_entries(&machine) > 0 && mono_elapsed_s(mono_now(), end) > 0)
        usleep(2000);
    assert_int_equal(knob_machine_entries(&machine), 0);
}

static void test_both_die(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        struct knob *knob;
        struct role role;
        pid_t guard;

        knob_machine_start(&machine, settings, NULL);
        request(0, "TRAINING");
        role = start_session("1", &guard);
        kill(role.pid, SIGSTOP);
        kill(guard, SIGKILL);
        kill(role.pid, SIGKILL);
        role_end(&role);
        usleep(20000);
        assert_string_equal(requested(0), "MAX_Q");
        assert_string_equal(requested(1), "MAX_Q,HPC");
        assert_int_equal(knob_machine_entries(&machine), 4);
        if (foreign != 0)
            request(0, "COMPUTE");
        knob = knob_machine_open(&machine);
        check_contains(knob_report(knob, 0)->repaired, "is 1000 W again; the workload profiles of GPU 0");
        check_contains(knob_report(knob, 1)->repaired, "left at MAX_Q,HPC by 'test'");
        knob_close(knob, NULL);
        if (foreign != 0) {
            assert_string_equal(requested(0), "COMPUTE");
            request(0, "TRAINING");
        }
        check_back();
        knob_machine_stop(&machine);
    }
}

/* At any moment of turning: the session, the guard, or both; with functions of NVML of either age. */
static void test_death_at_random(void **state)
{
    const char *wanted = getenv("FLYBALL_TEST_KNOB_ROUNDS");
    long rounds = wanted != NULL ? strtol(wanted, NULL, 10) : 30;
    uint64_t random = 11;

    (void)state;
    for (long i = 0; i < rounds; i++) {
        const char *script = i % 2 == 0 ? NULL
                                        : "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return "
                                          "FUNCTION_NOT_FOUND\n";
        int kind = (int)(i % KINDS);
        struct repair repairs[8];
        struct role role;
        pid_t guard;

        knob_machine_start(&machine, settings, script);
        request(0, "TRAINING");
        role = start_session(i / KINDS % 2 != 0 ? "3" : "2", &guard);
        usleep(test_below(&random, 20000));
        if (kind != 0)
            kill(guard, SIGKILL);
        if (kind != 1)
            kill(role.pid, test_below(&random, 2) != 0 ? SIGKILL : SIGTERM);
        if (kind == 2) {
            role_end(&role);
            assert_true(knob_repair(&machine.options, &machine.list, false, repairs, 8, NULL) >= 0);
        }
        check_back();
        if (kind == 1)
            kill(role.pid, SIGKILL);
        if (kind != 2)
            role_end(&role);
        knob_machine_stop(&machine);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_close),
        cmocka_unit_test(test_with_limit),
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_older_board),
        cmocka_unit_test(test_another_program_wins),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_repair),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_both_die),
        cmocka_unit_test(test_death_at_random),
    };

    if (argc > 2 && strcmp(argv[1], "session") == 0)
        return be_session((int)strtol(argv[2], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
