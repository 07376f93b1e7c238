/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons and guards that are killed, and processes that hold the lock of a GPU themselves. */
#include "lease_support.h"

#include "knob/gpu_lock.h"
#include "knob/journal.h"

enum { DEATHS = 3, GUARDS_MAX = 2 * KNOB_GPUS_MAX };

static struct lease_scene scene;

static const char *first_uuid(void)
{
    return scene.machine.devices[0]->info.uuid;
}

static int say_ready(void)
{
    return write(STDOUT_FILENO, "1", 1) == 1 ? 0 : 97;
}

/* Grants, changes and ends as fast as it goes, so that death comes at any moment of it. */
static void turn_on(void)
{
    struct lease lease;

    for (int64_t i = 0;; i++) {
        struct lease_request request = request_of(getpid(), 1 + (uint64_t)i % 3, 150000 + i % 200 * 1000);

        if (leases_grant(scene.leases, &request, &lease, NULL) < 0)
            break;
        request.wish.asked |= LEASE_CLOCK;
        request.wish.ceiling_mhz = 600 + i % 50 * 15;
        leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL);
        if (i % 5 != 0)
            leases_end(scene.leases, lease.id, NULL, NULL);
        else
            leases_connection_closed(scene.leases, 1);
        leases_tick(scene.leases);
        if (i % 5 == 0)
            leases_end(scene.leases, lease.id, NULL, NULL);
    }
    sleep(5);
}

/* Another daemon, which leases GPUs to the process of that number; 0: to itself, again and again. */
static int be_daemon(pid_t holder, uint64_t gpus)
{
    struct lease_request request = request_of(holder, gpus, 250000);
    struct fly_error error;
    struct lease lease;

    knob_machine_paths(&scene.machine);
    knob_machine_open_devices(&scene.machine);
    scene_open(&scene);
    alarm(120);
    if (holder == 0) {
        say_ready();
        turn_on();
        return 0;
    }
    request.wish.asked |= LEASE_CLOCK;
    request.wish.ceiling_mhz = 1200;
    if (leases_grant(scene.leases, &request, &lease, &error) < 0) {
        fprintf(stderr, "# %s\n", error.text);
        return 98;
    }
    say_ready();
    for (;;)
        pause();
}

/* A process that holds the lock of the first GPU, as a session of an unprivileged user does. */
static int be_holder(void)
{
    int lock;

    knob_machine_paths(&scene.machine);
    knob_machine_open_devices(&scene.machine);
    if (gpu_lock_take(scene.machine.locks, first_uuid(), "flyball run", &lock, NULL) < 0)
        return 98;
    say_ready();
    alarm(120);
    for (;;)
        pause();
}

static void start_machine(const char *settings)
{
    scene = (struct lease_scene){.rule = LEASE_RULE_REFUSE};
    knob_machine_start(&scene.machine, settings, NULL);
}

static struct role start_daemon(pid_t holder)
{
    char text[24];
    struct role role;

    snprintf(text, sizeof text, "%d", (int)holder);
    role = role_start("daemon", text);
    assert_int_equal(role_says(&role), 1);
    return role;
}

static void kill_role(struct role *role)
{
    kill(role->pid, SIGKILL);
    role_end(role);
}

static void kill_guards(void)
{
    pid_t guards[GUARDS_MAX];
    size_t count = find_guards(&scene.machine, guards, GUARDS_MAX);

    for (size_t i = 0; i < count; i++)
        kill(guards[i], SIGKILL);
}

static void check_back(void)
{
    struct mono_time end = mono_after_s(mono_now(), lease_patience_s);

    for (unsigned gpu = 0; gpu < scene.machine.list.count; gpu++) {
        assert_true(limit_is(&scene, gpu, 400.0));
        assert_true(clock_becomes_free(&scene.machine, gpu, lease_patience_s));
    }
    /* Guards and hands remove the entries a little later. */
    while (knob_machine_entries(&scene.machine) > 0 && mono_elapsed_s(mono_now(), end) > 0)
        usleep(2000);
    assert_int_equal(knob_machine_entries(&scene.machine), 0);
}

static void test_daemon_dies(void **state)
{
    struct role daemon;

    (void)state;
    start_machine("gpus=2,model=a100");
    daemon = start_daemon(getpid());
    check_double(emulator_limit_w(scene.machine.emulator, 1), 250.0);
    assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, 1), 1200);
    kill_role(&daemon);
    check_back();
    knob_machine_stop(&scene.machine);
}

/* Then the next daemon puts back at its start. */
static void test_daemon_and_guards_die(void **state)
{
    struct role daemon;

    (void)state;
    start_machine("gpus=2,model=a100");
    daemon = start_daemon(getpid());
    kill(daemon.pid, SIGSTOP);
    kill_guards();
    kill_role(&daemon);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    assert_int_equal(knob_machine_entries(&scene.machine), 2);
    scene_open(&scene);
    check_back();
    scene_stop(&scene);
}

/* Not over what another program set in between. */
static void test_anothers_value_stays(void **state)
{
    struct role daemon;

    (void)state;
    start_machine("gpus=2,model=a100");
    daemon = start_daemon(getpid());
    kill(daemon.pid, SIGSTOP);
    kill_guards();
    kill_role(&daemon);
    assert_int_equal(emulator_set_limit_w(scene.machine.emulator, 0, 333.0, NULL), 0);
    scene_open(&scene);
    assert_true(limit_is(&scene, 1, 400.0));
    scene_settle(&scene);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 333.0);
    scene_stop(&scene);
}

static void test_death_at_random(void **state)
{
    const char *wanted = getenv("FLYBALL_TEST_KNOB_ROUNDS");
    long rounds = wanted != NULL ? strtol(wanted, NULL, 10) : 12;
    uint64_t random = 9;

    (void)state;
    for (long i = 0; i < rounds; i++) {
        int kind = (int)(i % DEATHS);
        struct role daemon;

        start_machine("gpus=2,model=a100");
        daemon = start_daemon(0);
        usleep(test_below(&random, 400000));
        if (kind == 2)
            kill(daemon.pid, SIGSTOP);
        if (kind != 0)
            kill_guards();
        if (kind == 1)
            usleep(test_below(&random, 100000));
        kill_role(&daemon);
        scene_open(&scene);
        check_back();
        scene_stop(&scene);
    }
}

static struct role start_holder(void)
{
    struct role role = role_start("holder", "0");

    assert_int_equal(role_says(&role), 1);
    return role;
}

static bool daemon_has_entry(void)
{
    char path[RUNTIME_PATH_MAX];

    return runtime_directory_look_daemon(scene.machine.locks, path) &&
           journal_exists(path, JOURNAL_TURNED, first_uuid());
}

/* The lock stays with the process; the daemon writes its own journal, and puts back when it ends. */
static void test_acts_for_holder_of_lock(void **state)
{
    struct lease_request request;
    struct leases_gpu gpu;
    struct role holder;
    struct lease lease;

    (void)state;
    start_machine("gpus=2,model=a100");
    holder = start_holder();
    scene_open(&scene);
    request = request_of(getpid(), 1, 250000);
    assert_int_equal(leases_grant(scene.leases, &request, &lease, NULL), FLY_ESTATE);
    request = request_of(holder.pid, 1, 250000);
    must_grant(&scene, &request);
    leases_look(scene.leases, 0, &gpu);
    assert_true(gpu.for_process && gpu.turned);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    assert_true(gpu_lock_is_held_by(scene.machine.locks, first_uuid(), holder.pid));
    assert_int_equal(knob_machine_entries(&scene.machine), 0);
    assert_true(daemon_has_entry());
    kill_role(&holder);
    scene_settle(&scene);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    assert_false(daemon_has_entry());
    scene_stop(&scene);
}

/* The process still holds the lock when the next daemon puts back, and leases again at once. */
static void test_daemon_dies_while_it_acts(void **state)
{
    (void)state;
    for (int guards = 0; guards < 2; guards++) {
        struct role holder, daemon;

        start_machine("gpus=1,model=a100");
        holder = start_holder();
        daemon = start_daemon(holder.pid);
        check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
        assert_true(daemon_has_entry());
        if (guards > 0) {
            kill(daemon.pid, SIGSTOP);
            kill_guards();
        }
        kill_role(&daemon);
        if (guards > 0) {
            check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
            scene_open(&scene);
        }
        check_back();
        if (guards > 0) {
            const struct lease_request again = request_of(holder.pid, 1, 260000);
            struct leases_gpu gpu;

            must_grant(&scene, &again);
            leases_look(scene.leases, 0, &gpu);
            assert_true(gpu.for_process && gpu.turned);
            check_double(emulator_limit_w(scene.machine.emulator, 0), 260.0);
            scene_stop(&scene);
        } else {
            knob_machine_stop(&scene.machine);
        }
        kill_role(&holder);
    }
}

/* The entry of a session that ran beside the daemon, and was killed together with its guard. */
static void leave_session(int64_t limit_mw, int64_t previous_mw)
{
    struct journal_entry entry;
    pid_t dead = fork();

    if (dead == 0)
        _exit(0);
    waitpid(dead, NULL, 0);
    /* Who has put a limit back removes the entry after that, and would remove this one. */
    while (journal_exists(scene.machine.locks, JOURNAL_TURNED, first_uuid()))
        usleep(2000);
    journal_begin(first_uuid(), "flyball run --tune", &entry);
    entry.pid = dead;
    entry.turns[entry.turn_count++] = (struct turn){.quantity = QUANTITY_POWER_LIMIT,
                                                    .previous = {.number = previous_mw},
                                                    .earlier = {.number = limit_mw},
                                                    .ours = {.number = limit_mw}};
    assert_int_equal(emulator_set_limit_w(scene.machine.emulator, 0, (double)limit_mw * 1e-3, NULL), 0);
    assert_int_equal(journal_write(scene.machine.locks, JOURNAL_TURNED, &entry, NULL), 0);
}

static bool stuck_becomes(bool stuck)
{
    struct leases_gpu gpu = {.stuck = !stuck};

    for (int i = 0; i < 30000 && gpu.stuck != stuck; i++) {
        usleep(2000);
        leases_look(scene.leases, 0, &gpu);
    }
    return gpu.stuck == stuck;
}

/* A daemon that runs sweeps what was left beside it: wholly, or as far as the range allows and later the
 * rest. */
static void test_sweeps_beside_it(void **state)
{
    struct lease_request request;
    struct lease lease;

    (void)state;
    start_machine("gpus=2,model=a100");
    scene_open(&scene);
    assert_true(stuck_becomes(false));
    for (int i = 0; i < 2; i++) {
        leave_session(250000, 400000);
        assert_true(limit_is(&scene, 0, 400.0));
    }
    knob_machine_fault(&scene.machine, "range 100 260\n");
    leave_session(150000, 400000);
    assert_true(limit_is(&scene, 0, 260.0));
    assert_true(stuck_becomes(true));
    /* Leases are granted meanwhile, and what is owed goes back when they end. */
    request = request_of(getpid(), 1, 200000);
    lease = must_grant(&scene, &request);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 200.0);
    assert_int_equal(leases_end(scene.leases, lease.id, NULL, NULL), 0);
    assert_true(limit_is(&scene, 0, 260.0));
    knob_machine_fault(&scene.machine, "range 100 400\n");
    assert_true(limit_is(&scene, 0, 400.0));
    assert_true(stuck_becomes(false));
    assert_false(journal_exists(scene.machine.locks, JOURNAL_OWED, first_uuid()));
    scene_stop(&scene);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_daemon_dies),
        cmocka_unit_test(test_daemon_and_guards_die),
        cmocka_unit_test(test_anothers_value_stays),
        cmocka_unit_test(test_death_at_random),
        cmocka_unit_test(test_acts_for_holder_of_lock),
        cmocka_unit_test(test_daemon_dies_while_it_acts),
        cmocka_unit_test(test_sweeps_beside_it),
    };

    if (argc > 2 && strcmp(argv[1], "holder") == 0)
        return be_holder();
    if (argc > 2 && strcmp(argv[1], "daemon") == 0) {
        pid_t holder = (pid_t)strtol(argv[2], NULL, 10);

        return be_daemon(holder, holder == getppid() ? 3 : 1);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
