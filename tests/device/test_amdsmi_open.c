/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening AMD's GPUs over a stand-in for the library: whether a counter is to be
 * relied on, cards of two dies, order and identity, and libraries that fail.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdsmi/shown.h"
#include "device/amd/amdsmi_gpu.h"
#include "fake_tree.h"
#include "test.h"

#define MI250X "AMD Instinct MI250X / MI250"

static void test_counter_is_checked(void **state)
{
    static const struct {
        const char *name, *value;
        enum reading_state energy;
        const char *note;
    } cases[] = {
        {"AMD_COUNTED_W", "199", READING_OK, ""},
        {"AMD_COUNTED_W", "60", READING_OK, ""},
        {"AMD_COUNTED_W", "700", READING_OK, ""},
        {"AMD_COUNTED_W", "0.2", READING_UNSUPPORTED, "disagrees"},
        {"AMD_COUNTED_W", "200000", READING_UNSUPPORTED, "disagrees"},
        {"AMD_COUNTED_W", "-200", READING_UNSUPPORTED, "disagrees"},
        {"AMD_TICKS", "4711", READING_UNSUPPORTED, "disagrees"},
        {"AMD_TICKS", "none", READING_UNSUPPORTED, ""},
        {"AMD_POWER", "none", READING_OK, "could not be checked"},
        {"AMD_FAIL_amdsmi_get_power_info", "10", READING_OK, "could not be checked"},
        {"AMD_FAIL_amdsmi_get_energy_count", "2", READING_UNSUPPORTED, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t start_ns = shown_now.ns;

        shown_set(cases[i].name, cases[i].value);
        assert_int_equal(shown_open(shown_library(26)), 0);
        shown_check_state(0, QUANTITY_ENERGY, cases[i].energy);
        check_contains(shown.devices[0].info.note, cases[i].note);
        if (cases[i].note[0] == '\0')
            assert_string_equal(shown.devices[0].info.note, "");
        assert_true(shown_now.ns - start_ns <= 200000000);
        device_list_close(&shown);
        unsetenv(cases[i].name);
    }
}

static void test_memory(void **state)
{
    static const struct {
        unsigned version;
        const char *name, *value;
        uint64_t bytes;
    } cases[] = {
        {26, "AMD_NOTHING", "0", (uint64_t)192 << 30},
        {25, "AMD_MEMORY", "68719476736", (uint64_t)64 << 30},
        {26, "AMD_FAIL_amdsmi_get_gpu_memory_total", "2", 0},
        {26, "AMD_MEMORY", "none", 0},
        {24, "AMD_NOTHING", "0", 0}, /* a library without the function */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        shown_set(cases[i].name, cases[i].value);
        assert_int_equal(shown_open(shown_library(cases[i].version)), 0);
        assert_int_equal(shown.devices[0].info.memory_bytes, cases[i].bytes);
        device_list_close(&shown);
        unsetenv(cases[i].name);
    }
}

/* Two cards of two dies: what the driver says of the second dies is zero, and none of it is shown. */
static void test_two_dies(void **state)
{
    static const enum quantity card[] = {QUANTITY_ENERGY, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE,
                                         QUANTITY_POWER_LIMIT, QUANTITY_POWER_LIMIT_MAX};

    (void)state;
    shown_set("AMD_GPUS", "4");
    shown_set("AMD_NAME", MI250X);
    shown_set("AMD_POWER", "0xFFFF");
    shown_set("AMD_AVERAGE", "200");
    for (int die = 1; die < 4; die += 2) {
        char name[64];

        snprintf(name, sizeof name, "AMD_AVERAGE_%d", die);
        shown_set(name, "0");
        snprintf(name, sizeof name, "AMD_TICKS_%d", die);
        shown_set(name, "0");
    }
    assert_int_equal(shown_open(shown_library(26)), 0);
    assert_int_equal(shown.count, 4);
    for (size_t i = 0; i < 4; i += 2) {
        shown_check_value(i, QUANTITY_POWER_AVERAGE, 200000);
        shown_check_state(i, QUANTITY_ENERGY, READING_OK);
        for (size_t j = 0; j < COUNT(card); j++)
            shown_check_state(i + 1, card[j], READING_UNSUPPORTED);
        shown_check_value(i + 1, QUANTITY_UTILIZATION, 87);
        check_contains(shown.devices[i].info.note, "are the card's");
        check_contains(shown.devices[i].info.note, shown.devices[i + 1].info.pci);
        check_contains(shown.devices[i + 1].info.note,
                       i == 0 ? "counted with GPU 0 at" : "counted with GPU 2 at");
        check_contains(shown.devices[i + 1].info.note, shown.devices[i].info.pci);
    }
    device_list_close(&shown);
}

/* A second die alone, as containers show it, and zeros of GPUs that have but one die. */
static void test_dies_alone(void **state)
{
    (void)state;
    shown_set("AMD_NAME", MI250X);
    shown_set("AMD_POWER", "0xFFFF");
    shown_set("AMD_AVERAGE", "0");
    shown_set("AMD_TICKS", "0");
    assert_int_equal(shown_open(shown_library(24)), 0);
    shown_check_state(0, QUANTITY_ENERGY, READING_UNSUPPORTED);
    shown_check_state(0, QUANTITY_POWER_AVERAGE, READING_UNSUPPORTED);
    check_contains(shown.devices[0].info.note, "not to be seen here");
    device_list_close(&shown);
    shown_set("AMD_NAME", "AMD Instinct MI210");
    assert_int_equal(shown_open(shown_library(24)), 0);
    shown_check_state(0, QUANTITY_POWER_AVERAGE, READING_OK);
    device_list_close(&shown);
    shown_set("AMD_NAME", MI250X);
    shown_set("AMD_AVERAGE", "95");
    unsetenv("AMD_TICKS");
    shown_set("AMD_COUNTED_W", "95");
    assert_int_equal(shown_open(shown_library(24)), 0);
    shown_check_state(0, QUANTITY_ENERGY, READING_OK);
    check_contains(shown.devices[0].info.note, "with its second die");
    device_list_close(&shown);
}

/* Partitions of a GPU each say what the whole draws, which counts once. */
static void test_partitions(void **state)
{
    (void)state;
    shown_set("AMD_GPUS", "4");
    shown_set("AMD_BDF_0", "0x2000");
    shown_set("AMD_BDF_1", "0x3000");
    shown_set("AMD_BDF_2", "0x3001");
    shown_set("AMD_BDF_3", "0x3002");
    assert_int_equal(shown_open(shown_library(26)), 0);
    assert_string_equal(shown.devices[0].info.note, "");
    check_contains(shown.devices[1].info.note, "the whole GPU's");
    for (size_t i = 0; i < 4; i++) {
        shown_check_state(i, QUANTITY_ENERGY, i < 2 ? READING_OK : READING_UNSUPPORTED);
        shown_check_state(i, QUANTITY_POWER_INSTANT, i < 2 ? READING_OK : READING_UNSUPPORTED);
        shown_check_state(i, QUANTITY_UTILIZATION, READING_OK);
        if (i >= 2)
            check_contains(shown.devices[i].info.note, "counted with GPU 1 at 00000000:30:00.0");
    }
    device_list_close(&shown);
}

/* As HIP numbers them, which need not be the order on the bus. */
static void test_order(void **state)
{
    (void)state;
    shown_set("AMD_GPUS", "3");
    shown_set("AMD_BDF_0", "0x23b01"); /* domain 2, bus 3b, device 0, function 1 */
    shown_set("AMD_HIP_0", "2");
    shown_set("AMD_HIP_1", "1");
    shown_set("AMD_HIP_2", "0");
    shown_set("AMD_NODE_0", "6");
    shown_set("AMD_NODE_1", "5");
    shown_set("AMD_NODE_2", "4");
    for (unsigned version = 24; version <= 26; version++) {
        assert_int_equal(shown_open(shown_library(version)), 0);
        assert_string_equal(shown.devices[1].info.pci, "00000000:15:00.0");
        assert_string_equal(shown.devices[0].info.pci, "00000000:1A:00.0");
        assert_string_equal(shown.devices[2].info.pci, "00000002:3B:00.1");
        assert_int_equal(shown.devices[2].info.index, 2);
        device_list_close(&shown);
    }
}

/* The UUID that ROCR_VISIBLE_DEVICES names, from whoever knows it. */
static void test_uuids(void **state)
{
    struct device_options options = {.clock = &shown_clock};

    (void)state;
    shown_set("AMD_HIP_UUID", "GPU-5ef1234567890abc");
    assert_int_equal(shown_open(shown_library(26)), 0);
    assert_string_equal(shown.devices[0].info.uuid, "GPU-5ef1234567890abc");
    device_list_close(&shown);
    shown_set("AMD_UUID", "5eff74a1-0000-1000-80ab-cdef01234567");
    assert_int_equal(shown_open(shown_library(24)), 0);
    assert_string_equal(shown.devices[0].info.uuid, "5eff74a1-0000-1000-80ab-cdef01234567");
    device_list_close(&shown);
    shown_set("AMD_FAIL_amdsmi_get_gpu_device_uuid", "2");
    assert_int_equal(shown_open(shown_library(24)), 0);
    assert_string_equal(shown.devices[0].info.uuid, "amd-00000000:10:00.0");
    device_list_close(&shown);

    unsetenv("AMD_FAIL_amdsmi_get_gpu_device_uuid");
    shown_set("AMD_GPUS", "3");
    shown_set("AMD_UUID_2", "5eff74a1-0000-1000-80ab-000000000000");
    assert_int_equal(shown_open(shown_library(24)), 0);
    assert_string_equal(shown.devices[0].info.uuid, "amd-00000000:10:00.0");
    assert_string_equal(shown.devices[1].info.uuid, "amd-00000000:15:00.0");
    assert_string_equal(shown.devices[2].info.uuid, "5eff74a1-0000-1000-80ab-000000000000");
    device_list_close(&shown);

    shown_set("AMD_GPUS", "1");
    fake_tree_make();
    fake_tree_put("sys/bus/pci/devices/0000:10:00.0/unique_id", "1234567890abcdef\n");
    options.sysfs_root = fake_tree_root();
    options.amdsmi_path = shown_library(24);
    memset(&shown, 0, sizeof shown);
    assert_int_equal(device_backend_amdsmi.open(&options, &shown, NULL), 0);
    assert_string_equal(shown.devices[0].info.uuid, "GPU-1234567890abcdef");
    device_list_close(&shown);
    fake_tree_remove();
}

static void test_failures_of_opening(void **state)
{
    static const struct {
        const char *name, *value;
        int code;
        const char *text;
    } cases[] = {
        {"AMD_FAIL_amdsmi_init", "10", FLY_EPERM, "usermod -a -G render,video"},
        {"AMD_FAIL_amdsmi_init", "34", FLY_EUNSUPPORTED, "modprobe amdgpu"},
        {"AMD_FAIL_amdsmi_init", "18", FLY_EREAD, "AMD SMI 18"},
        {"AMD_FAIL_amdsmi_get_lib_version", "7", FLY_EREAD, "version"},
        {"AMD_VERSION", "23", FLY_EUNSUPPORTED, "version 23"},
        {"AMD_VERSION", "27", FLY_EUNSUPPORTED, "24 to 26"},
        {"AMD_FAIL_amdsmi_get_socket_handles", "10", FLY_EPERM, "amd-smi list"},
        {"AMD_FAIL_amdsmi_get_processor_handles", "7", FLY_EREAD, "amd-smi list"},
        {"AMD_GPUS", "0", 0, ""},
        {"AMD_FAIL_amdsmi_get_gpu_device_bdf", "2", 0, ""},
    };
    void *held = dlopen(shown_library(26), RTLD_NOW);
    const int *users;

    (void)state;
    assert_non_null(held);
    users = dlsym(held, "standin_users");
    for (size_t i = 0; i < COUNT(cases); i++) {
        shown_set(cases[i].name, cases[i].value);
        assert_int_equal(shown_open(shown_library(26)), cases[i].code);
        check_contains(shown_error.text, cases[i].text);
        assert_int_equal(shown.count, 0);
        assert_int_equal(*users, 0);
        unsetenv(cases[i].name);
    }
    shown_set("AMD_GPUS", "150");
    assert_int_equal(shown_open(shown_library(26)), FLY_ELIMIT);
    assert_int_equal(*users, 0);
    shown_set("AMD_GPUS", "128");
    assert_int_equal(shown_open(shown_library(26)), 0);
    assert_int_equal(shown.count, DEVICES_MAX);
    assert_int_equal(*users, 1);
    device_list_close(&shown);
    assert_int_equal(*users, 0);
    dlclose(held);
}

/* The library of a forked child is its parent's: closing there shuts nothing down. */
static void test_fork(void **state)
{
    void *held = dlopen(shown_library(26), RTLD_NOW);
    const int *users;
    int status;
    pid_t child;

    (void)state;
    assert_non_null(held);
    users = dlsym(held, "standin_users");
    assert_int_equal(shown_open(shown_library(26)), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        device_list_close(&shown);
        _exit(*users == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    device_list_close(&shown);
    assert_int_equal(*users, 0);
    dlclose(held);
}

static void test_no_such_library(void **state)
{
    char path[512];

    (void)state;
    assert_int_equal(shown_open("/nonexistent/libamd_smi.so"), FLY_ENOTFOUND);
    snprintf(path, sizeof path, "%s/nvml/nvml_none.so", getenv("FLYBALL_TEST_BUILD"));
    if (access(path, R_OK) == 0) {
        assert_int_equal(shown_open(path), FLY_EUNSUPPORTED);
        check_contains(shown_error.text, "no AMD SMI library");
    }
}

/* The names by which it is searched for: this machine has none, or one that works. */
static void test_search(void **state)
{
    int code;

    (void)state;
    code = shown_open(NULL);
    if (code < 0)
        assert_true(shown_error.text[0] != '\0');
    device_list_close(&shown);
}

static void test_judgement(void **state)
{
    const struct reading ok = {.state = READING_OK, .value = 100000}, gone = {.state = READING_LOST};
    struct amdsmi_trial trial = {.time_s = 0.1,
                                 .energy_before = {.state = READING_OK, .value = 0},
                                 .power_before = ok,
                                 .power_after = ok};
    static const struct {
        int64_t rise_uj;
        enum amdsmi_verdict verdict;
    } cases[] = {
        {10000000, AMDSMI_COUNTER_GOOD}, {2500000, AMDSMI_COUNTER_GOOD},   {2499999, AMDSMI_COUNTER_WRONG},
        {40000000, AMDSMI_COUNTER_GOOD}, {40000001, AMDSMI_COUNTER_WRONG}, {0, AMDSMI_COUNTER_WRONG},
        {-1, AMDSMI_COUNTER_WRONG},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        trial.energy_after = (struct reading){.state = READING_OK, .value = cases[i].rise_uj};
        assert_int_equal(amdsmi_judge(&trial), cases[i].verdict);
    }
    trial.power_after = gone;
    trial.energy_after.value = 1;
    assert_int_equal(amdsmi_judge(&trial), AMDSMI_COUNTER_UNCHECKED);
    trial.energy_after = gone;
    assert_int_equal(amdsmi_judge(&trial), AMDSMI_COUNTER_ABSENT);
}

#define AMD_TEST(name) cmocka_unit_test_setup(name, shown_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AMD_TEST(test_counter_is_checked),
        AMD_TEST(test_memory),
        AMD_TEST(test_two_dies),
        AMD_TEST(test_dies_alone),
        AMD_TEST(test_partitions),
        AMD_TEST(test_order),
        AMD_TEST(test_uuids),
        AMD_TEST(test_failures_of_opening),
        AMD_TEST(test_fork),
        AMD_TEST(test_no_such_library),
        AMD_TEST(test_search),
        AMD_TEST(test_judgement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
