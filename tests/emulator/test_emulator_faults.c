/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's fault scripts: what they do to calls, and what is said of bad ones. */
#include "emulator_support.h"

/* Scripts, and the codes of six readings of GPU 0's power, and of one of GPU 1's behind them. */
static const struct {
    const char *script;
    int codes[6];
    int other;
} fault_cases[] = {
    {"", {0}, 0},
    {"gpu 0 call nvmlDeviceGetPowerUsage nth 3 return 15", {0, 0, 15}, 0},
    {"call nvmlDeviceGetPowerUsage from 5 return TIMEOUT", {0, 0, 0, 0, 10, 10}, 10},
    {"gpu 1 call nvmlDeviceGetPowerUsage return 999", {0}, 999},
    {"gpu 0 every 2 return UNKNOWN", {999, 0, 999, 0, 999, 0}, 0}, /* the handle was the first call */
    {"missing nvmlDeviceGetPowerUsage", {13, 13, 13, 13, 13, 13}, 13},
    {"gpu 0 call nvmlDeviceGetPowerUsage no-permission", {4, 4, 4, 4, 4, 4}, 0},
    {"gpu 0 call nvmlDeviceGetPowerUsage nth 2 lost", {0, 15, 15, 15, 15, 15}, 0},
    {"gpu 0 at 3.5s lost", {0, 0, 0, 15, 15, 15}, 0}, /* a second goes by before each */
    {"count machine\ngpu 0 call nvmlDeviceGetPowerUsage nth 2 return 9 # once\n\n", {0, 9}, 0},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fault_cases); i++) {
        struct emulator *emulator = start("gpus=2,time=virtual", fault_cases[i].script);
        struct nvml_device *handles[2];
        unsigned power_mw = 0;

        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        handles[0] = device(0);
        handles[1] = device(1);
        for (int call = 0; call < 6; call++) {
            int code;

            emulator_advance_s(emulator, 1.0);
            code = nvml.nvmlDeviceGetPowerUsage(handles[0], &power_mw);
            if (code != fault_cases[i].codes[call])
                fail_msg("'%s', call %d: %d, expected %d", fault_cases[i].script, call + 1, code,
                         fault_cases[i].codes[call]);
        }
        assert_int_equal(nvml.nvmlDeviceGetPowerUsage(handles[1], &power_mw), fault_cases[i].other);
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
}

static void test_slow_hot_and_reset(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,latency-us=50,counter-period-ms=0",
                                      "call nvmlDeviceGetTotalEnergyConsumption nth 2 slow 200ms\n"
                                      "call nvmlDeviceGetTotalEnergyConsumption nth 3 reset-counter\n"
                                      "call nvmlDeviceGetName hot\n");
    unsigned long long energy_mj = 0, before_mj, reasons = 0;
    char name[NVML_NAME_BYTES];
    int64_t before_ns;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    before_ns = emulator_now(emulator).ns;
    assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &before_mj), NVML_SUCCESS);
    assert_int_equal(emulator_now(emulator).ns - before_ns, 2 * 50000);
    assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &energy_mj), NVML_SUCCESS);
    assert_int_equal(emulator_now(emulator).ns - before_ns, 4 * 50000 + 200000000);
    assert_true(energy_mj >= before_mj + 12000);
    assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &energy_mj), NVML_SUCCESS);
    assert_int_equal(energy_mj, 0);
    assert_int_equal(nvml.nvmlDeviceGetName(device(0), name, sizeof name), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetCurrentClocksEventReasons(device(0), &reasons), NVML_SUCCESS);
    assert_int_equal(reasons, NVML_REASON_IDLE | NVML_REASON_SOFTWARE_THERMAL);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
    emulator = start("gpus=1", "call nvmlInit_v2 nth 1 return DRIVER_NOT_LOADED");
    assert_int_equal(nvml.nvmlInit_v2(), NVML_DRIVER_NOT_LOADED);
    assert_int_equal(nvml.nvmlShutdown(), NVML_UNINITIALIZED);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

static void test_scripts_that_cannot_be_read(void **state)
{
    static const struct {
        const char *script, *message;
    } cases[] = {
        {"gpu x lost", "s:1: 'x': expected the index of a GPU"},
        {"\n# fine\ncall printf lost", "s:3: 'printf': expected the name of a function"},
        {"call nvmlDeviceGetPowerUsge lost",
         "'nvmlDeviceGetPowerUsge': expected nvmlDeviceGetPowerUsage, perhaps"},
        {"call nvmlInit nth 0 lost", "s:1: '0': expected a number of calls"},
        {"call nvmlInit return MAYBE", "s:1: 'MAYBE': expected a code"},
        {"slow 3", "s:1: '3': expected a time such as 200ms"},
        {"slow 2d", "expected a time"},
        {"gpu 0", "s:1: the line ends where return, slow"},
        {"gpu 0 explode", "s:1: 'explode': expected return, slow"},
        {"lost now", "s:1: 'now': expected the end of the line"},
        {"count all", "s:1: 'all': expected process or machine"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fault_list *list = calloc(1, sizeof *list);
        struct fly_error error = {.text = ""};

        assert_int_equal(faults_parse(cases[i].script, "s", list, &error), FLY_EDATA);
        check_contains(error.text, cases[i].message);
        assert_int_equal(list->count, 0);
        free(list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_slow_hot_and_reset),
        cmocka_unit_test(test_scripts_that_cannot_be_read),
    };

    return emulator_support_begin() != 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
