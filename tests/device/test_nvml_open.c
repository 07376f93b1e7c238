/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the NVML back end: libraries that are none, drivers that fail, GPUs that cannot be had; and
 * processes. */
#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/nvidia/nvml_abi.h"
#include "nvml/opened.h"

/* Why the library cannot be initialised. */
static const struct init_case {
    int code, error;
    const char *cause, *step;
} init_cases[] = {
    {NVML_DRIVER_NOT_LOADED, FLY_EUNSUPPORTED, "the kernel driver is not loaded", "modprobe nvidia"},
    {NVML_LIB_RM_VERSION_MISMATCH, FLY_EUNSUPPORTED, "differ in version", "reboot"},
    {NVML_LIBRARY_NOT_FOUND, FLY_EUNSUPPORTED, "library of the driver", "install"},
    {NVML_NO_PERMISSION, FLY_EPERM, "permission is missing", "/dev/nvidiactl"},
    {NVML_GPU_NOT_FOUND, FLY_EUNSUPPORTED, "no device was found", "lspci"},
    {NVML_MEMORY, FLY_ENOMEM, "memory is exhausted", "free some"},
    {NVML_UNKNOWN, FLY_EREAD, "(NVML 999)", "nvidia-smi"},
    {4711, FLY_EREAD, "a code unheard of", "NVML 4711"},
};

static void test_drivers_that_do_not_start(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(init_cases); i++) {
        const struct init_case *at = &init_cases[i];
        struct opened *opened = opened_load("new");

        opened->standin->codes[STANDIN_init] = at->code;
        assert_int_equal(opened_gpus(opened), at->error);
        assert_int_equal(opened->list.count, 0);
        check_contains(opened->error.text, at->cause);
        check_contains(opened->error.text, at->step);
        check_contains(opened->error.text, opened->path);
        opened_close(opened);
    }
}

static int open_path(const char *path, struct fly_error *error)
{
    static struct device_list list;
    struct device_options options = {.nvml_path = path};
    int code = device_backend_nvml.open(&options, &list, error);

    device_list_close(&list);
    return code;
}

static void test_libraries_that_are_none(void **state)
{
    struct fly_error error;
    char path[256];

    (void)state;
    assert_int_equal(open_path("/nonexistent/libnvidia-ml.so.1", &error), FLY_ENOTFOUND);
    check_contains(error.text, "/nonexistent/libnvidia-ml.so.1");
    opened_path("none", path);
    assert_int_equal(open_path(path, &error), FLY_EUNSUPPORTED);
    check_contains(error.text, "lacks the function 'nvmlInit_v2'");
}

enum { EXIT_DRIVER = 77 };

/* By itself, as the loader reads its path only when a program starts. */
static int look_for_a_driver(void)
{
    struct fly_error error = {.code = 0};
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    if (real != NULL) {
        dlclose(real);
        return EXIT_DRIVER;
    }
    if (open_path(NULL, &error) != FLY_EUNSUPPORTED ||
        strstr(error.text, "no NVIDIA driver: library 'libnvidia-ml.so.1' cannot be loaded: ") == NULL ||
        strstr(error.text, "install NVIDIA's driver") == NULL) {
        fprintf(stderr, "code %d, '%s'\n", error.code, error.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static void test_no_driver(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        unsetenv("LD_LIBRARY_PATH"); /* in which the emulator may be */
        execl("/proc/self/exe", "test_nvml_open", "look-for-a-driver", (char *)NULL);
        _exit(EXIT_FAILURE);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == EXIT_DRIVER) {
        print_message("# skipped: this machine has a driver library\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
}

static void test_no_count(void **state)
{
    struct opened *opened = opened_load("new");

    (void)state;
    opened->standin->codes[STANDIN_count] = NVML_UNKNOWN;
    assert_int_equal(opened_gpus(opened), FLY_EREAD);
    check_contains(opened->error.text, "does not count its GPUs");
    opened->standin->codes[STANDIN_count] = NVML_NO_PERMISSION;
    assert_int_equal(opened_gpus(opened), FLY_EPERM);
    opened->standin->codes[STANDIN_count] = 0;
    opened->standin->gpus = 0;
    assert_int_equal(opened_gpus(opened), 0);
    assert_int_equal(opened->list.count, 0);
    opened_close(opened);
}

/* A GPU that cannot be had hides no other, and each of its readings says why. */
static void test_gpus_that_cannot_be_opened(void **state)
{
    static const struct {
        int code, error;
        enum reading_state state;
        bool denied;
    } cases[] = {
        {NVML_GPU_IS_LOST, 0, READING_LOST, false},
        {NVML_NO_PERMISSION, FLY_EPERM, READING_DENIED, true},
        {NVML_IRQ_ISSUE, 0, READING_FAILED, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opened *opened = opened_load("new");
        struct device_reading reading;

        opened->standin->gpus = 3;
        opened->standin->handle_codes[1] = cases[i].code;
        assert_int_equal(opened_gpus(opened), cases[i].error);
        assert_int_equal(opened->list.count, 3);
        assert_string_equal(opened->list.devices[1].info.uuid, "nvidia-1");
        assert_int_equal(opened->list.devices[1].info.denied, cases[i].denied);
        check_contains(opened->list.devices[1].info.note, "cannot be opened");
        check_contains(opened->error.text, cases[i].denied ? "1 of 3 GPUs may not be opened" : "");
        for (int gpu = 0; gpu < 3; gpu++) {
            device_read(&opened->list.devices[gpu], &clock_real, QUANTITY_ALL, &reading);
            for (int q = 0; q < QUANTITY_COUNT; q++) {
                assert_int_equal(reading.values[q].state, gpu == 1 ? cases[i].state : READING_OK);
                assert_int_equal(reading.values[q].code, gpu == 1 ? cases[i].code : 0);
            }
        }
        opened_close(opened);
    }
}

/* Two lists of one process share nothing that closing one would take from the other. */
static void test_two_lists(void **state)
{
    struct opened *first = opened_load("new"), *second = opened_load("new");
    struct device_reading reading;

    (void)state;
    first->standin->gpus = 2;
    assert_int_equal(opened_gpus(first), 0);
    assert_int_equal(opened_gpus(second), 0);
    device_list_close(&first->list);
    device_read(&second->list.devices[1], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY), &reading);
    assert_int_equal(reading.values[QUANTITY_ENERGY].state, READING_OK);
    device_list_close(&second->list);
    assert_int_equal(first->standin->calls[STANDIN_shutdown], 2);
    opened_close(second);
    opened_close(first);
}

/* A child's close says nothing to the driver, whose open files it shares with the parent. */
static void test_fork(void **state)
{
    struct opened *opened = opened_load("new");
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        device_list_close(&opened->list);
        _exit(opened->standin->calls[STANDIN_shutdown] == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    opened_close(opened);
}

static void test_mig(void **state)
{
    struct opened *opened = opened_load("new");

    (void)state;
    opened->standin->mig = NVML_ENABLED;
    assert_int_equal(opened_gpus(opened), 0);
    assert_true(opened->list.devices[0].info.mig);
    check_contains(opened->list.devices[0].info.note, "whole GPU");
    opened_close(opened);
}

/* Of the whole GPU, where programs have the whole GPU. */
static void test_memory(void **state)
{
    static const struct {
        const char *library;
        int code;
        unsigned mig, gib;
    } cases[] = {
        {"new", 0, NVML_DISABLED, STANDIN_MEMORY_GIB},
        {"new", NVML_NOT_SUPPORTED, NVML_DISABLED, 0},
        {"new", NVML_GPU_IS_LOST, NVML_DISABLED, 0},
        {"new", 0, NVML_ENABLED, 0},
        {"old", 0, NVML_DISABLED, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opened *opened = opened_load(cases[i].library);

        opened->standin->codes[STANDIN_memory] = cases[i].code;
        opened->standin->mig = cases[i].mig;
        assert_int_equal(opened_gpus(opened), 0);
        assert_int_equal(opened->list.devices[0].info.memory_bytes, (uint64_t)cases[i].gib << 30);
        opened_close(opened);
    }
}

static void test_instances(void **state)
{
    struct opened *opened = opened_load("new");

    (void)state;
    opened->standin->gpus = 2;
    assert_int_equal(opened_gpus(opened), 0);
    assert_true(device_backend_nvml.has_instance(&opened->list.devices[1], "MIG-5555"));
    assert_false(device_backend_nvml.has_instance(&opened->list.devices[0], "MIG-5555"));
    assert_false(device_backend_nvml.has_instance(&opened->list.devices[1], "MIG-6666"));
    opened->standin->codes[STANDIN_mig_parent] = NVML_NO_PERMISSION;
    assert_false(device_backend_nvml.has_instance(&opened->list.devices[1], "MIG-5555"));
    opened_close(opened);
    opened = opened_load("old");
    assert_int_equal(opened_gpus(opened), 0);
    assert_false(device_backend_nvml.has_instance(&opened->list.devices[0], "MIG-5555"));
    opened_close(opened);
}

static int processes_of(const struct opened *opened, struct device_process *processes, size_t maximum,
                        size_t *out_count)
{
    return device_processes(&opened->list.devices[0], DEVICE_PROCESSES_COMPUTING, processes, maximum,
                            out_count);
}

static void test_processes(void **state)
{
    static const char *const libraries[] = {"new", "old"};
    static const unsigned counts[] = {0, 1, 7, STANDIN_PROCESSES};

    (void)state;
    for (size_t i = 0; i < COUNT(libraries) * COUNT(counts); i++) {
        struct opened *opened = opened_load(libraries[i / COUNT(counts)]);
        unsigned count = counts[i % COUNT(counts)];
        struct device_process processes[STANDIN_PROCESSES];
        size_t found = 99;

        opened->standin->processes = count;
        assert_int_equal(opened_gpus(opened), 0);
        assert_int_equal(processes_of(opened, processes, COUNT(processes), &found), 0);
        assert_int_equal(found, count);
        for (unsigned p = 0; p < count; p++)
            assert_int_equal(processes[p].pid, 100 + p);
        if (count > 1)
            assert_int_equal(processes[1].memory_bytes, i < COUNT(counts) ? 1000 : 1);
        if (count > 0 && i < COUNT(counts))
            assert_true(processes[0].memory_bytes == UINT64_MAX);
        assert_int_equal(processes_of(opened, processes, 1, &found), 0);
        assert_int_equal(found, count > 0 ? 1 : 0);
        opened_close(opened);
    }
}

/* More than are asked for at once. */
enum { MANY = DEVICE_PROCESSES_AT_ONCE + 1 };

static void test_processes_that_keep_coming(void **state)
{
    struct opened *opened = opened_load("new");
    struct device_process processes[STANDIN_PROCESSES];
    size_t found = 99;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    opened->standin->processes = MANY;
    opened->standin->arriving = 2;
    assert_int_equal(processes_of(opened, processes, COUNT(processes), &found), 0);
    assert_int_equal(found, MANY + 2);
    opened->standin->arriving = 20; /* ever more than there is room for */
    assert_int_equal(processes_of(opened, processes, COUNT(processes), &found), FLY_EREAD);
    opened->standin->arriving = 0;
    opened->standin->processes = UINT32_MAX;
    assert_int_equal(processes_of(opened, processes, COUNT(processes), &found), FLY_EREAD);
    assert_int_equal(found, MANY + 2);
    opened->standin->codes[STANDIN_processes] = NVML_NO_PERMISSION;
    assert_int_equal(processes_of(opened, processes, COUNT(processes), &found), FLY_EPERM);
    opened->standin->codes[STANDIN_processes] = NVML_NOT_SUPPORTED;
    assert_int_equal(processes_of(opened, processes, COUNT(processes), &found), FLY_EUNSUPPORTED);
    opened_close(opened);
}

/* The drivers whose _v3 writes longer entries: _v2 is asked, which finds none here. */
static void test_drivers_with_long_processes(void **state)
{
    static const struct {
        const char *driver;
        bool is_long;
    } cases[] = {{"535.43.02", true},   {"535.86.10", true},  {"535.98", false},
                 {"535.104.05", false}, {"530.41.03", false}, {"", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opened *opened = opened_load("new");
        struct device_process process;
        size_t found = 99;

        opened->standin->driver = cases[i].driver;
        opened->standin->processes = 1;
        assert_int_equal(opened_gpus(opened), 0);
        assert_int_equal(processes_of(opened, &process, 1, &found), 0);
        assert_int_equal(found, cases[i].is_long ? 0 : 1);
        opened_close(opened);
    }
}

enum { THREADS = 4, READINGS = 2000 };

static void *read_often(void *data)
{
    const struct device *device = data;

    for (int i = 0; i < READINGS; i++) {
        struct device_reading reading;

        device_read(device, &clock_real, i % 2 == 0 ? QUANTITY_ALL : QUANTITY_BIT(QUANTITY_ENERGY), &reading);
        if (reading.values[QUANTITY_ENERGY].value != 1000LL * STANDIN_ENERGY_MJ)
            return data;
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct opened *opened = opened_load("new");
    pthread_t threads[THREADS];
    void *failed;

    (void)state;
    opened->standin->gpus = 2;
    assert_int_equal(opened_gpus(opened), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &opened->list.devices[i % 2]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    opened_close(opened);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_drivers_that_do_not_start),
    cmocka_unit_test(test_libraries_that_are_none),
    cmocka_unit_test(test_no_driver),
    cmocka_unit_test(test_no_count),
    cmocka_unit_test(test_gpus_that_cannot_be_opened),
    cmocka_unit_test(test_two_lists),
    cmocka_unit_test(test_fork),
    cmocka_unit_test(test_mig),
    cmocka_unit_test(test_memory),
    cmocka_unit_test(test_instances),
    cmocka_unit_test(test_processes),
    cmocka_unit_test(test_processes_that_keep_coming),
    cmocka_unit_test(test_drivers_with_long_processes),
    cmocka_unit_test(test_threads),
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "look-for-a-driver") == 0)
        return look_for_a_driver();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
