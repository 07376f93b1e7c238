/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions over emulated GPUs: what is set, what is refused, and that everything goes back. */
#include "knob/repair.h"
#include "knob_support.h"

static struct knob_machine machine;

static void check_refused(const char *part)
{
    struct knob *knob = knob_machine_open(&machine);
    struct fly_error error = {.code = 0};
    int64_t limits[KNOB_GPUS_MAX] = {200000};

    assert_true(knob_may_turn(knob, 0, &error) < 0);
    check_contains(error.text, part);
    error.text[0] = '\0';
    assert_true(knob_set(knob, limits, &error) < 0);
    check_contains(error.text, part);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_DENIED);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_int_equal(knob_machine_entries(&machine), 0);
}

static void test_set_and_close(void **state)
{
    struct knob_report reports[2];
    int64_t limits[] = {250000, 0};
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    assert_true(knob_guard_pid(knob) > 0);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    check_double(emulator_limit_w(machine.emulator, 1), 400.0);
    assert_int_equal(knob_machine_entries(&machine), 1);
    limits[1] = 300000;
    limits[0] = 200000;
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 200.0);
    assert_int_equal(knob_machine_entries(&machine), 2);
    assert_int_equal(knob_check(knob, NULL), 0);
    assert_int_equal(knob_report(knob, 0)->state, KNOB_TURNED);
    assert_int_equal(knob_report(knob, 0)->set_mw, 200000);
    knob_close(knob, reports);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(reports[i].state, KNOB_UNTURNED);
        assert_int_equal(reports[i].previous_mw, 400000);
        check_double(emulator_limit_w(machine.emulator, i), 400.0);
    }
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

/* What goes back is what stood before, be it not the default. */
static void test_restore_and_go_on(void **state)
{
    int64_t limits[] = {250000};
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 333.0, NULL), 0);
    knob = knob_machine_open(&machine);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(knob_set(knob, limits, NULL), 0);
        check_double(emulator_limit_w(machine.emulator, 0), 250.0);
        assert_int_equal(knob_restore(knob, NULL), 0);
        check_double(emulator_limit_w(machine.emulator, 0), 333.0);
        assert_int_equal(knob_machine_entries(&machine), 0);
    }
    assert_int_equal(knob_reset(knob, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 333.0);
    knob_machine_stop(&machine);
}

static void test_range(void **state)
{
    static const int64_t outside[] = {99999, 400001, 1, -5, INT64_MAX};
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    knob = knob_machine_open(&machine);
    for (size_t i = 0; i < COUNT(outside); i++) {
        int64_t limits[] = {250000, outside[i]};

        assert_int_equal(knob_set(knob, limits, &error), FLY_EUSAGE);
        check_contains(error.text, "from 100 to 400 W");
        check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    }
    knob_close(knob, NULL);
    knob_machine_stop(&machine);
}

/* The third GPU's driver fails: those that were set go back, to where this call found them. */
static void test_all_or_none(void **state)
{
    static const char script[] = "gpu 2 call nvmlDeviceSetPowerManagementLimit from 2 return UNKNOWN\n";
    int64_t first[] = {300000, 0, 300000, 300000}, second[] = {200000, 200000, 200000, 200000};
    struct fly_error error;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=4,model=a100", script);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, first, &error), 0);
    assert_int_equal(knob_set(knob, second, &error), FLY_EREAD);
    check_contains(error.text, "GPU 2");
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);
    check_double(emulator_limit_w(machine.emulator, 1), 400.0);
    check_double(emulator_limit_w(machine.emulator, 2), 300.0);
    check_double(emulator_limit_w(machine.emulator, 3), 300.0);
    assert_int_equal(knob_machine_entries(&machine), 3);
    emulator_set_faults(machine.emulator, &(struct fault_list){0});
    knob_close(knob, NULL);
    for (unsigned i = 0; i < 4; i++)
        check_double(emulator_limit_w(machine.emulator, i), 400.0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

static void test_another_program_wins(void **state)
{
    int64_t limits[] = {250000, 250000};
    struct knob_report reports[2];
    struct fly_error error;
    struct knob *knob;

    (void)state;
    for (int look = 0; look < 2; look++) {
        knob_machine_start(&machine, "gpus=2,model=a100", NULL);
        knob = knob_machine_open(&machine);
        assert_int_equal(knob_set(knob, limits, NULL), 0);
        assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 275.0, NULL), 0);
        if (look) {
            assert_int_equal(knob_check(knob, &error), FLY_ESTATE);
            check_contains(error.text, "275 W");
            assert_int_equal(knob_check(knob, NULL), 0);
            assert_int_equal(knob_set(knob, limits, &error), FLY_ESTATE);
            check_contains(error.text, "another program");
            check_double(emulator_limit_w(machine.emulator, 0), 275.0);
        }
        knob_close(knob, reports);
        assert_int_equal(reports[0].state, KNOB_FOREIGN);
        assert_int_equal(reports[0].found_mw, 275000);
        assert_int_equal(reports[1].state, KNOB_UNTURNED);
        check_double(emulator_limit_w(machine.emulator, 0), 275.0);
        check_double(emulator_limit_w(machine.emulator, 1), 400.0);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

static void test_lock(void **state)
{
    char us[32];
    struct fly_error error;
    struct knob *first, *second;
    int64_t limits[] = {250000};

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    machine.options.program = "flyball first";
    first = knob_machine_open(&machine);
    second = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(second, 0, &error), FLY_ESTATE);
    snprintf(us, sizeof us, "process %d", (int)getpid());
    check_contains(error.text, "'flyball first'");
    check_contains(error.text, us);
    assert_int_equal(knob_set(second, limits, NULL), FLY_ESTATE);
    assert_int_equal(knob_guard_pid(second), 0);
    knob_close(second, NULL);
    assert_int_equal(knob_set(first, limits, NULL), 0);
    knob_close(first, NULL);
    second = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(second, 0, NULL), 0);
    knob_close(second, NULL);
    knob_machine_stop(&machine);
}

static void test_operators_lock(void **state)
{
    FILE *file;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    file = fopen(machine.readonly, "w");
    assert_non_null(file);
    fclose(file);
    check_refused(machine.readonly);
    knob_machine_stop(&machine);
}

static void test_mps(void **state)
{
    char control[KNOB_PATH_MAX + 16];
    FILE *file;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    snprintf(control, sizeof control, "%s/control", machine.directory);
    file = fopen(control, "w");
    assert_non_null(file);
    fclose(file);
    check_refused("MPS shares");
    knob_machine_stop(&machine);
}

static void test_mig(void **state)
{
    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100,mig=2", NULL);
    check_refused("MIG shares");
    knob_machine_stop(&machine);
}

/* Works on GPU 0 as a process that is no relative of the test's; its pid. */
static pid_t start_stranger(void)
{
    struct emulator_load load = {.wanted_w = 300.0, .utilization = 1.0};
    struct emulator *emulator;
    int ends[2], slot;
    pid_t child, stranger = 0;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        if (fork() != 0)
            _exit(0);
        stranger = getpid();
        alarm(20);
        if (emulator_open(NULL, &emulator, NULL) == 0 &&
            emulator_work_begin(emulator, 0, &load, &slot, NULL) == 0 &&
            write(ends[1], &stranger, sizeof stranger) == (ssize_t)sizeof stranger)
            pause();
        _exit(1);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[1]);
    assert_int_equal(read(ends[0], &stranger, sizeof stranger), sizeof stranger);
    close(ends[0]);
    return stranger;
}

/* Another's training: before a session, and while one is open; allowed only where somebody answers for it. */
static void test_stranger(void **state)
{
    int64_t limits[] = {250000}, other[] = {200000};
    struct fly_error error;
    struct knob *knob = NULL;
    pid_t stranger;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    stranger = start_stranger();
    check_refused("'test_knob', process ");
    machine.options.allowed = &stranger;
    machine.options.allowed_count = 1;
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    knob_close(knob, NULL);
    machine.options.allowed_count = 0;
    kill(stranger, SIGKILL);
    knob = knob_machine_open(&machine);
    for (int i = 0; i < 60000 && knob_may_turn(knob, 0, NULL) < 0; i++) {
        knob_close(knob, NULL);
        usleep(1000);
        knob = knob_machine_open(&machine);
    }
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    stranger = start_stranger();
    assert_int_equal(knob_set(knob, other, &error), FLY_ESTATE);
    check_contains(error.text, "computes on it");
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    kill(stranger, SIGKILL);
    knob_machine_stop(&machine);
}

/* A process that nobody answers for; one that comes while a session is open; one of our own. */
static void test_foreign_process(void **state)
{
    struct emulator_load load = {.wanted_w = 300.0, .utilization = 1.0};
    int64_t limits[] = {250000}, other[] = {200000};
    struct fly_error error;
    struct knob *knob;
    int slot;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    assert_int_equal(emulator_work_begin(machine.emulator, 0, &load, &slot, NULL), 0);
    assert_int_equal(knob_set(knob, other, NULL), 0); /* it is this process */
    /* As if another process did it: one that is no relative of ours. */
    machine.emulator->state->gpus[0].slots[slot].owner.pid = 1;
    assert_int_equal(knob_set(knob, limits, &error), FLY_ESTATE);
    check_contains(error.text, "process 1, computes on it");
    check_double(emulator_limit_w(machine.emulator, 0), 200.0);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    check_refused("computes on it");
    machine.options.allowed = &(pid_t){1};
    machine.options.allowed_count = 1;
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, &error), FLY_ESTATE); /* the first process answers for nobody */
    knob_close(knob, NULL);
    emulator_work_end(machine.emulator, 0, slot);
    knob_machine_stop(&machine);
}

/* Who uses the GPU cannot be asked: then nobody turns it. */
static void test_unknown_processes(void **state)
{
    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100",
                       "call nvmlDeviceGetComputeRunningProcesses_v3 return UNKNOWN\n");
    check_refused("cannot be found out");
    knob_machine_stop(&machine);
}

static void test_permission(void **state)
{
    int64_t limits[] = {250000};
    struct fly_error error = {.code = 0};
    struct knob *knob;

    (void)state;
    if (geteuid() != 0)
        skip();
    knob_machine_start(&machine, "gpus=1,model=a100,shared", NULL);
    knob_machine_make_reachable(&machine);
    assert_int_equal(seteuid(65534), 0);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, &error), FLY_EPERM);
    check_contains(error.text, "only root may");
    check_contains(error.text, "sudo nvidia-smi -i ");
    check_contains(error.text, " -pl 250");
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_close(knob, NULL);
    assert_int_equal(seteuid(0), 0);
    knob_machine_stop(&machine);
}

static void test_no_guard(void **state)
{
    struct knob *knob = NULL;
    struct fly_error error;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    machine.options.guard_path = "/nowhere/flyball-guard";
    assert_int_equal(knob_open(&machine.options, machine.devices, 1, &knob, &error), FLY_ENOTFOUND);
    check_contains(error.text, "'/nowhere/flyball-guard'");
    machine.options.guard_path = "/bin/true";
    assert_int_equal(knob_open(&machine.options, machine.devices, 1, &knob, &error), FLY_EUNSUPPORTED);
    check_contains(error.text, "'/bin/true'");
    assert_null(knob);
    knob_machine_stop(&machine);
}

/* What is kept outlives the session, with persistence mode, and goes back when asked for. */
static void test_kept(void **state)
{
    int64_t limits[] = {250000}, lower[] = {150000};
    struct knob_report report;
    struct repair repair;
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    machine.emulator->state->gpus[0].persistent = false;
    machine.options.kept = true;
    for (int i = 0; i < 2; i++) {
        knob = knob_machine_open(&machine);
        assert_int_equal(knob_guard_pid(knob), 0);
        assert_int_equal(knob_set(knob, i == 0 ? limits : lower, NULL), 0);
        knob_close(knob, &report);
        assert_int_equal(report.state, KNOB_TURNED);
        assert_true(report.persistence_turned);
        assert_true(machine.emulator->state->gpus[0].persistent);
        check_double(emulator_limit_w(machine.emulator, 0), i == 0 ? 250.0 : 150.0);
    }
    /* A session within goes back to what is kept, and so does an ordinary repair. */
    machine.options.kept = false;
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    knob_close(knob, NULL);
    assert_int_equal(knob_repair(&machine.options, &machine.list, false, &repair, 1, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 150.0);
    assert_int_equal(knob_repair(&machine.options, &machine.list, true, &repair, 1, NULL), 1);
    assert_int_equal(repair.end, REPAIR_RESTORED);
    assert_true(repair.kept);
    assert_int_equal(repair.previous_mw, 400000);
    assert_int_equal(repair.found_mw, 150000);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_false(machine.emulator->state->gpus[0].persistent);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

static void test_reset_kept(void **state)
{
    int64_t limits[] = {250000};
    struct knob *knob;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    machine.emulator->state->gpus[0].persistent = false;
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 350.0, NULL), 0);
    machine.options.kept = true;
    for (int i = 0; i < 2; i++) {
        knob = knob_machine_open(&machine);
        assert_int_equal(i == 0 ? knob_set(knob, limits, NULL) : knob_reset(knob, NULL), 0);
        knob_close(knob, NULL);
    }
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    assert_false(machine.emulator->state->gpus[0].persistent);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

static void test_fork(void **state)
{
    int64_t limits[] = {250000}, other[] = {200000};
    struct knob *knob;
    pid_t child;
    int status;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, limits, NULL), 0);
    child = fork();
    if (child == 0) {
        int wrong = knob_set(knob, other, NULL) != FLY_ESTATE || knob_restore(knob, NULL) != FLY_ESTATE ||
                    knob_check(knob, NULL) != FLY_ESTATE || knob_watch_fd(knob) != -1;

        knob_close(knob, NULL);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(knob_check(knob, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 400.0);
    knob_machine_stop(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_close),
        cmocka_unit_test(test_restore_and_go_on),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_another_program_wins),
        cmocka_unit_test(test_operators_lock),
        cmocka_unit_test(test_mps),
        cmocka_unit_test(test_mig),
        cmocka_unit_test(test_foreign_process),
        cmocka_unit_test(test_unknown_processes),
        cmocka_unit_test(test_permission),
        cmocka_unit_test(test_no_guard),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_reset_kept),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
