/* SPDX-License-Identifier: Apache-2.0 */
/* What is set through NVML, over emulated GPUs: ceilings on the clock, and every refusal. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/backend.h"
#include "emulator/control.h"

static char state_path[64], library_path[512];
static struct emulator *emulator;
static struct device_list list;

static void start(const char *script)
{
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");
    struct emulator_settings settings = emulator_default_settings;
    struct device_options options = {.nvml_path = library_path};
    struct fault_list faults = {0};
    struct fly_error error;

    snprintf(state_path, sizeof state_path, "/tmp/flyball-test-set-%d", (int)getpid());
    snprintf(library_path, sizeof library_path, "%s/libnvidia-ml.so.1",
             directory != NULL ? directory : "build/emulator");
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);
    unlink(state_path);
    if (emulator_settings_parse(&settings, "gpus=2,time=virtual,model=a100,ideal", &error) < 0)
        fail_msg("%s", error.text);
    settings.any_user = true;
    if (emulator_create(state_path, &settings, &emulator, &error) < 0)
        fail_msg("%s", error.text);
    if (script != NULL && faults_parse(script, "test", &faults, &error) < 0)
        fail_msg("%s", error.text);
    memset(&list, 0, sizeof list);
    assert_int_equal(device_backend_nvml.open(&options, &list, NULL), 0);
    emulator_set_faults(emulator, &faults);
}

static void stop(void)
{
    device_list_close(&list);
    emulator_close(emulator);
    assert_int_equal(emulator_remove(state_path, NULL), 0);
}

static int64_t clock_mhz(size_t gpu)
{
    struct device_reading reading;

    device_read(&list.devices[gpu], &clock_real, QUANTITY_BIT(QUANTITY_CLOCK_GPU), &reading);
    assert_int_equal(reading.values[QUANTITY_CLOCK_GPU].state, READING_OK);
    return reading.values[QUANTITY_CLOCK_GPU].value;
}

static void test_clocks(void **state)
{
    int64_t clocks[DEVICE_CLOCKS_MAX], few[3];
    size_t count = 0;

    (void)state;
    start(NULL);
    assert_int_equal(device_clocks(&list.devices[0], clocks, COUNT(clocks), &count, NULL), 0);
    assert_true(count > 50 && count < COUNT(clocks));
    assert_int_equal(clocks[0], 1410);
    assert_int_equal(clocks[count - 1], 210);
    for (size_t i = 1; i < count; i++)
        assert_true(clocks[i] < clocks[i - 1]);
    assert_int_equal(device_clocks(&list.devices[0], few, COUNT(few), &count, NULL), 0);
    assert_int_equal(count, COUNT(few));
    assert_int_equal(few[2], clocks[2]);
    stop();
}

/* The GPU is held, draws less, and is free again; the other one is as it was. */
static void test_ceiling(void **state)
{
    struct reading result = {.state = READING_OK, .value = 77};
    struct mono_time now;

    (void)state;
    start(NULL);
    emulator_set_load(emulator, 0, 300.0);
    emulator_set_load(emulator, 1, 300.0);
    assert_int_equal(device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, 900, &result, NULL), 0);
    assert_true(result.state != READING_OK); /* no driver tells */
    assert_int_equal(emulator_ceiling_mhz(emulator, 0), 900);
    assert_int_equal(emulator_ceiling_mhz(emulator, 1), 0);
    emulator_advance_s(emulator, 10.0);
    now = emulator_now(emulator);
    assert_true(clock_mhz(0) <= 900 && clock_mhz(0) >= 899);
    assert_int_equal(clock_mhz(1), 1410);
    assert_true(emulator_truth_power_w(emulator, 0, now) < 0.6 * emulator_truth_power_w(emulator, 1, now));
    assert_int_equal(device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, 0, &result, NULL), 0);
    assert_int_equal(emulator_ceiling_mhz(emulator, 0), 0);
    assert_int_equal(clock_mhz(0), 1410);
    /* Without work it idles under a ceiling as without. */
    emulator_set_load(emulator, 0, 0.0);
    assert_int_equal(device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, 900, &result, NULL), 0);
    assert_int_equal(clock_mhz(0), 210);
    stop();
}

static struct emulator_locks locks_of(unsigned gpu)
{
    return emulator_locks(emulator, gpu);
}

/* Both clocks are held between two, and each is free again without the other. */
static void test_hold(void **state)
{
    const struct device *device = &list.devices[0];
    int64_t clocks[4];
    size_t count;

    (void)state;
    start(NULL);
    assert_int_equal(device_hold_clocks(device, QUANTITY_CLOCK_CEILING, 900, 1200, NULL), 0);
    assert_int_equal(locks_of(0).floor_mhz, 900);
    assert_int_equal(locks_of(0).ceiling_mhz, 1200);
    assert_int_equal(locks_of(1).ceiling_mhz, 0);
    assert_int_equal(clock_mhz(0), 900); /* idle, at its floor */
    assert_int_equal(
        device_clocks_of(device, QUANTITY_MEMORY_CLOCK_CEILING, clocks, COUNT(clocks), &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(device_hold_clocks(device, QUANTITY_MEMORY_CLOCK_CEILING, 0, clocks[0] - 400, NULL), 0);
    assert_int_equal(locks_of(0).memory_ceiling_mhz, clocks[0] - 400);
    assert_int_equal(device_hold_clocks(device, QUANTITY_MEMORY_CLOCK_CEILING, 405, clocks[0], NULL), 0);
    assert_int_equal(locks_of(0).memory_floor_mhz, 405);
    assert_int_equal(device_hold_clocks(device, QUANTITY_CLOCK_CEILING, 0, 0, NULL), 0);
    assert_int_equal(locks_of(0).ceiling_mhz, 0);
    assert_int_equal(locks_of(0).memory_ceiling_mhz, clocks[0]);
    assert_int_equal(device_hold_clocks(device, QUANTITY_MEMORY_CLOCK_CEILING, 0, 0, NULL), 0);
    assert_int_equal(locks_of(0).memory_ceiling_mhz, 0);
    stop();
}

static void test_hold_refusals(void **state)
{
    static const struct {
        const char *script;
        enum quantity quantity;
        int64_t floor_mhz, ceiling_mhz;
        int code;
        const char *text;
    } cases[] = {
        {NULL, QUANTITY_CLOCK_CEILING, 1201, 1200, FLY_EUSAGE, "above its ceiling of 1200"},
        {NULL, QUANTITY_CLOCK_CEILING, -1, 1200, FLY_EUSAGE, "floor"},
        {NULL, QUANTITY_CLOCK_CEILING, 900, 1411, FLY_EUSAGE, "from 210 to 1410 MHz"},
        {NULL, QUANTITY_CLOCK_CEILING, 900, 0, FLY_EUSAGE, "from 210 to 1410 MHz"},
        {NULL, QUANTITY_MEMORY_CLOCK_CEILING, 0, 99999, FLY_EUSAGE, "ceiling of 99999 MHz"},
        {"call nvmlDeviceSetGpuLockedClocks no-permission", QUANTITY_CLOCK_CEILING, 900, 1200, FLY_EPERM,
         "-lgc 900,1200"},
        {"call nvmlDeviceSetMemoryLockedClocks no-permission", QUANTITY_MEMORY_CLOCK_CEILING, 0, 1000,
         FLY_EPERM, "-lmc 0,1000"},
        {"call nvmlDeviceResetMemoryLockedClocks no-permission", QUANTITY_MEMORY_CLOCK_CEILING, 0, 0,
         FLY_EPERM, "-rmc"},
        {"call nvmlDeviceSetMemoryLockedClocks return NOT_SUPPORTED", QUANTITY_MEMORY_CLOCK_CEILING, 0, 1000,
         FLY_EUNSUPPORTED, "ceiling on the memory clock to 1000 MHz"},
        {"missing nvmlDeviceSetMemoryLockedClocks", QUANTITY_MEMORY_CLOCK_CEILING, 0, 1000, FLY_EUNSUPPORTED,
         "memory clock"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_error error = {.text = ""};
        int code;

        start(cases[i].script);
        code = device_hold_clocks(&list.devices[0], cases[i].quantity, cases[i].floor_mhz,
                                  cases[i].ceiling_mhz, &error);
        if (code != cases[i].code || strstr(error.text, cases[i].text) == NULL)
            fail_msg("case %zu: %d '%s', expected %d '%s'", i, code, error.text, cases[i].code,
                     cases[i].text);
        assert_int_equal(locks_of(0).ceiling_mhz, 0);
        assert_int_equal(locks_of(0).memory_ceiling_mhz, 0);
        stop();
    }
}

static void test_range(void **state)
{
    static const int64_t outside[] = {1, -1, 209, 1411, INT64_MAX, INT64_MIN, (int64_t)UINT32_MAX + 1000};
    struct reading result = {.value = 77};
    struct fly_error error;

    (void)state;
    start(NULL);
    for (size_t i = 0; i < COUNT(outside); i++) {
        assert_int_equal(device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, outside[i], &result, &error),
                         FLY_EUSAGE);
        check_contains(error.text, "from 210 to 1410 MHz");
        assert_int_equal(result.value, 77);
        assert_int_equal(emulator_ceiling_mhz(emulator, 0), 0);
    }
    stop();
}

static void test_refusals(void **state)
{
    static const struct {
        const char *script;
        int64_t value;
        int code;
        const char *text;
    } cases[] = {
        {"call nvmlDeviceSetGpuLockedClocks no-permission", 900, FLY_EPERM, "-lgc 0,900"},
        {"call nvmlDeviceResetGpuLockedClocks no-permission", 0, FLY_EPERM, "-rgc"},
        {"call nvmlDeviceSetGpuLockedClocks return NOT_SUPPORTED", 900, FLY_EUNSUPPORTED, "900 MHz"},
        {"missing nvmlDeviceSetGpuLockedClocks", 900, FLY_EUNSUPPORTED, "nothing can be done"},
        {"missing nvmlDeviceResetGpuLockedClocks", 0, FLY_EUNSUPPORTED, "nothing can be done"},
        {"call nvmlDeviceSetGpuLockedClocks return UNKNOWN", 900, FLY_EREAD, "NVML 999"},
        {"call nvmlDeviceResetGpuLockedClocks return GPU_IS_LOST", 0, FLY_EREAD, "GPU clock free"},
        {"call nvmlDeviceGetSupportedMemoryClocks return NOT_SUPPORTED", 900, FLY_EUNSUPPORTED, "not known"},
        {"call nvmlDeviceGetSupportedGraphicsClocks return UNKNOWN", 900, FLY_EREAD, "not known"},
        {"missing nvmlDeviceGetSupportedGraphicsClocks", 900, FLY_EUNSUPPORTED, "not known"},
        {"call nvmlDeviceGetSupportedGraphicsClocks no-permission", 900, FLY_EPERM, "not known"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reading result = {.value = 77};
        struct fly_error error = {.text = ""};
        int code;

        start(cases[i].script);
        code = device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, cases[i].value, &result, &error);
        if (code != cases[i].code || strstr(error.text, cases[i].text) == NULL)
            fail_msg("with '%s': %d '%s', expected %d '%s'", cases[i].script, code, error.text, cases[i].code,
                     cases[i].text);
        assert_int_equal(result.value, 77);
        assert_int_equal(emulator_ceiling_mhz(emulator, 0), 0);
        stop();
    }
}

/* A device of another kind, and one that is lost. */
static void test_no_clocks(void **state)
{
    static const struct device_backend nothing = {.name = "nothing"};
    struct device device = {.backend = &nothing};
    struct reading result;
    struct fly_error error;
    int64_t clocks[4];
    size_t count;

    (void)state;
    assert_int_equal(device_clocks(&device, clocks, COUNT(clocks), &count, &error), FLY_EUNSUPPORTED);
    assert_int_equal(device_set(&device, QUANTITY_CLOCK_CEILING, 0, &result, &error), FLY_EUNSUPPORTED);
    check_contains(error.text, "ceiling on the GPU clock");
    start(NULL);
    emulator_lose(emulator, 0);
    assert_int_equal(device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, 900, &result, &error), FLY_EREAD);
    assert_int_equal(device_set(&list.devices[0], QUANTITY_CLOCK_CEILING, 0, &result, &error), FLY_EREAD);
    assert_int_equal(device_set(&list.devices[1], QUANTITY_CLOCK_CEILING, 900, &result, &error), 0);
    stop();
}

/* A ceiling has a name and no reading. */
static void test_names(void **state)
{
    (void)state;
    assert_int_equal(quantity_find("clock_ceiling_mhz"), -1);
    assert_int_equal(quantity_find_named("clock_ceiling_mhz"), QUANTITY_CLOCK_CEILING);
    assert_int_equal(quantity_find_named("power_limit_mw"), QUANTITY_POWER_LIMIT);
    assert_int_equal(quantity_find_named("clock_ceiling"), -1);
    assert_true((QUANTITY_ALL & QUANTITY_BIT(QUANTITY_CLOCK_CEILING)) == 0);
    assert_true((QUANTITIES_SETTABLE & QUANTITY_BIT(QUANTITY_CLOCK_CEILING)) != 0);
    assert_int_equal(QUANTITY_CLOCK_CEILING, QUANTITY_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold),      cmocka_unit_test(test_hold_refusals),
        cmocka_unit_test(test_clocks),    cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_range),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_clocks), cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
