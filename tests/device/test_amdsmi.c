/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of AMD's GPUs, over a stand-in for the library in each version of its
 * interface. No AMD GPU was ever asked: what real ones do is for a test on
 * hardware.
 */
#include <pthread.h>
#include <stdlib.h>

#include "amdsmi/shown.h"
#include "test.h"

/* All quantities of one GPU, in each version of the interface. */
static void test_quantities(void **state)
{
    static const struct {
        enum quantity quantity;
        int64_t value;
    } expected[] = {
        {QUANTITY_POWER_INSTANT, 200000}, {QUANTITY_POWER_AVERAGE, 190000},
        {QUANTITY_POWER_LIMIT, 700000},   {QUANTITY_POWER_LIMIT_DEFAULT, 750000},
        {QUANTITY_POWER_LIMIT_MIN, 0},    {QUANTITY_POWER_LIMIT_MAX, 750000},
        {QUANTITY_CLOCK_GPU, 2000},       {QUANTITY_CLOCK_GPU_MAX, 2100},
        {QUANTITY_CLOCK_MEMORY, 1300},    {QUANTITY_TEMPERATURE, 66},
        {QUANTITY_UTILIZATION, 87},       {QUANTITY_UTILIZATION_MEMORY, 45},
    };
    static const enum quantity none[] = {QUANTITY_POWER_LIMIT_ENFORCED, QUANTITY_THROTTLE,
                                         QUANTITY_PERSISTENCE, QUANTITY_MIG};

    (void)state;
    shown_set("AMD_AVERAGE", "190");
    for (unsigned version = 24; version <= 26; version++) {
        assert_int_equal(shown_open(shown_library(version)), 0);
        assert_int_equal(shown.count, 1);
        for (size_t i = 0; i < COUNT(expected); i++)
            shown_check_value(0, expected[i].quantity, expected[i].value);
        for (size_t i = 0; i < COUNT(none); i++)
            shown_check_state(0, none[i], READING_UNSUPPORTED);
        assert_string_equal(shown.devices[0].info.name, "AMD Instinct MI300X");
        assert_string_equal(shown.devices[0].info.pci, "00000000:10:00.0");
        assert_string_equal(shown.devices[0].info.driver, "6.12.12");
        assert_string_equal(shown.devices[0].info.note, "");
        device_list_close(&shown);
    }
}

/* 200 W for ten seconds are 2000 J: the unit is taken as 2^-16 J, of which 15.3 uJ is the rounding. */
static void test_energy(void **state)
{
    static const struct {
        const char *resolution, *ticks;
        int64_t uj;
    } cases[] = {
        {"15.3", "65536", 1000000},
        {"15.259", "65536", 1000000},
        {"1", "65536", 65536},
        {"15.3", "0x1000000000000", INT64_C(4294967296000000)},
    };
    struct reading before, after;

    (void)state;
    assert_int_equal(shown_open(shown_library(26)), 0);
    before = shown_read(0, QUANTITY_ENERGY);
    shown_now.ns += 10000000000;
    shown_tell_time();
    after = shown_read(0, QUANTITY_ENERGY);
    assert_int_equal(before.state, READING_OK);
    assert_in_range(after.value - before.value, 1999999900, 2000000100);
    for (size_t i = 0; i < COUNT(cases); i++) {
        shown_set("AMD_RESOLUTION", cases[i].resolution);
        shown_set("AMD_TICKS", cases[i].ticks);
        shown_check_value(0, QUANTITY_ENERGY, cases[i].uj);
    }
    shown_set("AMD_TICKS", "none");
    shown_check_state(0, QUANTITY_ENERGY, READING_UNSUPPORTED);
    shown_set("AMD_TICKS", "1");
    shown_set("AMD_RESOLUTION", "nan");
    shown_check_state(0, QUANTITY_ENERGY, READING_UNSUPPORTED);
    device_list_close(&shown);
}

/* Markers of what a GPU does not have. */
static void test_not_available(void **state)
{
    static const struct {
        const char *name, *value;
        enum quantity quantity;
        enum reading_state state;
    } cases[] = {
        {"AMD_POWER", "0xFFFF", QUANTITY_POWER_INSTANT, READING_UNSUPPORTED},
        {"AMD_POWER", "0xFFFFFFFF", QUANTITY_POWER_INSTANT, READING_UNSUPPORTED},
        {"AMD_AVERAGE", "0xFFFF", QUANTITY_POWER_AVERAGE, READING_UNSUPPORTED},
        {"AMD_CLOCK", "none", QUANTITY_CLOCK_GPU, READING_UNSUPPORTED},
        {"AMD_USAGE", "0xFFFF", QUANTITY_UTILIZATION, READING_UNSUPPORTED},
        {"AMD_USAGE", "101", QUANTITY_UTILIZATION, READING_FAILED},
        {"AMD_TEMPERATURE", "0xFFFF", QUANTITY_TEMPERATURE, READING_UNSUPPORTED},
        {"AMD_CAP_MAX", "0", QUANTITY_POWER_LIMIT, READING_UNSUPPORTED},
        {"AMD_CAP_MAX", "0", QUANTITY_POWER_LIMIT_MAX, READING_UNSUPPORTED},
        {"AMD_CAP_MAX", "none", QUANTITY_POWER_LIMIT_MAX, READING_UNSUPPORTED},
        {"AMD_CAP", "none", QUANTITY_POWER_LIMIT, READING_UNSUPPORTED},
    };

    (void)state;
    assert_int_equal(shown_open(shown_library(25)), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        shown_set(cases[i].name, cases[i].value);
        shown_check_state(0, cases[i].quantity, cases[i].state);
        unsetenv(cases[i].name);
    }
    shown_set("AMD_TEMPERATURE", "66000");
    shown_check_value(0, QUANTITY_TEMPERATURE, 66);
    shown_set("AMD_TEMPERATURE", "-5");
    shown_check_value(0, QUANTITY_TEMPERATURE, -5);
    device_list_close(&shown);
}

/* Every status in every call becomes the state of exactly the readings that the call answers. */
static void test_statuses(void **state)
{
    static const struct {
        const char *call;
        enum quantity quantity;
    } calls[] = {
        {"AMD_FAIL_amdsmi_get_energy_count", QUANTITY_ENERGY},
        {"AMD_FAIL_amdsmi_get_power_info", QUANTITY_POWER_INSTANT},
        {"AMD_FAIL_amdsmi_get_power_cap_info", QUANTITY_POWER_LIMIT},
        {"AMD_FAIL_amdsmi_get_clock_info", QUANTITY_CLOCK_MEMORY},
        {"AMD_FAIL_amdsmi_get_gpu_activity", QUANTITY_UTILIZATION},
        {"AMD_FAIL_amdsmi_get_temp_metric", QUANTITY_TEMPERATURE},
    };
    static const struct {
        const char *status;
        enum reading_state state;
    } statuses[] = {
        {"2", READING_UNSUPPORTED},  {"3", READING_UNSUPPORTED},     {"5", READING_MISSING},
        {"10", READING_DENIED},      {"31", READING_LOST},           {"34", READING_LOST},
        {"40", READING_UNSUPPORTED}, {"43", READING_FAILED},         {"1", READING_FAILED},
        {"12345", READING_FAILED},   {"0xFFFFFFFF", READING_FAILED},
    };

    (void)state;
    assert_int_equal(shown_open(shown_library(26)), 0);
    for (size_t i = 0; i < COUNT(calls); i++) {
        for (size_t j = 0; j < COUNT(statuses); j++) {
            shown_set(calls[i].call, statuses[j].status);
            shown_check_state(0, calls[i].quantity, statuses[j].state);
            for (size_t k = 0; k < COUNT(calls); k++) {
                if (k != i)
                    shown_check_state(0, calls[k].quantity, READING_OK);
            }
        }
        unsetenv(calls[i].call);
    }
    device_list_close(&shown);
}

static void *read_often(void *data)
{
    (void)data;
    for (int i = 0; i < 500; i++) {
        shown_check_value(0, QUANTITY_POWER_INSTANT, 200000);
        shown_check_state(0, QUANTITY_ENERGY, READING_OK);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];

    (void)state;
    assert_int_equal(shown_open(shown_library(26)), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    device_list_close(&shown);
}

#define AMD_TEST(name) cmocka_unit_test_setup(name, shown_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AMD_TEST(test_quantities), AMD_TEST(test_energy),  AMD_TEST(test_not_available),
        AMD_TEST(test_statuses),   AMD_TEST(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
