/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated GPUs with several processes: shared, guarded, and outliving who dies. */
#include "emulator_support.h"

#include <signal.h>
#include <sys/wait.h>

static const char *program;

/* Runs this program again with two words; its exit status. */
static int run_again(const char *word, const char *argument, bool wait)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", program, word, argument, NULL);
        _exit(99);
    }
    if (!wait)
        return (int)pid;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What another process does: turns a limit, and returns the code. */
static int be_setter(const char *limit_mw)
{
    if (load_library() < 0 || nvml.nvmlInit_v2() != NVML_SUCCESS)
        return 98;
    return nvml.nvmlDeviceSetPowerManagementLimit(device(1), (unsigned)strtoul(limit_mw, NULL, 10));
}

/* Works on GPU 0 until it is killed, or dies with the lock of the state in its hand. */
static int be_victim(bool with_lock)
{
    struct emulator_load load = {.wanted_w = 300.0, .utilization = 1.0, .memory_bytes = 1 << 30};
    struct emulator *emulator;
    int slot;

    if (emulator_open(NULL, &emulator, NULL) < 0 || emulator_work_begin(emulator, 0, &load, &slot, NULL) < 0)
        return 98;
    if (with_lock) {
        state_lock(emulator->state);
        raise(SIGKILL);
    }
    for (;;)
        pause();
}

static void test_state_is_shared_by_processes(void **state)
{
    struct emulator *emulator = start("gpus=2,model=a40,shared,any-user", NULL);
    unsigned limit_mw = 0;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(run_again("setter", "123000", true), NVML_SUCCESS);
    assert_int_equal(run_again("setter", "5000", true), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetPowerManagementLimit(device(1), &limit_mw), NVML_SUCCESS);
    assert_int_equal(limit_mw, 123000);
    assert_int_equal(nvml.nvmlDeviceGetPowerManagementLimit(device(0), &limit_mw), NVML_SUCCESS);
    assert_int_equal(limit_mw, 300000);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

static void test_turning_needs_root(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    for (int any_user = 0; any_user < 2; any_user++) {
        struct emulator *emulator = start(any_user ? "gpus=1,shared,any-user" : "gpus=1,shared", NULL);

        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlDeviceSetPersistenceMode(device(0), NVML_ENABLED), NVML_SUCCESS);
        assert_int_equal(seteuid(65534), 0);
        assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit(device(0), 200000),
                         any_user ? NVML_SUCCESS : NVML_NO_PERMISSION);
        assert_int_equal(nvml.nvmlDeviceSetPersistenceMode(device(0), NVML_DISABLED),
                         any_user ? NVML_SUCCESS : NVML_NO_PERMISSION);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
}

static unsigned processes(unsigned *out_pid)
{
    struct nvml_process list[4];
    unsigned count = COUNT(list);

    assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device(0), &count, list), NVML_SUCCESS);
    *out_pid = count > 0 ? list[0].pid : 0;
    return count;
}

/* Work ends with the process, be it killed, and so does the lock that it held. */
static void test_death(void **state)
{
    struct emulator *emulator = start("gpus=1,settle-ms=1", NULL);
    unsigned pid = 0;
    int victim, status;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    victim = run_again("victim", "", false);
    for (int i = 0; i < 60000 && processes(&pid) == 0; i++)
        usleep(1000);
    assert_int_equal(pid, victim);
    usleep(20000);
    check_close(emulator_truth_power_w(emulator, 0, emulator_now(emulator)), 300.0, 1e-3);
    kill(victim, SIGKILL);
    assert_int_equal(waitpid(victim, &status, 0), victim);
    assert_int_equal(processes(&pid), 0);
    usleep(20000);
    check_close(emulator_truth_power_w(emulator, 0, emulator_now(emulator)), 60.0, 1e-3);
    assert_int_equal(run_again("victim", "with lock", true), 128 + SIGKILL);
    assert_int_equal(processes(&pid), 0);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_is_shared_by_processes),
        cmocka_unit_test(test_turning_needs_root),
        cmocka_unit_test(test_death),
    };

    program = argv[0];
    if (argc > 2)
        return strcmp(argv[1], "setter") == 0 ? be_setter(argv[2]) : be_victim(argv[2][0] != '\0');
    return emulator_support_begin() != 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
