/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and guards that are killed: limits and clocks come back within a second, or at the next start. */
#include "knob/repair.h"
#include "knob_support.h"

#include <sys/file.h>
#include <sys/syscall.h>

#include "knob/gpu_lock.h"
#include "knob/journal.h"

enum { WITH_WORKER = 1, EXITS = 2, FAST = 4, WITH_COPY = 8, CLOCKS = 16, IDLE = 32, KINDS = 3 };

static struct knob_machine machine;

/* A worker of the session's, which outlives it with all that was open. */
static void be_worker(void)
{
    alarm(3);
    for (;;)
        pause();
}

/* Turns as fast as it goes, so that death comes at any moment of it. */
static void turn_on(struct knob *knob, bool clocks)
{
    int64_t limits[2], ceilings[2];

    for (int64_t i = 0;; i++) {
        limits[0] = limits[1] = 150000 + i % 200 * 1000;
        ceilings[0] = ceilings[1] = i % 9 == 0 ? KNOB_NO_CEILING : 600 + i % 50 * 15;
        if (knob_set(knob, limits, NULL) < 0 || (clocks && knob_set_ceilings(knob, ceilings, NULL) < 0))
            break;
    }
    sleep(5);
}

/* Another process's session: turns, says who its guard is, and looks after it as programs do. */
static int be_session(int mode)
{
    int64_t limits[] = {250000, 200000}, ceilings[] = {1200, 900};
    struct knob *knob = NULL;
    struct fly_error error;
    char text[32];
    int length;

    knob_machine_paths(&machine);
    knob_machine_open_devices(&machine);
    if (knob_open(&machine.options, machine.devices, machine.list.count, &knob, &error) < 0 ||
        knob_set(knob, limits, &error) < 0 ||
        ((mode & CLOCKS) != 0 && knob_set_ceilings(knob, ceilings, &error) < 0)) {
        fprintf(stderr, "# %s\n", error.text);
        return 98;
    }
    if ((mode & WITH_WORKER) != 0 && fork() == 0)
        be_worker();
    /* A fork that the C library does not see, so that nothing is closed in the child. */
    if ((mode & WITH_COPY) != 0 && syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L) == 0)
        be_worker();
    length = snprintf(text, sizeof text, "%d", (int)knob_guard_pid(knob));
    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        return 97;
    if ((mode & EXITS) != 0)
        exit(0);
    if ((mode & FAST) != 0)
        turn_on(knob, (mode & CLOCKS) != 0);
    /* One that is to be stopped may not hold the emulator's lock. */
    if ((mode & IDLE) != 0)
        pause();
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
    assert_true(limit_becomes(&machine, 0, 400.0, knob_patience_s()));
    assert_true(limit_becomes(&machine, 1, 400.0, knob_patience_s()));
    assert_true(clock_becomes_free(&machine, 0, knob_patience_s()));
    assert_true(clock_becomes_free(&machine, 1, knob_patience_s()));
}

/* Whether a process runs; one that nobody waits for does not. */
static bool runs(pid_t pid)
{
    char path[64], text[512], state = 'Z';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof text, file) != NULL && strrchr(text, ')') != NULL)
        state = strrchr(text, ')')[2];
    fclose(file);
    return state != 'Z';
}

/* Whoever put the limits back removes the entries a little later, and the guard ends. */
static void check_gone(pid_t guard)
{
    struct mono_time end = mono_after_s(mono_now(), knob_patience_s());

    while ((knob_machine_entries(&machine) > 0 || runs(guard)) && mono_elapsed_s(mono_now(), end) > 0)
        usleep(2000);
    assert_false(runs(guard));
    assert_int_equal(knob_machine_entries(&machine), 0);
}

static void test_session_dies(void **state)
{
    static const struct {
        const char *mode;
        int signal, status;
    } cases[] = {
        {"0", SIGKILL, 128 + SIGKILL},  {"0", SIGTERM, 128 + SIGTERM},
        {"0", SIGINT, 128 + SIGINT},    {"1", SIGKILL, 128 + SIGKILL},
        {"1", SIGTERM, 128 + SIGTERM},  {"2", 0, 0},
        {"8", SIGKILL, 128 + SIGKILL},  {"16", SIGKILL, 128 + SIGKILL},
        {"17", SIGTERM, 128 + SIGTERM}, {"18", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct role role;
        pid_t guard;

        knob_machine_start(&machine, "gpus=2,model=a100", NULL);
        role = start_session(cases[i].mode, &guard);
        if (cases[i].signal != 0) {
            check_double(emulator_limit_w(machine.emulator, 0), 250.0);
            check_double(emulator_limit_w(machine.emulator, 1), 200.0);
            assert_int_equal(emulator_ceiling_mhz(machine.emulator, 0), i < 7 ? 0 : 1200);
            kill(role.pid, cases[i].signal);
        }
        assert_int_equal(role_end(&role), cases[i].status);
        check_back();
        check_gone(guard);
        knob_machine_stop(&machine);
    }
}

/* Signals that end other processes do not end a guard, and it has a session of its own. */
static void test_guard_stays(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct role role;
    pid_t guard;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    role = start_session("0", &guard);
    assert_true(getsid(guard) != getsid(0));
    assert_true(getpgid(guard) != getpgid(0));
    for (size_t i = 0; i < COUNT(signals); i++)
        kill(guard, signals[i]);
    usleep(50000);
    assert_true(runs(guard));
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    kill(role.pid, SIGKILL);
    role_end(&role);
    check_back();
    knob_machine_stop(&machine);
}

static void test_guard_dies(void **state)
{
    struct role role;
    pid_t guard;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    role = start_session("16", &guard);
    kill(guard, SIGKILL);
    check_back();
    check_gone(guard);
    assert_true(runs(role.pid));
    kill(role.pid, SIGKILL);
    role_end(&role);
    knob_machine_stop(&machine);
}

/* Then the next one repairs: a session of whoever comes, or knob_repair; but not over another's change. */
static void test_both_die(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct repair repairs[4];
        struct knob *knob;
        struct role role;
        pid_t guard;

        knob_machine_start(&machine, "gpus=2,model=a100", NULL);
        role = start_session("17", &guard); /* with a worker, which must not hold the locks */
        kill(role.pid, SIGSTOP);
        kill(guard, SIGKILL);
        kill(role.pid, SIGKILL);
        role_end(&role);
        usleep(20000);
        check_double(emulator_limit_w(machine.emulator, 0), 250.0);
        assert_int_equal(emulator_ceiling_mhz(machine.emulator, 1), 900);
        assert_int_equal(knob_machine_entries(&machine), 2);
        if (way == 2)
            assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 275.0, NULL), 0);
        if (way == 0) {
            knob = knob_machine_open(&machine);
            check_contains(knob_report(knob, 0)->repaired, "is 400 W again");
            assert_int_equal(knob_report(knob, 0)->previous_mw, 400000);
            knob_close(knob, NULL);
        } else {
            assert_int_equal(knob_repair(&machine.options, &machine.list, false, repairs, 4, NULL), 2);
            for (int i = 0; i < 2; i++) {
                bool foreign = way == 2 && strcmp(repairs[i].uuid, machine.devices[0]->info.uuid) == 0;

                assert_int_equal(repairs[i].end, foreign ? REPAIR_FOREIGN : REPAIR_RESTORED);
            }
        }
        check_double(emulator_limit_w(machine.emulator, 0), way == 2 ? 275.0 : 400.0);
        check_double(emulator_limit_w(machine.emulator, 1), 400.0);
        assert_int_equal(emulator_ceiling_mhz(machine.emulator, 0), 0);
        assert_int_equal(emulator_ceiling_mhz(machine.emulator, 1), 0);
        assert_int_equal(knob_machine_entries(&machine), 0);
        knob_machine_stop(&machine);
    }
}

/* While the session lives, nobody repairs under it. */
static void test_living_session_is_left(void **state)
{
    struct repair repairs[4];
    struct role role;
    pid_t guard;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    role = start_session("0", &guard);
    assert_int_equal(knob_repair(&machine.options, &machine.list, true, repairs, 4, NULL), 2);
    assert_int_equal(repairs[0].end, REPAIR_IN_USE);
    check_double(emulator_limit_w(machine.emulator, 0), 250.0);
    kill(role.pid, SIGKILL);
    role_end(&role);
    /* The next session waits for the guard, and finds things as they were. */
    for (int i = 0; i < 2; i++) {
        struct knob *knob = knob_machine_open(&machine);

        assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
        assert_int_equal(knob_report(knob, 0)->previous_mw, 400000);
        knob_close(knob, NULL);
    }
    knob_machine_stop(&machine);
}

/* A limit of GPU 0, and the clock of GPU 1, which works. */
static void test_guard_leaves_anothers_change(void **state)
{
    struct role role;
    pid_t guard;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    role = start_session("48", &guard);
    kill(role.pid, SIGSTOP);
    assert_int_equal(emulator_set_limit_w(machine.emulator, 0, 275.0, NULL), 0);
    emulator_set_load(machine.emulator, 1, 150.0);
    assert_int_equal(emulator_set_ceiling_mhz(machine.emulator, 1, 1305, NULL), 0);
    kill(role.pid, SIGKILL);
    role_end(&role);
    /* It looks at the clock of GPU 1 for a while first. */
    assert_true(clock_becomes_free(&machine, 0, knob_patience_s()));
    assert_true(limit_becomes(&machine, 1, 400.0, knob_patience_s()));
    check_gone(guard);
    check_double(emulator_limit_w(machine.emulator, 0), 275.0);
    assert_int_equal(emulator_ceiling_mhz(machine.emulator, 1), 1305);
    knob_machine_stop(&machine);
}

/* At any moment of turning: the session, the guard, or both. */
static void test_death_at_random(void **state)
{
    const char *wanted = getenv("FLYBALL_TEST_KNOB_ROUNDS");
    long rounds = wanted != NULL ? strtol(wanted, NULL, 10) : 30;
    uint64_t random = 5;

    (void)state;
    for (long i = 0; i < rounds; i++) {
        int kind = (int)(i % KINDS);
        struct repair repairs[4];
        struct role role;
        pid_t guard;

        knob_machine_start(&machine, "gpus=2,model=a100", NULL);
        role = start_session(i / KINDS % 2 != 0 ? "20" : "4", &guard);
        usleep(test_below(&random, 20000));
        if (kind != 0)
            kill(guard, SIGKILL);
        if (kind != 1)
            kill(role.pid, test_below(&random, 2) != 0 ? SIGKILL : SIGTERM);
        if (kind == 2) {
            role_end(&role);
            assert_true(knob_repair(&machine.options, &machine.list, false, repairs, 4, NULL) >= 0);
        }
        check_back();
        check_gone(guard);
        if (kind == 1)
            kill(role.pid, SIGKILL);
        if (kind != 2)
            role_end(&role);
        knob_machine_stop(&machine);
    }
}

/* Of a lock whose taker has ended, the process that really holds it is named, also if the pid is in use
 * again. */
static void test_names_who_holds(void **state)
{
    char path[JOURNAL_PATH_MAX], expected[64];
    struct fly_error error;
    int lock, other, ends[2], code;
    pid_t child;

    (void)state;
    knob_machine_start(&machine, "gpus=1,model=a100", NULL);
    assert_int_equal(gpu_lock_take(machine.locks, machine.devices[0]->info.uuid, "one", &lock, NULL), 0);
    snprintf(expected, sizeof expected, "'one', process %d; wait for it to end, or end it", (int)getpid());
    assert_int_equal(gpu_lock_take(machine.locks, machine.devices[0]->info.uuid, "two", &other, &error),
                     FLY_ESTATE);
    check_contains(error.text, expected);
    gpu_lock_release(lock);
    /* A file as of an earlier process with this one's number, and a child that has the lock. */
    assert_int_equal(journal_path(machine.locks, machine.devices[0]->info.uuid, ".lock", path, NULL), 0);
    lock = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    assert_true(lock >= 0);
    dprintf(lock, "'one', process %d%c1", (int)getpid(), '\0');
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        _exit(flock(lock, LOCK_EX) == 0 && write(ends[1], "x", 1) == 1 && pause() == 0 ? 1 : 0);
    }
    assert_int_equal(read(ends[0], expected, 1), 1);
    close(lock);
    assert_int_equal(gpu_lock_take(machine.locks, machine.devices[0]->info.uuid, "two", &other, &error),
                     FLY_ESTATE);
    snprintf(expected, sizeof expected, "held by process %d", (int)child);
    check_contains(error.text, expected);
    check_contains(error.text, "which has ended; wait for it to end");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(gpu_lock_take(machine.locks, machine.devices[0]->info.uuid, "two", &other, NULL), 0);
    gpu_lock_release(other);
    /* One that puts back what others left is waited for. */
    child = fork();
    if (child == 0) {
        code = gpu_lock_take(machine.locks, machine.devices[0]->info.uuid, "flyballd" GPU_LOCK_BRIEFLY, &lock,
                             NULL);
        if (write(ends[1], "x", 1) == 1)
            usleep(300000);
        _exit(code == 0 ? 0 : 1);
    }
    assert_int_equal(read(ends[0], expected, 1), 1);
    assert_int_equal(gpu_lock_take(machine.locks, machine.devices[0]->info.uuid, "two", &other, NULL), 0);
    gpu_lock_release(other);
    waitpid(child, NULL, 0);
    knob_machine_stop(&machine);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_dies),
        cmocka_unit_test(test_guard_stays),
        cmocka_unit_test(test_guard_dies),
        cmocka_unit_test(test_both_die),
        cmocka_unit_test(test_living_session_is_left),
        cmocka_unit_test(test_guard_leaves_anothers_change),
        cmocka_unit_test(test_death_at_random),
        cmocka_unit_test(test_names_who_holds),
    };

    if (argc > 2 && strcmp(argv[1], "session") == 0)
        return be_session((int)strtol(argv[2], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
