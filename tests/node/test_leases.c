/* SPDX-License-Identifier: Apache-2.0 */
/* Leases over emulated GPUs: granted, changed, and ended in every way while the daemon lives. */
#include "lease_support.h"

#include "base/thread/thread_group.h"
#include "knob/gpu_lock.h"

static struct lease_scene scene;

static void test_grant_and_end(void **state)
{
    struct lease_request request = request_of(getpid(), 3, 250000);
    struct leases_gpu gpu;
    struct lease lease;
    char holder[GPU_LOCK_HOLDER_MAX];

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    request.wish.asked |= LEASE_CLOCK;
    request.wish.ceiling_mhz = 1200;
    lease = must_grant(&scene, &request);
    assert_int_equal(strlen(lease.id), 32);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 250.0);
    assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, 1), 1200);
    leases_look(scene.leases, 1, &gpu);
    assert_true(gpu.turned && !gpu.for_process);
    assert_int_equal(gpu.report.set_mw, 250000);
    assert_int_equal(gpu.report.previous_mw, 400000);
    assert_int_equal(gpu_lock_holder(scene.machine.locks, scene.machine.devices[0]->info.uuid, holder, NULL),
                     1);
    check_contains(holder, "flyballd");
    assert_int_equal(knob_machine_entries(&scene.machine), 2);
    assert_int_equal(leases_end(scene.leases, lease.id, NULL, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 400.0);
    assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, 1), 0);
    assert_int_equal(gpu_lock_holder(scene.machine.locks, scene.machine.devices[0]->info.uuid, holder, NULL),
                     0);
    assert_int_equal(knob_machine_entries(&scene.machine), 0);
    assert_int_equal(leases_end(scene.leases, lease.id, NULL, NULL), FLY_ENOTFOUND);
    assert_int_equal(scene.ended[LEASE_END_GIVEN_BACK], 1);
    scene_stop(&scene);
}

static void test_refusals(void **state)
{
    struct lease_request request = request_of(getpid(), 1, 250000), other = request_of(0, 3, 200000);
    struct lease lease, another;
    struct fly_error error;

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    lease = must_grant(&scene, &request);
    assert_int_equal(leases_grant(scene.leases, &other, &another, &error), FLY_ECONFLICT);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 400.0);
    other.gpus = 2;
    other.wish.limit_mw = 5000;
    assert_int_equal(leases_grant(scene.leases, &other, &another, &error), FLY_EUSAGE);
    check_contains(error.text, "5");
    assert_int_equal(leases_list(scene.leases, NULL, 0), 1);
    /* A limit that the driver does not take leaves the lease as it was. */
    assert_int_equal(leases_change(scene.leases, lease.id, NULL, &other.wish, &another, &error), FLY_EUSAGE);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    other.wish = (struct lease_wish){.asked = LEASE_CLOCK, .ceiling_mhz = 900};
    assert_int_equal(leases_change(scene.leases, lease.id, &(struct lease_holder){.uid = 4711}, &other.wish,
                                   &another, &error),
                     FLY_ENOTFOUND);
    assert_int_equal(leases_change(scene.leases, lease.id, &lease.ask.holder, &other.wish, &another, &error),
                     0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, 0), 900);
    /* A process that is not there. */
    other.gpus = 2;
    other.holder.pid = 0x7FFFFFF0;
    assert_int_equal(leases_grant(scene.leases, &other, &another, &error), FLY_ENOTFOUND);
    /* A process that began after its connection, and one of another user. */
    other.holder.pid = getpid();
    other.born_before_ticks = 1;
    assert_int_equal(leases_grant(scene.leases, &other, &another, &error), FLY_ENOTFOUND);
    other.born_before_ticks = 0;
    other.holder.uid = 4711;
    assert_int_equal(leases_grant(scene.leases, &other, &another, &error), FLY_ENOTFOUND);
    scene_stop(&scene);
}

static void test_lower_wins(void **state)
{
    struct lease_request high = request_of(getpid(), 1, 300000), low = request_of(0, 1, 200000);
    struct lease first, second;

    (void)state;
    scene.rule = LEASE_RULE_LOWER;
    scene_start(&scene, "gpus=2,model=a100");
    first = must_grant(&scene, &high);
    second = must_grant(&scene, &low);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 200.0);
    leases_bound(scene.leases, 0, &(struct lease_bounds){.floor_mw = 220000});
    assert_true(limit_is(&scene, 0, 220.0));
    assert_int_equal(leases_end(scene.leases, second.id, NULL, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 300.0);
    assert_int_equal(leases_end(scene.leases, first.id, NULL, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    scene_stop(&scene);
    scene.rule = LEASE_RULE_REFUSE;
}

static void test_ends(void **state)
{
    struct lease_request request = request_of(getpid(), 1, 250000);
    struct lease lease;

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    request.holder.connection = 7;
    must_grant(&scene, &request);
    leases_connection_closed(scene.leases, 8);
    assert_int_equal(leases_list(scene.leases, NULL, 0), 1);
    leases_connection_closed(scene.leases, 7);
    assert_true(limit_is(&scene, 0, 400.0));
    assert_int_equal(scene.ended[LEASE_END_CONNECTION], 1);
    request.holder.connection = 0;
    request.expires_s = 3600;
    lease = must_grant(&scene, &request);
    leases_tick(scene.leases);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    assert_int_equal(leases_renew(scene.leases, lease.id, NULL, 1e-3, &lease, NULL), 0);
    scene_settle(&scene);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    assert_int_equal(scene.ended[LEASE_END_LATE], 1);
    scene_stop(&scene);
}

/* A process that waits, with a worker that outlives it. */
static pid_t start_holder(pid_t *out_worker)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pid_t worker = fork();

        if (worker > 0)
            (void)!write(ends[1], &worker, sizeof worker);
        alarm(60);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], out_worker, sizeof *out_worker), sizeof *out_worker);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void test_process_ends(void **state)
{
    struct lease_request request;
    pid_t worker, holder;

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    holder = start_holder(&worker);
    request = request_of(holder, 2, 250000);
    request.holder.connection = 9;
    must_grant(&scene, &request);
    leases_tick(scene.leases);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 250.0);
    kill(holder, SIGKILL);
    scene_settle(&scene); /* although nobody has waited for it, and its worker lives */
    check_double(emulator_limit_w(scene.machine.emulator, 1), 400.0);
    assert_int_equal(kill(worker, 0), 0);
    assert_int_equal(scene.ended[LEASE_END_PROCESS], 1);
    kill(worker, SIGKILL);
    waitpid(holder, NULL, 0);
    scene_stop(&scene);
}

static void test_another_program_wins(void **state)
{
    struct lease_request request = request_of(getpid(), 3, 250000);

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    must_grant(&scene, &request);
    assert_int_equal(emulator_set_limit_w(scene.machine.emulator, 0, 321.0, NULL), 0);
    scene_settle(&scene);
    assert_int_equal(scene.ended[LEASE_END_FOREIGN], 1);
    assert_true(limit_is(&scene, 1, 400.0));
    check_double(emulator_limit_w(scene.machine.emulator, 0), 321.0);
    assert_int_equal(knob_machine_entries(&scene.machine), 0);
    /* What it set is what the next lease puts back. */
    must_grant(&scene, &request);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    leases_release(scene.leases, lease_patience_s, NULL);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 321.0);
    scene_stop(&scene);
}

static void test_guard_is_replaced(void **state)
{
    struct lease_request request = request_of(getpid(), 1, 250000);
    struct mono_time end = mono_after_s(mono_now(), lease_patience_s);
    pid_t guard = 0, next = 0;

    (void)state;
    scene_start(&scene, "gpus=1,model=a100");
    must_grant(&scene, &request);
    find_guards(&scene.machine, &guard, 1);
    assert_true(guard > 0);
    kill(guard, SIGKILL);
    while ((next == 0 || next == guard) && mono_elapsed_s(mono_now(), end) > 0) {
        usleep(2000);
        find_guards(&scene.machine, &next, 1);
    }
    assert_true(next != 0 && next != guard);
    assert_true(limit_is(&scene, 0, 250.0));
    assert_int_equal(leases_list(scene.leases, NULL, 0), 1);
    scene_stop(&scene);
}

static void test_hang_stops_one(void **state)
{
    struct lease_request first = request_of(getpid(), 1, 250000), second = request_of(getpid(), 2, 260000);
    struct leases_gpu gpu;
    struct lease lease;
    struct fly_error error;

    (void)state;
    scene.patience_s = 3;
    scene_start(&scene, "gpus=2,model=a100");
    scene_settle(&scene);
    knob_machine_fault(&scene.machine, "gpu 0 call nvmlDeviceSetPowerManagementLimit from 1 slow 12s\n");
    assert_int_equal(leases_grant(scene.leases, &first, &lease, &error), FLY_EUNSURE);
    check_contains(error.text, "GPU 0 has not answered");
    leases_look(scene.leases, 0, &gpu);
    assert_true(gpu.busy_s > 0);
    assert_int_equal(leases_list(scene.leases, NULL, 0), 0);
    lease = must_grant(&scene, &second);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 260.0);
    assert_int_equal(leases_grant(scene.leases, &first, &lease, &error), FLY_EBUSY);
    knob_machine_fault(&scene.machine, "");
    leases_connection_closed(scene.leases, 0);
    assert_int_equal(leases_list(scene.leases, NULL, 0), 1);
    /* When it answers, everything goes back. */
    assert_int_equal(leases_release(scene.leases, lease_patience_s, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 400.0);
    scene_stop(&scene);
    scene.patience_s = 0;
}

/* The daemon ends all the same; what hangs is put back, and freed, when the driver answers. */
static void test_close_while_one_hangs(void **state)
{
    struct lease_request first = request_of(getpid(), 1, 250000), second = request_of(getpid(), 2, 260000);
    struct lease lease;

    (void)state;
    scene.patience_s = 3;
    scene_start(&scene, "gpus=2,model=a100");
    scene_settle(&scene);
    must_grant(&scene, &second);
    knob_machine_fault(&scene.machine, "gpu 0 call nvmlDeviceSetPowerManagementLimit from 1 slow 10s\n");
    assert_int_equal(leases_grant(scene.leases, &first, &lease, NULL), FLY_EUNSURE);
    knob_machine_fault(&scene.machine, "");
    assert_int_equal(leases_close(scene.leases, 0.5), FLY_EUNSURE);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 400.0);
    assert_true(left_threads_any());
    while (left_threads_any())
        usleep(2000);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    assert_int_equal(knob_machine_entries(&scene.machine), 0);
    knob_machine_stop(&scene.machine);
    scene.patience_s = 0;
}

static int64_t persistence_now(void)
{
    struct setting now = {.number = -1};

    setting_read(scene.machine.devices[0], QUANTITY_PERSISTENCE, &now);
    return now.number;
}

/* Profiles, persistence mode and the limit in one lease: what a change no longer asks for goes back. */
static void test_other_knobs(void **state)
{
    struct lease_request request = request_of(getpid(), 1, 700000);
    struct workload_set requested;
    struct lease lease;
    int64_t before;

    (void)state;
    scene_start(&scene, "gpus=1,model=b200");
    before = persistence_now();
    request.wish.asked |= QUANTITY_BIT(QUANTITY_WORKLOADS) | QUANTITY_BIT(QUANTITY_PERSISTENCE);
    request.wish.persistence = 1 - before;
    workload_add(&request.wish.workloads, 1);
    lease = must_grant(&scene, &request);
    requested = emulator_requested_workloads(scene.machine.emulator, 0);
    assert_true(workload_has(&requested, 1));
    assert_int_equal(persistence_now(), 1 - before);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 700.0);
    request.wish.asked = LEASE_LIMIT;
    assert_int_equal(leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL), 0);
    requested = emulator_requested_workloads(scene.machine.emulator, 0);
    assert_true(workload_is_empty(&requested));
    assert_int_equal(persistence_now(), before);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 700.0);
    /* A board without performance levels: all or nothing. */
    request.wish.asked = LEASE_LIMIT | QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL);
    request.wish.limit_mw = 600000;
    assert_true(leases_change(scene.leases, lease.id, NULL, &request.wish, &lease, NULL) < 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 700.0);
    scene_stop(&scene);
}

/* GPUs that come later are leased at once, within their bounds. */
static void test_gpus_come_later(void **state)
{
    struct lease_request request = request_of(getpid(), 1 << 2, 350000);
    struct leases_gpu gpu;
    struct lease lease;
    struct fly_error error;

    (void)state;
    scene = (struct lease_scene){.present = 1};
    knob_machine_start(&scene.machine, "gpus=3,model=a100", NULL);
    scene_open(&scene);
    assert_int_equal(leases_grant(scene.leases, &request, &lease, &error), FLY_EUSAGE);
    check_contains(error.text, "names a GPU that is not there; there are 1");
    leases_look(scene.leases, 2, &gpu);
    assert_false(gpu.ready);
    scene.present = 3;
    lease = must_grant(&scene, &request);
    check_double(emulator_limit_w(scene.machine.emulator, 2), 280.0);
    request.gpus = 1 << 1;
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 290.0);
    leases_look(scene.leases, 2, &gpu);
    assert_true(gpu.turned);
    scene_stop(&scene);
    scene.present = 0;
}

static void test_release(void **state)
{
    struct lease_request request = request_of(getpid(), 3, 250000);
    struct lease lease;

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    must_grant(&scene, &request);
    assert_int_equal(leases_release(scene.leases, lease_patience_s, NULL), 0);
    assert_int_equal(scene.borrowed[0] + scene.borrowed[1], 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    assert_int_equal(leases_grant(scene.leases, &request, &lease, NULL), FLY_EBUSY);
    leases_resume(scene.leases);
    must_grant(&scene, &request);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    scene_stop(&scene);
}

static void test_readonly(void **state)
{
    struct lease_request request = request_of(getpid(), 1, 250000);
    struct lease lease;
    FILE *file;

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    file = fopen(scene.machine.readonly, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(leases_grant(scene.leases, &request, &lease, NULL), FLY_EPERM);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    scene_stop(&scene);
}

static void test_plain_client(void **state)
{
    struct lease_request request = request_of(getpid(), 3, 250000);
    struct lease lease;
    pid_t worker, other;

    (void)state;
    scene_start(&scene, "gpus=2,model=a100");
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    assert_int_equal(leases_list(scene.leases, NULL, 0), 2);
    check_double(emulator_limit_w(scene.machine.emulator, 1), 250.0);
    request.gpus = 1;
    request.wish = (struct lease_wish){.asked = LEASE_CLOCK, .ceiling_mhz = 900};
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, 0), 900);
    /* Another process of the same user asks for what stands: no change, and no lease. */
    other = start_holder(&worker);
    request.holder.pid = other;
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    assert_int_equal(leases_list(scene.leases, NULL, 0), 2);
    request.wish.ceiling_mhz = 600;
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), FLY_ECONFLICT);
    kill(other, SIGKILL);
    kill(worker, SIGKILL);
    waitpid(other, NULL, 0);
    request.holder.pid = getpid();
    request.wish.asked = 0;
    assert_int_equal(leases_turn(scene.leases, &request, LEASE_CLOCK, NULL), 0);
    assert_int_equal(emulator_ceiling_mhz(scene.machine.emulator, 0), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 250.0);
    /* The value that stood before ends the lease. */
    request.wish = (struct lease_wish){.asked = LEASE_LIMIT, .limit_mw = 400000};
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    check_double(emulator_limit_w(scene.machine.emulator, 0), 400.0);
    assert_int_equal(leases_list(scene.leases, NULL, 0), 2);
    while (leases_list(scene.leases, NULL, 0) > 1) {
        leases_tick(scene.leases);
        usleep(2000);
    }
    assert_int_equal(leases_list(scene.leases, &lease, 1), 1);
    assert_int_equal(lease.ask.gpus, 2);
    /* It does not stand in the way of another client before that. */
    request.gpus = 2;
    assert_int_equal(leases_turn(scene.leases, &request, 0, NULL), 0);
    request = request_of(0, 2, 300000);
    must_grant(&scene, &request);
    scene_stop(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grant_and_end),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lower_wins),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_process_ends),
        cmocka_unit_test(test_another_program_wins),
        cmocka_unit_test(test_guard_is_replaced),
        cmocka_unit_test(test_hang_stops_one),
        cmocka_unit_test(test_close_while_one_hangs),
        cmocka_unit_test(test_other_knobs),
        cmocka_unit_test(test_gpus_come_later),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_readonly),
        cmocka_unit_test(test_plain_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
