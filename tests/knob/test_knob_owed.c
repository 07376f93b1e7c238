/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be put back as it was: the nearest is set, the rest is owed, and nobody is kept from turning.
 */
#include "knob/repair.h"
#include "knob_support.h"

#include <sys/resource.h>

#include "knob/debt.h"
#include "knob/gpu_lock.h"

static const char narrow[] = "range 100 260\n", wide[] = "range 100 400\n", raised[] = "range 300 400\n";
static const char refuses[] = "call nvmlDeviceSetPowerManagementLimit return UNKNOWN\n"
                              "call nvmlDeviceSetPowerManagementLimit_v2 return UNKNOWN\n";
static const double patience_s = 60; /* for what must happen; the machine may be busy */

static struct knob_machine machine;

static const char *uuid(void)
{
    return machine.devices[0]->info.uuid;
}

static bool is_owed(int64_t limit_mw, int64_t meanwhile_mw)
{
    struct turn debt;

    return debt_find(machine.locks, uuid(), QUANTITY_POWER_LIMIT, &debt) &&
           debt.previous.number == limit_mw && debt.ours.number == meanwhile_mw &&
           debt.earlier.number == meanwhile_mw;
}

static bool is_nothing_owed(void)
{
    return !journal_exists(machine.locks, JOURNAL_OWED, uuid());
}

static void turn(struct knob *knob, int64_t limit_mw)
{
    struct fly_error error;

    if (knob_set(knob, &limit_mw, &error) < 0)
        fail_msg("%s", error.text);
}

/* A session that turns, and ends when the script has come true. */
static void leave_at(int64_t limit_mw, const char *script, struct knob_report *out_report)
{
    struct knob *knob = knob_machine_open(&machine);

    turn(knob, limit_mw);
    knob_machine_fault(&machine, script);
    knob_close(knob, out_report);
}

static struct repair repair_once(void)
{
    struct repair repairs[4] = {{.end = REPAIR_END_COUNT}};

    assert_true(knob_repair(&machine.options, &machine.list, false, repairs, 4, NULL) <= 1);
    return repairs[0];
}

/* The limit, once the debt is settled: by the guard or by this process. */
static void settle_at(double limit_w)
{
    (void)repair_once();
    assert_true(limit_becomes(&machine, 0, limit_w, patience_s));
    for (int i = 0; i < 30000 && !is_nothing_owed(); i++)
        usleep(2000);
    assert_true(is_nothing_owed());
}

static void test_range_shrinks(void **state)
{
    static const struct {
        const char *script;
        int64_t before_mw, turned_mw, meanwhile_mw;
    } cases[] = {
        {narrow, 400000, 150000, 260000}, {raised, 150000, 250000, 300000}, {narrow, 400000, 260000, 260000}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct knob_report report;
        struct repair repair;

        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        assert_int_equal(emulator_set_limit_w(machine.emulator, 0, (double)cases[i].before_mw * 1e-3, NULL),
                         0);
        leave_at(cases[i].turned_mw, cases[i].script, &report);
        check_double(emulator_limit_w(machine.emulator, 0), (double)cases[i].meanwhile_mw * 1e-3);
        assert_int_equal(report.state, KNOB_OWED);
        check_contains(report.error.text, "is owed what stood before 'test'");
        check_contains(report.error.text, "'flyball power set' or 'flyball power reset' ends it");
        assert_int_equal(knob_machine_entries(&machine), 0);
        assert_true(is_owed(cases[i].before_mw, cases[i].meanwhile_mw));
        repair = repair_once();
        assert_int_equal(repair.end, REPAIR_OWED);
        assert_true(is_owed(cases[i].before_mw, cases[i].meanwhile_mw));
        knob_machine_fault(&machine, wide);
        settle_at((double)cases[i].before_mw * 1e-3);
        knob_machine_stop(&machine);
    }
}

/* A board may move what was set, as its range does not reach there any more: that is no other program. */
static void test_board_moves_what_was_set(void **state)
{
    struct knob_report report;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    turn(knob, 300000);
    knob_machine_fault(&machine, narrow);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 260, NULL), 0);
    assert_int_equal(knob_check(knob, NULL), 0);
    turn(knob, 200000);
    knob_close(knob, &report);
    assert_int_equal(report.state, KNOB_OWED);
    assert_true(is_owed(400000, 260000));
    /* And further. */
    knob_machine_fault(&machine, "range 100 220\n");
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 220, NULL), 0);
    (void)repair_once();
    assert_true(is_owed(400000, 220000));
    knob_machine_fault(&machine, wide);
    settle_at(400);
    knob_machine_stop(&machine);
}

static struct knob *open_kept(void)
{
    struct knob_options kept = machine.options;
    struct knob *knob = NULL;

    kept.kept = true;
    assert_int_equal(knob_open(&kept, machine.devices, 1, &knob, NULL), 0);
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    return knob;
}

/* A user who sets a limit means it: the debt ends, and what stood before all that is what 'set' replaced. */
static void test_set_and_reset_end_it(void **state)
{
    static const int64_t set_mw[] = {250000, 260000};
    struct repair repairs[2];
    struct knob *knob;

    (void)state;
    for (size_t i = 0; i < COUNT(set_mw); i++) {
        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        leave_at(150000, narrow, NULL);
        knob = open_kept();
        turn(knob, set_mw[i]);
        knob_close(knob, NULL);
        assert_true(is_nothing_owed());
        knob_machine_fault(&machine, wide);
        check_double(emulator_limit_w(machine.emulator, 0), (double)set_mw[i] * 1e-3);
        assert_int_equal(knob_repair(&machine.options, &machine.list, true, repairs, 2, NULL), 1);
        check_double(emulator_limit_w(machine.emulator, 0), 400);
        /* The default is out of reach as well. */
        leave_at(150000, narrow, NULL);
        assert_true(is_owed(400000, 260000));
        knob = open_kept();
        assert_int_equal(knob_reset(knob, NULL), 0);
        knob_close(knob, NULL);
        assert_true(is_nothing_owed());
        check_double(emulator_limit_w(machine.emulator, 0), 260);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

/* A kept session that fails leaves the debt as it was. */
static void test_failed_set_keeps_it(void **state)
{
    int64_t limit_mw = 250000;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    leave_at(150000, narrow, NULL);
    knob_machine_fault(&machine, refuses);
    knob = open_kept();
    assert_true(knob_set(knob, &limit_mw, NULL) < 0);
    knob_close(knob, NULL);
    assert_int_equal(knob_machine_entries(&machine), 0);
    assert_true(is_owed(400000, 260000));
    knob_machine_fault(&machine, wide);
    settle_at(400);
    knob_machine_stop(&machine);
}

static void test_next_session_takes_it_over(void **state)
{
    struct knob_report report;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    leave_at(150000, narrow, NULL);
    leave_at(200000, narrow, &report);
    assert_int_equal(report.state, KNOB_OWED);
    check_double(emulator_limit_w(machine.emulator, 0), 260);
    assert_true(is_owed(400000, 260000));
    leave_at(200000, wide, &report);
    assert_int_equal(report.state, KNOB_UNTURNED);
    check_double(emulator_limit_w(machine.emulator, 0), 400);
    assert_true(is_nothing_owed());
    knob_machine_stop(&machine);
}

static void test_another_program_ends_it(void **state)
{
    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    leave_at(150000, narrow, NULL);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 222, NULL), 0);
    knob_machine_fault(&machine, wide);
    settle_at(222);
    knob_machine_stop(&machine);
}

/* The driver rounds, and what it reports is not what stood before. */
static void test_driver_takes_another_value(void **state)
{
    struct knob_report report;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 333, NULL), 0);
    leave_at(150000, "step 50\n", &report);
    assert_int_equal(report.state, KNOB_OWED);
    check_double(emulator_limit_w(machine.emulator, 0), 300);
    assert_true(is_owed(333000, 300000));
    knob_machine_fault(&machine, "step 1\n");
    settle_at(333);
    knob_machine_stop(&machine);
}

/* What a driver refuses is owed as well, and keeps nobody from turning. */
static void test_driver_refuses(void **state)
{
    struct knob_report report;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    leave_at(150000, refuses, &report);
    assert_int_equal(report.state, KNOB_STUCK);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    assert_true(is_owed(400000, 150000));
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_fault(&machine, wide);
    turn(knob, 200000);
    assert_true(is_nothing_owed());
    knob_close(knob, &report);
    assert_int_equal(report.state, KNOB_UNTURNED);
    check_double(emulator_limit_w(machine.emulator, 0), 400);
    knob_machine_stop(&machine);
}

/* A clock cannot be freed: it is still this house's lock, and no stranger's. */
static void test_clock_is_owed(void **state)
{
    static const char stays[] = "call nvmlDeviceResetGpuLockedClocks return UNKNOWN\n";
    int64_t ceiling_mhz = 900;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set_ceilings(knob, &ceiling_mhz, NULL), 0);
    knob_machine_fault(&machine, stays);
    knob_close(knob, NULL);
    emulator_set_load(machine.emulator, 0, 390);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    knob_machine_fault(&machine, "");
    ceiling_mhz = 1200;
    assert_int_equal(knob_set_ceilings(knob, &ceiling_mhz, NULL), 0);
    knob_close(knob, NULL);
    assert_int_equal(emulator_ceiling_mhz(machine.emulator, 0), 0);
    (void)repair_once();
    assert_true(is_nothing_owed());
    knob_machine_stop(&machine);
}

/* A disk is full just then: the nearest is set, and the guard writes down what is owed when it can. */
static void test_disk_is_full(void **state)
{
    struct rlimit before, none;
    struct knob_report report;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    turn(knob, 150000);
    knob_machine_fault(&machine, narrow);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    knob_close(knob, &report);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 260);
    (void)repair_once();
    assert_true(is_owed(400000, 260000));
    knob_machine_fault(&machine, wide);
    settle_at(400);
    knob_machine_stop(&machine);
}

/* A file of debts that says nothing is moved aside, and keeps nobody from turning. */
static void test_damaged_file(void **state)
{
    char path[JOURNAL_PATH_MAX];
    struct knob *knob;
    FILE *file;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    snprintf(path, sizeof path, "%s/%s.owed", machine.locks, uuid());
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "flyball-journal 1\ngpu GPU-");
    fclose(file);
    knob = knob_machine_open(&machine);
    turn(knob, 200000);
    knob_close(knob, NULL);
    assert_true(is_nothing_owed());
    check_double(emulator_limit_w(machine.emulator, 0), 400);
    knob_machine_stop(&machine);
}

/* Another process's session, which turns and says who its guard is. */
static int be_session(void)
{
    int64_t limit_mw = 150000;
    struct knob *knob = NULL;

    knob_machine_paths(&machine);
    knob_machine_open_devices(&machine);
    if (knob_open(&machine.options, machine.devices, 1, &knob, NULL) < 0 ||
        knob_set(knob, &limit_mw, NULL) < 0)
        return 98;
    dprintf(STDOUT_FILENO, "%d", (int)knob_guard_pid(knob));
    pause();
    return 0;
}

static void kill_session(struct role *role, pid_t guard)
{
    if (guard > 0) {
        kill(role->pid, SIGSTOP);
        kill(guard, SIGKILL);
    }
    kill(role->pid, SIGKILL);
    role_end(role);
}

static bool is_free_to_turn(void)
{
    char holder[GPU_LOCK_HOLDER_MAX];

    return gpu_lock_holder(machine.locks, uuid(), holder, NULL) == 0;
}

static void wait_until_free(void)
{
    for (int i = 0; i < 30000 && !is_free_to_turn(); i++)
        usleep(2000);
    assert_true(is_free_to_turn());
}

/* The guard sets the nearest, lets the GPU go, and settles when it can. */
static void test_guard_owes_and_settles(void **state)
{
    struct role role;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    role = role_start("session", "");
    assert_true(role_says(&role) > 0);
    knob_machine_fault(&machine, narrow);
    kill_session(&role, 0);
    assert_true(limit_becomes(&machine, 0, 260, patience_s));
    wait_until_free();
    assert_true(is_owed(400000, 260000));
    knob_machine_fault(&machine, wide);
    assert_true(limit_becomes(&machine, 0, 400, patience_s));
    for (int i = 0; i < 30000 && !is_nothing_owed(); i++)
        usleep(2000);
    assert_true(is_nothing_owed());
    knob_machine_stop(&machine);
}

/* Nothing can be written when the session dies: the guard remembers, also when the range is wide again by
 * then. */
static void test_guard_remembers(void **state)
{
    struct rlimit none = {.rlim_max = RLIM_INFINITY}, before;
    struct role role;
    pid_t guard;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    role = role_start("session", "");
    guard = (pid_t)role_says(&role);
    assert_int_equal(prlimit(guard, RLIMIT_FSIZE, NULL, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(prlimit(guard, RLIMIT_FSIZE, &none, NULL), 0);
    knob_machine_fault(&machine, narrow);
    kill_session(&role, 0);
    assert_true(limit_becomes(&machine, 0, 260, patience_s));
    wait_until_free();
    assert_true(is_nothing_owed());
    assert_int_equal(knob_machine_entries(&machine), 1);
    knob_machine_fault(&machine, wide);
    assert_int_equal(prlimit(guard, RLIMIT_FSIZE, &before, NULL), 0);
    assert_true(limit_becomes(&machine, 0, 400, patience_s));
    for (int i = 0; i < 30000 && knob_machine_entries(&machine) > 0; i++)
        usleep(2000);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* A GPU that was lost comes back as its driver starts it: what was set is gone, and so is the debt. */
static void test_gpu_comes_back(void **state)
{
    struct role role;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    role = role_start("session", "");
    assert_true(role_says(&role) > 0);
    knob_machine_fault(&machine, "at 0s lost\n");
    kill_session(&role, 0);
    wait_until_free();
    assert_true(is_owed(400000, 150000));
    knob_machine_fault(&machine, "at 0s back\n");
    assert_true(limit_becomes(&machine, 0, 400, patience_s));
    for (int i = 0; i < 30000 && !is_nothing_owed(); i++)
        usleep(2000);
    assert_true(is_nothing_owed());
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* Session and guard are killed: whoever comes next puts back as far as the range allows, and turns. */
static void test_both_die(void **state)
{
    struct role role;
    struct knob *knob;
    pid_t guard;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    role = role_start("session", "");
    guard = (pid_t)role_says(&role);
    knob_machine_fault(&machine, narrow);
    kill_session(&role, guard);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 260);
    turn(knob, 200000);
    knob_machine_fault(&machine, wide);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 400);
    knob_machine_stop(&machine);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_shrinks),
        cmocka_unit_test(test_board_moves_what_was_set),
        cmocka_unit_test(test_set_and_reset_end_it),
        cmocka_unit_test(test_failed_set_keeps_it),
        cmocka_unit_test(test_next_session_takes_it_over),
        cmocka_unit_test(test_another_program_ends_it),
        cmocka_unit_test(test_driver_takes_another_value),
        cmocka_unit_test(test_driver_refuses),
        cmocka_unit_test(test_clock_is_owed),
        cmocka_unit_test(test_disk_is_full),
        cmocka_unit_test(test_damaged_file),
        cmocka_unit_test(test_guard_owes_and_settles),
        cmocka_unit_test(test_guard_remembers),
        cmocka_unit_test(test_gpu_comes_back),
        cmocka_unit_test(test_both_die),
    };

    if (argc > 1 && strcmp(argv[1], "session") == 0)
        return be_session();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
