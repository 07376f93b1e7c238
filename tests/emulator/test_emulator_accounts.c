/* SPDX-License-Identifier: Apache-2.0 */
/* Who works on emulated GPUs, what the driver tells of it, and who really drew what. */
#include "emulator_support.h"

enum { WORKS = 4, SAMPLES_MAX = 64, MEMORY = 1 << 20 };

static void check_near(double value, double expected, double within)
{
    if (!(value >= expected - within && value <= expected + within))
        fail_msg("%g: expected %g within %g", value, expected, within);
}

/* Works of other processes than this one: their pids are made up. */
static int work(struct emulator *emulator, unsigned gpu, pid_t pid, enum emulator_work_kind kind,
                int instance, double wanted_w, double share)
{
    struct emulator_role role = {kind, instance};
    struct emulator_load load = {.wanted_w = wanted_w, .utilization = share, .memory_bytes = MEMORY};
    struct emulated_gpu *of = &emulator->state->gpus[gpu];
    int slot;

    assert_int_equal(emulator_work_begin_as(emulator, gpu, &role, &load, &slot, NULL), 0);
    of->slots[slot].owner.pid = pid;
    of->accounts.accounts[of->slots[slot].account].owner.pid = pid;
    return slot;
}

static const struct emulator_account *account_of(const struct emulator_accounts *accounts, pid_t pid)
{
    for (int i = 0; i < EMULATOR_ACCOUNTS; i++) {
        if (accounts->accounts[i].owner.pid == pid)
            return &accounts->accounts[i];
    }
    fail_msg("no account of %d", (int)pid);
    return NULL;
}

static double all_j(const struct emulator_accounts *accounts)
{
    double sum_j =
        accounts->vacant_j + accounts->scripted_j + accounts->forgotten_j + accounts->forgotten_idle_j;

    for (int i = 0; i < EMULATOR_ACCOUNTS; i++)
        sum_j += accounts->accounts[i].dynamic_j + accounts->accounts[i].idle_j;
    return sum_j;
}

static void check_sum(struct emulator *emulator, const struct emulator_accounts *accounts)
{
    check_close(all_j(accounts), emulator_truth_energy_j(emulator, 0, emulator_now(emulator)), 1e-9);
}

/* Idle 60 W on this board: 10 s with nobody, 20 s with one, 40 s with two of which one wants half as much. */
static void test_truth(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,settle-ms=10", NULL);
    static struct emulator_accounts accounts;
    int first, second;

    (void)state;
    emulator_advance_s(emulator, 10.0);
    first = work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, -1, 160.0, 1.0);
    emulator_advance_s(emulator, 20.0);
    second = work(emulator, 0, 102, EMULATOR_WORK_COMPUTE, -1, 110.0, 0.5);
    emulator_advance_s(emulator, 40.0);
    emulator_work_end(emulator, 0, first);
    emulator_work_end(emulator, 0, second);
    emulator_advance_s(emulator, 5.0);
    emulator_truth_accounts(emulator, 0, &accounts);
    check_sum(emulator, &accounts);
    /* Within what the board draws while it settles: up to 150 W for 10 ms, at each change. */
    check_near(account_of(&accounts, 101)->dynamic_j, 20 * 100.0 + 40 * 100.0, 3.0);
    check_near(account_of(&accounts, 102)->dynamic_j, 40 * 50.0, 3.0);
    check_close(account_of(&accounts, 101)->idle_j, 20 * 60.0 + 40 * 30.0, 1e-9);
    check_close(account_of(&accounts, 102)->idle_j, 40 * 30.0, 1e-9);
    check_close(accounts.vacant_j, 15 * 60.0, 1e-9);
    assert_true(account_of(&accounts, 101)->ended_ns > account_of(&accounts, 101)->began_ns);
    check_double(accounts.scripted_j, 0.0);
    stop(emulator);
}

/* A limit and the most that the board wants take the same part of each; scripted loads have their own sum. */
static void test_truth_under_a_limit(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual", NULL);
    static struct emulator_accounts accounts;

    (void)state;
    work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, -1, 360.0, 1.0);
    work(emulator, 0, 102, EMULATOR_WORK_GRAPHICS, -1, 160.0, 1.0);
    emulator_set_load(emulator, 0, 160.0);
    assert_int_equal(emulator_set_limit_w(emulator, 0, 200.0, NULL), 0);
    emulator_advance_s(emulator, 100.0);
    emulator_truth_accounts(emulator, 0, &accounts);
    check_sum(emulator, &accounts);
    check_close(account_of(&accounts, 101)->dynamic_j, 3.0 * account_of(&accounts, 102)->dynamic_j, 1e-9);
    check_close(accounts.scripted_j, account_of(&accounts, 102)->dynamic_j, 1e-9);
    assert_true(accounts.scripted_j > 1000.0);
    stop(emulator);
}

/* More works than accounts: the energy of old ones stays in the sum. */
static void test_truth_of_many(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual", NULL);
    static struct emulator_accounts accounts;

    (void)state;
    for (int i = 0; i < EMULATOR_ACCOUNTS + 50; i++) {
        int slot = work(emulator, 0, 1000 + i, EMULATOR_WORK_COMPUTE, -1, 160.0, 1.0);

        emulator_advance_s(emulator, 1.0);
        emulator_work_end(emulator, 0, slot);
    }
    emulator_truth_accounts(emulator, 0, &accounts);
    check_sum(emulator, &accounts);
    check_near(accounts.forgotten_idle_j, 50 * 60.0, 1e-6);
    assert_true(accounts.forgotten_j > 4000.0);
    stop(emulator);
}

static unsigned list(int (*ask)(struct nvml_device *, unsigned *, struct nvml_process *),
                     struct nvml_device *handle, struct nvml_process *processes)
{
    unsigned count = WORKS;

    assert_int_equal(ask(handle, &count, processes), NVML_SUCCESS);
    return count;
}

/* Clients of MPS are in two lists, their server in one; graphics in one of its own. */
static void test_lists(void **state)
{
    struct emulator *emulator = start("gpus=1", NULL);
    struct nvml_process found[WORKS];
    struct nvml_process_v1 old[WORKS];
    unsigned count = WORKS;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    work(emulator, 0, 101, EMULATOR_WORK_MPS_SERVER, -1, 0.0, 0.0);
    work(emulator, 0, 102, EMULATOR_WORK_MPS, -1, 100.0, 0.5);
    work(emulator, 0, 103, EMULATOR_WORK_GRAPHICS, -1, 100.0, 0.5);
    work(emulator, 0, 102, EMULATOR_WORK_MPS, -1, 100.0, 0.5);
    assert_int_equal(list(nvml.nvmlDeviceGetComputeRunningProcesses_v3, device(0), found), 2);
    assert_int_equal(found[0].pid, 101);
    assert_int_equal(found[1].pid, 102);
    assert_int_equal(found[1].memory_bytes, 2 * MEMORY);
    assert_true(found[1].gpu_instance == NVML_NO_INSTANCE);
    assert_int_equal(list(nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2, device(0), found), 1);
    assert_int_equal(found[0].pid, 102);
    assert_int_equal(list(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, device(0), found), 1);
    assert_int_equal(found[0].pid, 103);
    assert_int_equal(nvml.nvmlDeviceGetGraphicsRunningProcesses(device(0), &count, old), NVML_SUCCESS);
    assert_int_equal(count, 1);
    count = 0;
    assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device(0), &count, NULL),
                     NVML_INSUFFICIENT_SIZE);
    assert_int_equal(count, 2);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* The whole GPU lists the processes of all instances, an instance its own; nobody tells their use. */
static void test_instances(void **state)
{
    struct emulator *emulator = start("gpus=1,model=h100,mig=3", NULL);
    struct emulator_role none = {EMULATOR_WORK_COMPUTE, 3};
    struct emulator_load load = {.wanted_w = 100.0, .utilization = 1.0};
    struct nvml_process found[WORKS];
    struct nvml_device *part;
    unsigned id, count = WORKS;
    struct fly_error error;
    int slot;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, 0, 100.0, 1.0);
    work(emulator, 0, 102, EMULATOR_WORK_COMPUTE, 2, 100.0, 1.0);
    work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, 2, 100.0, 1.0);
    assert_int_equal(list(nvml.nvmlDeviceGetComputeRunningProcesses_v3, device(0), found), 3);
    assert_int_equal(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device(0), 2, &part), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetGpuInstanceId(part, &id), NVML_SUCCESS);
    assert_int_equal(list(nvml.nvmlDeviceGetComputeRunningProcesses_v3, part, found), 2);
    assert_int_equal(found[0].pid, 102);
    assert_int_equal(found[0].gpu_instance, id);
    assert_int_equal(found[1].pid, 101);
    assert_int_equal(nvml.nvmlDeviceGetProcessUtilization(device(0), NULL, &count, 0), NVML_NOT_SUPPORTED);
    assert_int_equal(emulator_work_begin_as(emulator, 0, &none, &load, &slot, &error), FLY_EUSAGE);
    check_contains(error.text, "has 3 MIG instances, and none of number 3");
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* The mean of a process's samples, and their number. */
static double mean_percent(const struct nvml_process_utilization *samples, unsigned count, unsigned pid,
                           unsigned *out_found)
{
    double sum = 0.0;

    *out_found = 0;
    for (unsigned i = 0; i < count; i++) {
        if (samples[i].pid != pid)
            continue;
        sum += samples[i].sm;
        ++*out_found;
    }
    return *out_found > 0 ? sum / *out_found : 0.0;
}

static unsigned ask_use(struct nvml_process_utilization *samples, unsigned long long since_us, int expected)
{
    unsigned count = SAMPLES_MAX;

    assert_int_equal(nvml.nvmlDeviceGetProcessUtilization(device(0), samples, &count, since_us), expected);
    return expected == NVML_SUCCESS ? count : 0;
}

/* A sample every sixth of a second; whoever keeps nothing busy has none, whoever ended still has old ones. */
static void test_samples(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual", NULL);
    struct nvml_process_utilization samples[SAMPLES_MAX];
    unsigned long long since_us;
    unsigned count, found;
    int slot;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    ask_use(samples, 0, NVML_NOT_FOUND);
    slot = work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, -1, 200.0, 0.25);
    work(emulator, 0, 102, EMULATOR_WORK_COMPUTE, -1, 60.0, 0.0);
    emulator_advance_s(emulator, 2.0);
    count = ask_use(samples, 0, NVML_SUCCESS);
    check_near(mean_percent(samples, count, 101, &found), 25.0, 2.0);
    assert_in_range(found, 11, 12);
    assert_int_equal(found, count);
    since_us = samples[count - 1].timestamp_us;
    ask_use(samples, since_us, NVML_NOT_FOUND);
    emulator_work_end(emulator, 0, slot);
    emulator_advance_s(emulator, 1.0);
    assert_in_range(ask_use(samples, since_us, NVML_SUCCESS), 0, 1);
    assert_in_range(ask_use(samples, 0, NVML_SUCCESS), 12, 13);
    count = 1;
    assert_int_equal(nvml.nvmlDeviceGetProcessUtilization(device(0), samples, &count, 0),
                     NVML_INSUFFICIENT_SIZE);
    assert_in_range(count, 12, 13);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* Works take turns; the clients of MPS together have one, and the setting says whose their use is. */
static void test_samples_of_several(void **state)
{
    static const struct {
        const char *settings;
        double plain, client, server;
    } cases[] = {
        {"gpus=1,time=virtual", 40.0, 0.0, 60.0},
        {"gpus=1,time=virtual,mps-samples=clients", 40.0, 30.0, 0.0},
        {"gpus=1,time=virtual,mps-samples=none", 40.0, 0.0, 0.0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct emulator *emulator = start(cases[i].settings, NULL);
        struct nvml_process_utilization samples[SAMPLES_MAX];
        unsigned count, found;

        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        work(emulator, 0, 101, EMULATOR_WORK_MPS_SERVER, -1, 0.0, 0.0);
        work(emulator, 0, 102, EMULATOR_WORK_MPS, -1, 100.0, 0.45);
        work(emulator, 0, 103, EMULATOR_WORK_MPS, -1, 100.0, 0.45);
        work(emulator, 0, 104, EMULATOR_WORK_GRAPHICS, -1, 100.0, 0.6);
        emulator_advance_s(emulator, 1.0);
        count = ask_use(samples, 0, NVML_SUCCESS);
        check_near(mean_percent(samples, count, 104, &found), cases[i].plain, 6.0);
        check_near(mean_percent(samples, count, 102, &found), cases[i].client, 5.0);
        check_near(mean_percent(samples, count, 101, &found), cases[i].server, 8.0);
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
}

static void test_other_samples(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,process-samples=newest", NULL);
    struct nvml_process_utilization samples[SAMPLES_MAX];

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, -1, 200.0, 0.25);
    emulator_advance_s(emulator, 1.0);
    work(emulator, 0, 102, EMULATOR_WORK_COMPUTE, -1, 200.0, 0.25);
    emulator_advance_s(emulator, 1.0);
    assert_int_equal(ask_use(samples, 0, NVML_SUCCESS), 2);
    assert_true(samples[0].timestamp_us == samples[1].timestamp_us);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
    emulator = start("gpus=1,time=virtual,process-samples=none", NULL);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    ask_use(samples, 0, NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* A long time without a question leaves the newest samples, and none that are wrong. */
static void test_samples_after_a_long_time(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual", NULL);
    struct nvml_process_utilization samples[EMULATOR_USE_SAMPLES];
    unsigned count = COUNT(samples), found;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    work(emulator, 0, 101, EMULATOR_WORK_COMPUTE, -1, 200.0, 0.25);
    emulator_advance_s(emulator, 1e6);
    assert_int_equal(nvml.nvmlDeviceGetProcessUtilization(device(0), samples, &count, 0), NVML_SUCCESS);
    assert_int_equal(count, EMULATOR_USE_SAMPLES);
    check_near(mean_percent(samples, count, 101, &found), 25.0, 0.5);
    assert_int_equal(found, count);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* The calling process is seen by its own pid; of another namespace one is not there that has no pid here. */
static void test_views(void **state)
{
    struct emulator_owner self = process_self(), elsewhere = self;

    (void)state;
    assert_int_equal(self.pid, getpid());
    assert_int_equal(process_view(&self), getpid());
    elsewhere.pid_space++;
    assert_int_equal(process_view(&elsewhere), 0);
    elsewhere.pid = 0;
    assert_int_equal(process_view(&elsewhere), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_truth_under_a_limit),
        cmocka_unit_test(test_truth_of_many),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_instances),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_samples_of_several),
        cmocka_unit_test(test_other_samples),
        cmocka_unit_test(test_samples_after_a_long_time),
        cmocka_unit_test(test_views),
    };

    return emulator_support_begin() != 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
