/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and clocks of AMD's GPUs set through a stand-in for the library in each version of its
 * interface, and who works on a GPU, from a made tree of the kernel's. No AMD GPU was ever asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdsmi/shown.h"
#include "own_directory.h"
#include "test.h"

static char state_directory[OWN_DIRECTORY_MAX];

static int set_up(void **state)
{
    shown_set_up(state);
    assert_true(own_directory_make("amdsmi", state_directory));
    shown_set("AMD_STATE", state_directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    own_directory_remove(state_directory);
    return 0;
}

static int set(enum quantity quantity, int64_t value, struct reading *out_result)
{
    return device_set(&shown.devices[0], quantity, value, out_result, &shown_error);
}

/* A limit in microwatts there, in milliwatts here; the driver rounds to whole watts. */
static void test_limits(void **state)
{
    struct reading result;

    (void)state;
    for (unsigned version = 24; version <= 26; version++) {
        assert_int_equal(shown_open(shown_library(version)), 0);
        assert_int_equal(set(QUANTITY_POWER_LIMIT, 400000, &result), 0);
        assert_int_equal(result.value, 400000);
        shown_check_value(0, QUANTITY_POWER_LIMIT, 400000);
        assert_int_equal(set(QUANTITY_POWER_LIMIT, 512300, &result), 0);
        assert_int_equal(result.value, 512000);
        assert_int_equal(set(QUANTITY_POWER_LIMIT, 750001, &result), FLY_EUSAGE);
        check_contains(shown_error.text, "choose one from 0 to 750 W");
        assert_int_equal(set(QUANTITY_POWER_LIMIT, 0, &result), FLY_EUSAGE);
        shown_check_value(0, QUANTITY_POWER_LIMIT, 512000);
        assert_int_equal(set(QUANTITY_PERSISTENCE, 1, &result), FLY_EUNSUPPORTED);
        device_list_close(&shown);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *status;
        int code;
        const char *words;
    } cases[] = {
        {"10", FLY_EPERM,
         "only root may; run this program as root, or 'sudo amd-smi set -g 00000000:10:00.0 --power-cap "
         "400'"},
        {"2", FLY_EUNSUPPORTED, "does not offer it"},
        {"43", FLY_EREAD, "AMD SMI 43"},
    };
    struct reading result;

    (void)state;
    assert_int_equal(shown_open(shown_library(26)), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        shown_set("AMD_FAIL_amdsmi_set_power_cap", cases[i].status);
        assert_int_equal(set(QUANTITY_POWER_LIMIT, 400000, &result), cases[i].code);
        check_contains(shown_error.text, cases[i].words);
    }
    unsetenv("AMD_FAIL_amdsmi_set_power_cap");
    shown_set("AMD_FAIL_amdsmi_get_power_cap_info", "10");
    assert_int_equal(set(QUANTITY_POWER_LIMIT, 400000, &result), FLY_EREAD);
    device_list_close(&shown);
}

/* A ceiling lies between the clocks that the GPU had when it was opened, also under an earlier ceiling. */
static void test_ceilings(void **state)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    struct reading result;
    size_t count;

    (void)state;
    assert_int_equal(shown_open(shown_library(26)), 0);
    assert_int_equal(device_clocks(&shown.devices[0], clocks_mhz, DEVICE_CLOCKS_MAX, &count, &shown_error),
                     0);
    assert_int_equal(clocks_mhz[0], 2100);
    assert_int_equal(clocks_mhz[1], 2075);
    assert_int_equal(clocks_mhz[count - 1], 132);
    assert_int_equal(set(QUANTITY_CLOCK_CEILING, 1500, &result), 0);
    assert_int_equal(result.state, READING_UNSUPPORTED);
    shown_check_value(0, QUANTITY_CLOCK_GPU, 1500);
    assert_int_equal(set(QUANTITY_CLOCK_CEILING, 2000, &result), 0);
    shown_check_value(0, QUANTITY_CLOCK_GPU_MAX, 2000);
    assert_int_equal(set(QUANTITY_CLOCK_CEILING, 131, &result), FLY_EUSAGE);
    assert_int_equal(set(QUANTITY_CLOCK_CEILING, 0, &result), 0);
    shown_check_value(0, QUANTITY_CLOCK_GPU_MAX, 2100);
    device_list_close(&shown);
    /* ROCm 6.1 to 6.3 cannot hold the clock this way. */
    assert_int_equal(shown_open(shown_library(24)), 0);
    assert_int_equal(set(QUANTITY_CLOCK_CEILING, 1500, &result), FLY_EUNSUPPORTED);
    device_list_close(&shown);
}

/* Levels by their words; those that come with clocks of their own are refused. */
static void test_levels(void **state)
{
    struct reading result;
    int64_t level = 99;

    (void)state;
    assert_int_equal(device_level_find("stable_peak"), DEVICE_LEVEL_STABLE_PEAK);
    assert_int_equal(device_level_find("loud"), -1);
    assert_string_equal(device_level_word(DEVICE_LEVEL_DETERMINISM), "determinism");
    assert_string_equal(device_level_word(9), "an unknown one");
    assert_int_equal(shown_open(shown_library(24)), 0);
    assert_int_equal(set(QUANTITY_PERFORMANCE_LEVEL, DEVICE_LEVEL_LOW, &result), 0);
    assert_int_equal(result.state, READING_OK);
    assert_int_equal(result.value, DEVICE_LEVEL_LOW);
    assert_int_equal(device_read_level(&shown.devices[0], &level), READING_OK);
    assert_int_equal(level, DEVICE_LEVEL_LOW);
    assert_int_equal(set(QUANTITY_PERFORMANCE_LEVEL, DEVICE_LEVEL_MANUAL, &result), FLY_EUSAGE);
    assert_int_equal(set(QUANTITY_PERFORMANCE_LEVEL, 9, &result), FLY_EUSAGE);
    shown_set("AMD_FAIL_amdsmi_set_gpu_perf_level", "10");
    assert_int_equal(set(QUANTITY_PERFORMANCE_LEVEL, DEVICE_LEVEL_HIGH, &result), FLY_EPERM);
    check_contains(shown_error.text, "sudo amd-smi set -g 00000000:10:00.0 --perf-level high");
    shown_set("AMD_FAIL_amdsmi_get_gpu_perf_level", "2");
    assert_int_equal(set(QUANTITY_PERFORMANCE_LEVEL, DEVICE_LEVEL_HIGH, &result), FLY_EUNSUPPORTED);
    device_list_close(&shown);
}

/* Only the GPU that counts for a card or for partitions has its limit, and it is not set through the others.
 */
static void test_shared_limits(void **state)
{
    struct reading result;

    (void)state;
    shown_set("AMD_GPUS", "2");
    shown_set("AMD_NAME", "AMD Instinct MI250X");
    shown_set("AMD_POWER_1", "0");
    shown_set("AMD_COUNTED_W_1", "0");
    shown_set("AMD_CAP_MAX_1", "0");
    assert_int_equal(shown_open(shown_library(25)), 0);
    assert_int_equal(device_set(&shown.devices[1], QUANTITY_POWER_LIMIT, 400000, &result, &shown_error),
                     FLY_EUNSUPPORTED);
    assert_int_equal(device_set(&shown.devices[1], QUANTITY_CLOCK_CEILING, 1500, &result, &shown_error),
                     FLY_EUNSUPPORTED);
    assert_int_equal(set(QUANTITY_POWER_LIMIT, 400000, &result), 0);
    device_list_close(&shown);
}

static void write_file(const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", state_directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_directory(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", state_directory, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

/* The tree of the kernel's compute driver, with a process of each kind. */
static void make_tree(void)
{
    static const char *const directories[] = {
        "sys",
        "sys/class",
        "sys/class/kfd",
        "sys/class/kfd/kfd",
        "sys/class/kfd/kfd/proc",
        "sys/class/kfd/kfd/proc/100",
        "sys/class/kfd/kfd/proc/200",
        "sys/class/kfd/kfd/proc/300",
        "sys/class/kfd/kfd/proc/300/queues",
        "sys/class/kfd/kfd/proc/300/queues/7",
        "sys/class/kfd/kfd/proc/400",
    };

    for (size_t i = 0; i < COUNT(directories); i++)
        make_directory(directories[i]);
    write_file("sys/class/kfd/kfd/proc/100/vram_4711", "1048576\n");
    write_file("sys/class/kfd/kfd/proc/100/vram_4712", "0\n");
    write_file("sys/class/kfd/kfd/proc/200/vram_4711", "0\n");
    write_file("sys/class/kfd/kfd/proc/200/vram_4712", "4096\n");
    write_file("sys/class/kfd/kfd/proc/300/vram_4711", "0\n");
    write_file("sys/class/kfd/kfd/proc/300/queues/7/gpuid", "4712\n");
}

static void check_processes(size_t place, int code, size_t expected, const int *pids)
{
    const struct device *device = &shown.devices[place];
    struct device_process processes[8];
    size_t count = 0;

    assert_int_equal(device_processes(device, DEVICE_PROCESSES_ALL, processes, COUNT(processes), &count),
                     code);
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(processes[i].pid, pids[i]);
    for (size_t i = 0; i < count; i++)
        assert_true(processes[i].kind == DEVICE_PROCESS_COMPUTE &&
                    processes[i].instance == DEVICE_NO_INSTANCE);
}

/* A process works on a GPU where it has memory or a queue; a shared limit concerns all of its GPUs. */
static void test_processes(void **state)
{
    (void)state;
    shown_set("AMD_GPUS", "2");
    assert_int_equal(shown_open_below(shown_library(26), state_directory), 0);
    check_processes(0, FLY_EREAD, 0, NULL);
    make_tree();
    check_processes(0, 0, 1, (const int[]){100});
    check_processes(1, 0, 2, (const int[]){200, 300});
    device_list_close(&shown);
    shown_set("AMD_BDF_0", "0x1000");
    shown_set("AMD_BDF_1", "0x1001");
    assert_int_equal(shown_open_below(shown_library(26), state_directory), 0);
    check_processes(0, 0, 3, (const int[]){100, 200, 300});
    device_list_close(&shown);
    shown_set("AMD_KFD_1", "none");
    assert_int_equal(shown_open_below(shown_library(26), state_directory), 0);
    check_processes(0, FLY_EREAD, 0, NULL);
    device_list_close(&shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ceilings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_levels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
