/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of processes, samples of their use and MIG instances, from a driver that a test scripts. */
#include "test.h"

#include <string.h>

#include "nvml/opened.h"

enum { KINDS = DEVICE_PROCESS_KIND_COUNT, SINCE_US = 1000000 };

static struct opened *open_new(void)
{
    struct opened *opened = opened_load("new");

    assert_int_equal(opened_gpus(opened), 0);
    return opened;
}

static const struct device *gpu_of(const struct opened *opened)
{
    return &opened->list.devices[0];
}

static int list(const struct opened *opened, unsigned kinds, struct device_process *processes, size_t maximum,
                size_t *out_count)
{
    return device_processes(gpu_of(opened), kinds, processes, maximum, out_count);
}

static void check_process(const struct device_process *process, pid_t pid, enum device_process_kind kind,
                          uint32_t instance)
{
    assert_int_equal(process->pid, pid);
    assert_int_equal(process->kind, kind);
    assert_int_equal(process->instance, instance);
}

/* A process in several lists is one process, of the kind that says most, with the memory that is known. */
static void test_kinds(void **state)
{
    struct opened *opened = open_new();
    struct device_process found[8];
    size_t count = 0;

    (void)state;
    opened->standin->processes = 3; /* 100 to 102 */
    opened->standin->mps = (struct standin_list){2, 101, NVML_NO_INSTANCE};
    opened->standin->graphics = (struct standin_list){3, 102, NVML_NO_INSTANCE};
    assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, COUNT(found), &count), 0);
    assert_int_equal(count, 5);
    check_process(&found[0], 102, DEVICE_PROCESS_MPS, DEVICE_NO_INSTANCE);
    check_process(&found[1], 103, DEVICE_PROCESS_GRAPHICS, DEVICE_NO_INSTANCE);
    check_process(&found[2], 104, DEVICE_PROCESS_GRAPHICS, DEVICE_NO_INSTANCE);
    check_process(&found[3], 100, DEVICE_PROCESS_COMPUTE, DEVICE_NO_INSTANCE);
    check_process(&found[4], 101, DEVICE_PROCESS_MPS, DEVICE_NO_INSTANCE);
    assert_int_equal(found[0].memory_bytes, 2000);
    assert_true(found[1].memory_bytes == DEVICE_MEMORY_UNKNOWN);
    assert_int_equal(list(opened, DEVICE_PROCESSES_COMPUTING, found, COUNT(found), &count), 0);
    assert_int_equal(count, 3);
    check_process(&found[1], 101, DEVICE_PROCESS_COMPUTE, DEVICE_NO_INSTANCE);
    assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, 2, &count), 0);
    assert_int_equal(count, 2);
    opened_close(opened);
}

/* The same pid in two instances is there twice. */
static void test_instances_of_a_process(void **state)
{
    struct opened *opened = open_new();
    struct device_process found[8];
    size_t count = 0;

    (void)state;
    opened->standin->graphics = (struct standin_list){1, 100, 7};
    opened->standin->mps = (struct standin_list){1, 100, 9};
    assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, COUNT(found), &count), 0);
    assert_int_equal(count, 2);
    check_process(&found[0], 100, DEVICE_PROCESS_GRAPHICS, 7);
    check_process(&found[1], 100, DEVICE_PROCESS_MPS, 9);
    opened_close(opened);
}

/* A kind that the driver does not know has no processes; any other failure of a list is one of all. */
static void test_failing_lists(void **state)
{
    static const struct {
        int codes[KINDS];
        int expected;
        size_t count;
    } cases[] = {
        {{0, 0, 0}, 0, 3},
        {{NVML_NOT_SUPPORTED, 0, NVML_FUNCTION_NOT_FOUND}, 0, 1},
        {{0, NVML_NOT_SUPPORTED, NVML_NOT_SUPPORTED}, 0, 1},
        {{NVML_NOT_SUPPORTED, NVML_NOT_SUPPORTED, NVML_NOT_SUPPORTED}, FLY_EUNSUPPORTED, 99},
        {{NVML_NO_PERMISSION, 0, 0}, FLY_EPERM, 99},
        {{0, NVML_GPU_IS_LOST, 0}, FLY_EREAD, 99},
        {{0, 0, NVML_MEMORY}, FLY_ENOMEM, 99},
        {{0, 0, NVML_TIMEOUT}, FLY_EREAD, 99},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opened *opened = open_new();
        struct device_process found[8];
        size_t count = 99;

        opened->standin->processes = 1;
        opened->standin->mps = (struct standin_list){1, 200, NVML_NO_INSTANCE};
        opened->standin->graphics = (struct standin_list){1, 300, NVML_NO_INSTANCE};
        opened->standin->codes[STANDIN_graphics] = cases[i].codes[DEVICE_PROCESS_GRAPHICS];
        opened->standin->codes[STANDIN_processes] = cases[i].codes[DEVICE_PROCESS_COMPUTE];
        opened->standin->codes[STANDIN_mps] = cases[i].codes[DEVICE_PROCESS_MPS];
        assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, COUNT(found), &count), cases[i].expected);
        assert_int_equal(count, cases[i].count);
        opened_close(opened);
    }
}

static void test_many_of_other_kinds(void **state)
{
    struct opened *opened = open_new();
    struct device_process found[2 * STANDIN_PROCESSES];
    size_t count = 0;

    (void)state;
    opened->standin->graphics = (struct standin_list){STANDIN_PROCESSES, 1, NVML_NO_INSTANCE};
    opened->standin->mps = (struct standin_list){STANDIN_PROCESSES, 151, NVML_NO_INSTANCE};
    assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, COUNT(found), &count), 0);
    assert_int_equal(count, STANDIN_PROCESSES + 150);
    opened_close(opened);
}

/* An old library has lists without instances, and neither samples nor MIG. */
static void test_old_library(void **state)
{
    struct opened *opened = opened_load("old");
    struct device_process found[4];
    struct device_use_sample samples[4];
    struct device_division division;
    size_t count = 99;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    opened->standin->processes = 2;
    assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, COUNT(found), &count), 0);
    assert_int_equal(count, 2);
    check_process(&found[1], 101, DEVICE_PROCESS_COMPUTE, DEVICE_NO_INSTANCE);
    assert_int_equal(device_use(gpu_of(opened), 0, samples, COUNT(samples), &count), READING_MISSING);
    assert_int_equal(device_division(gpu_of(opened), &division), READING_UNSUPPORTED);
    assert_int_equal(count, 2);
    opened_close(opened);
}

static struct nvml_process_utilization sample(unsigned pid, unsigned long long at_us, unsigned sm)
{
    return (struct nvml_process_utilization){.pid = pid, .timestamp_us = at_us, .sm = sm, .memory = sm / 2};
}

/* What no driver should say is left out: of no process, above the whole, of times that were asked for before.
 */
static void test_samples(void **state)
{
    struct opened *opened = open_new();
    struct device_use_sample found[8];
    struct nvml_process_utilization *given = opened->standin->samples;
    size_t count = 99;

    (void)state;
    given[0] = sample(100, SINCE_US + 1, 100);
    given[1] = sample(0, SINCE_US + 1, 5);
    given[2] = sample(101, SINCE_US, 5);
    given[3] = sample(102, SINCE_US + 1, 101);
    given[4] = sample(103, UINT64_MAX, 5);
    given[5] = sample(100, SINCE_US + 2, 7);
    given[6] = sample(104, SINCE_US + 2, 0);
    opened->standin->sample_count = 7;
    assert_int_equal(device_use(gpu_of(opened), SINCE_US, found, COUNT(found), &count), READING_OK);
    assert_int_equal(count, 3);
    assert_int_equal(found[0].pid, 100);
    assert_int_equal(found[0].at_us, SINCE_US + 1);
    assert_int_equal(found[0].sm_percent, 100);
    assert_int_equal(found[0].memory_percent, 50);
    assert_int_equal(found[1].sm_percent, 7);
    assert_int_equal(found[2].pid, 104);
    assert_int_equal(device_use(gpu_of(opened), SINCE_US, found, 1, &count), READING_OK);
    assert_int_equal(count, 1);
    opened->standin->sample_count = 0; /* NVML_NOT_FOUND */
    assert_int_equal(device_use(gpu_of(opened), SINCE_US, found, COUNT(found), &count), READING_OK);
    assert_int_equal(count, 0);
    opened_close(opened);
}

static void test_many_samples(void **state)
{
    struct opened *opened = open_new();
    struct device_use_sample found[STANDIN_PROCESSES];
    size_t count = 0;

    (void)state;
    for (unsigned i = 0; i < STANDIN_PROCESSES; i++)
        opened->standin->samples[i] = sample(i + 1, SINCE_US + i, 50);
    opened->standin->sample_count = STANDIN_PROCESSES;
    assert_int_equal(device_use(gpu_of(opened), 0, found, COUNT(found), &count), READING_OK);
    assert_int_equal(count, STANDIN_PROCESSES);
    assert_int_equal(found[STANDIN_PROCESSES - 1].pid, STANDIN_PROCESSES);
    opened->standin->sample_count = UINT32_MAX; /* is not believed */
    assert_int_equal(device_use(gpu_of(opened), 0, found, COUNT(found), &count), READING_FAILED);
    assert_int_equal(count, STANDIN_PROCESSES);
    opened_close(opened);
}

static void test_no_samples(void **state)
{
    static const struct {
        int code;
        enum reading_state expected;
    } cases[] = {{NVML_NOT_SUPPORTED, READING_UNSUPPORTED},
                 {NVML_FUNCTION_NOT_FOUND, READING_MISSING},
                 {NVML_NO_PERMISSION, READING_DENIED},
                 {NVML_GPU_IS_LOST, READING_LOST},
                 {NVML_TIMEOUT, READING_FAILED},
                 {NVML_NOT_FOUND, READING_OK}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opened *opened = open_new();
        struct device_use_sample found[4];
        size_t count = 99;

        opened->standin->codes[STANDIN_use] = cases[i].code;
        assert_int_equal(device_use(gpu_of(opened), 0, found, COUNT(found), &count), cases[i].expected);
        assert_int_equal(count, cases[i].expected == READING_OK ? 0 : 99);
        opened_close(opened);
    }
}

/* Two compute instances in one GPU instance are one part; holes in the driver's list are none. */
static void test_division(void **state)
{
    static const struct standin_part parts[] = {
        {0, 2, 3, 28, 20096}, {0, 2, 3, 14, 20096}, {NVML_NOT_FOUND, 0, 0, 0, 0}, {0, 9, 1, 14, 9856}};
    struct opened *opened = opened_load("new");
    struct device_division division = {.divided = false};

    (void)state;
    opened->standin->mig = NVML_ENABLED;
    opened->standin->part_count = COUNT(parts);
    memcpy(opened->standin->parts, parts, sizeof parts);
    assert_int_equal(opened_gpus(opened), 0);
    assert_int_equal(device_division(gpu_of(opened), &division), READING_OK);
    assert_true(division.divided);
    assert_int_equal(division.slices, COUNT(parts));
    assert_int_equal(division.instance_count, 2);
    assert_int_equal(division.instances[0].id, 2);
    assert_int_equal(division.instances[0].slices, 3);
    assert_int_equal(division.instances[0].multiprocessors, 42);
    assert_true(division.instances[0].memory_bytes == UINT64_C(20096) << 20);
    assert_int_equal(division.instances[1].id, 9);
    opened->standin->codes[STANDIN_attributes] = NVML_NOT_SUPPORTED;
    assert_int_equal(device_division(gpu_of(opened), &division), READING_OK);
    assert_int_equal(division.instance_count, 2);
    assert_int_equal(division.instances[0].slices, 0);
    opened_close(opened);
}

static void test_no_division(void **state)
{
    static const struct {
        unsigned mig;
        int code;
        enum reading_state expected;
    } cases[] = {{NVML_DISABLED, 0, READING_OK},
                 {NVML_ENABLED, NVML_NOT_SUPPORTED, READING_UNSUPPORTED},
                 {NVML_ENABLED, NVML_NO_PERMISSION, READING_DENIED},
                 {NVML_ENABLED, NVML_GPU_IS_LOST, READING_LOST}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct opened *opened = open_new();
        struct device_division division = {.divided = true, .instance_count = 99};

        opened->standin->mig = cases[i].mig;
        opened->standin->codes[STANDIN_mig_mode] = cases[i].code;
        opened->standin->part_count = STANDIN_PARTS;
        assert_int_equal(device_division(gpu_of(opened), &division), cases[i].expected);
        assert_int_equal(division.instance_count, cases[i].expected == READING_OK ? 0 : 99);
        assert_int_equal(opened->standin->calls[STANDIN_mig_part], 0);
        opened_close(opened);
    }
}

/* More instances than any GPU has are not written beyond the struct. */
static void test_too_many_parts(void **state)
{
    struct opened *opened = open_new();
    struct device_division division;

    (void)state;
    opened->standin->mig = NVML_ENABLED;
    opened->standin->part_count = STANDIN_PARTS;
    for (unsigned i = 0; i < STANDIN_PARTS; i++)
        opened->standin->parts[i].instance = i;
    assert_int_equal(device_division(gpu_of(opened), &division), READING_OK);
    assert_int_equal(division.instance_count, DEVICE_INSTANCES_MAX);
    opened_close(opened);
}

/* A GPU without a handle, and a back end that has none of it, say so. */
static void test_nothing_to_ask(void **state)
{
    static const struct device_backend empty = {.name = "empty"};
    const struct device other = {.backend = &empty};
    struct opened *opened = opened_load("new");
    struct device_process found[4];
    struct device_use_sample samples[4];
    struct device_division division;
    size_t count = 99;

    (void)state;
    opened->standin->handle_codes[0] = NVML_GPU_IS_LOST;
    assert_int_equal(opened_gpus(opened), 0);
    assert_int_equal(list(opened, DEVICE_PROCESSES_ALL, found, COUNT(found), &count), FLY_EREAD);
    assert_int_equal(device_use(gpu_of(opened), 0, samples, COUNT(samples), &count), READING_LOST);
    assert_int_equal(device_division(gpu_of(opened), &division), READING_LOST);
    assert_int_equal(device_processes(&other, DEVICE_PROCESSES_ALL, found, COUNT(found), &count),
                     FLY_EUNSUPPORTED);
    assert_int_equal(device_use(&other, 0, samples, COUNT(samples), &count), READING_UNSUPPORTED);
    assert_int_equal(device_division(&other, &division), READING_UNSUPPORTED);
    assert_int_equal(count, 99);
    opened_close(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),          cmocka_unit_test(test_instances_of_a_process),
        cmocka_unit_test(test_failing_lists),  cmocka_unit_test(test_many_of_other_kinds),
        cmocka_unit_test(test_old_library),    cmocka_unit_test(test_samples),
        cmocka_unit_test(test_many_samples),   cmocka_unit_test(test_no_samples),
        cmocka_unit_test(test_division),       cmocka_unit_test(test_no_division),
        cmocka_unit_test(test_too_many_parts), cmocka_unit_test(test_nothing_to_ask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
