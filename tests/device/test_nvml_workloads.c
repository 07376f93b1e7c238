/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of workload power profiles, and those of emulated GPUs through NVML: read, requested, refused. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/backend.h"
#include "device/setting.h"
#include "emulator/control.h"

static char state_path[64], library_path[512];
static struct emulator *emulator;
static struct device_list list;

static void start(const char *settings_text, const char *script)
{
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");
    struct emulator_settings settings = emulator_default_settings;
    struct device_options options = {.nvml_path = library_path};
    struct fault_list faults = {0};
    struct fly_error error;

    snprintf(state_path, sizeof state_path, "/tmp/flyball-test-workloads-%d", (int)getpid());
    snprintf(library_path, sizeof library_path, "%s/libnvidia-ml.so.1",
             directory != NULL ? directory : "build/emulator");
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);
    unlink(state_path);
    settings.any_user = true;
    if (emulator_settings_parse(&settings, settings_text, &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0 ||
        faults_parse(script, "test", &faults, &error) < 0)
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

static struct workload_set set_of(const char *text)
{
    struct workload_set set = {{0}};

    if (!workload_parse(text, &set))
        fail_msg("no set: '%s'", text);
    return set;
}

static void test_sets(void **state)
{
    static const struct {
        const char *given, *text, *hex;
    } cases[] = {
        {"none", "none", "0"},
        {"MAX_P", "MAX_P", "1"},
        {"max_q, Training", "MAX_Q,TRAINING", "100002"},
        {"7,7,LLM_TRAINING", "LLM_TRAINING", "80"},
        {"32,3,4", "MEMORY_BOUND,4,32", "100000018"},
        {"254", "254", "4000000000000000000000000000000000000000000000000000000000000000"},
    };
    static const char *const wrong[] = {"",    ",",   "MAX_Q,",         "255",    "-1",
                                        "1.5", "MAX", "MAX_Q TRAINING", "none,1", " 1"};
    static const char *const wrong_hex[] = {
        "", "00", "01", "0x1", "g", "A", "10000000000000000000000000000000000000000000000000000000000000000"};
    struct workload_set untouched = set_of("5");
    char text[WORKLOAD_TEXT_MAX], hex[WORKLOAD_HEX_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct workload_set set = set_of(cases[i].given), again = {{1}};

        assert_string_equal(workload_text(&set, text), cases[i].text);
        assert_string_equal(workload_hex(&set, hex), cases[i].hex);
        assert_true(workload_parse_hex(hex, &again));
        assert_true(workload_equals(&set, &again));
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (workload_parse(wrong[i], &untouched))
            fail_msg("taken for a set: '%s'", wrong[i]);
    }
    for (size_t i = 0; i < COUNT(wrong_hex); i++) {
        if (workload_parse_hex(wrong_hex[i], &untouched))
            fail_msg("taken for a number: '%s'", wrong_hex[i]);
    }
    assert_string_equal(workload_text(&untouched, text), "5");
}

/* Any set comes back from its text and from its number, and the operations agree with single profiles. */
static void test_random_sets(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct workload_set sets[2] = {{{0}}, {{0}}}, again, both, either, rest;
        char text[WORKLOAD_TEXT_MAX], hex[WORKLOAD_HEX_MAX];

        for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
            for (int i = 0; i < 2; i++) {
                if (test_below(&random, (unsigned)round % 9 + 1) == 0)
                    workload_add(&sets[i], id);
            }
        }
        assert_true(workload_parse(workload_text(&sets[0], text), &again));
        assert_true(workload_equals(&sets[0], &again));
        assert_true(workload_parse_hex(workload_hex(&sets[0], hex), &again));
        assert_true(workload_equals(&sets[0], &again));
        both = workload_common(&sets[0], &sets[1]);
        either = workload_union(&sets[0], &sets[1]);
        rest = workload_without(&sets[0], &sets[1]);
        for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
            bool first = workload_has(&sets[0], id), second = workload_has(&sets[1], id);

            assert_int_equal(workload_has(&both, id), first && second);
            assert_int_equal(workload_has(&either, id), first || second);
            assert_int_equal(workload_has(&rest, id), first && !second);
        }
        assert_true(workload_is_within(&both, &sets[0]) && workload_is_within(&sets[1], &either));
        assert_int_equal(workload_is_within(&sets[0], &sets[1]), workload_is_empty(&rest));
    }
}

/* By the function of today, and by the two older ones where the driver lacks that. */
static void test_request(void **state)
{
    static const char *const scripts[] = {
        "", "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return FUNCTION_NOT_FOUND\n",
        "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return NOT_SUPPORTED\n"};
    static const char *const sequence[] = {"MAX_Q", "MAX_Q,LLM_TRAINING", "COMPUTE,13", "none",
                                           "0,1,2,3,7,13,20"};

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        char text[WORKLOAD_TEXT_MAX];
        struct workloads now;

        start("gpus=2,time=virtual,model=b200", scripts[i]);
        assert_int_equal(device_read_workloads(&list.devices[0], &now), READING_OK);
        assert_string_equal(workload_text(&now.supported, text),
                            "MAX_P,MAX_Q,COMPUTE,MEMORY_BOUND,LLM_TRAINING,HPC,TRAINING");
        for (size_t step = 0; step < COUNT(sequence); step++) {
            struct workload_set wanted = set_of(sequence[step]);

            assert_int_equal(device_request_workloads(&list.devices[0], &wanted, NULL), 0);
            assert_int_equal(device_read_workloads(&list.devices[0], &now), READING_OK);
            assert_string_equal(workload_text(&now.requested, text), sequence[step][0] == '0'
                                                                         ? "MAX_P,MAX_Q,COMPUTE,MEMORY_BOUND,"
                                                                           "LLM_TRAINING,HPC,TRAINING"
                                                                     : step == 2 ? "COMPUTE,HPC"
                                                                                 : sequence[step]);
        }
        /* Of each group that with the lowest number of priority holds. */
        assert_string_equal(workload_text(&now.enforced, text), "MAX_P,COMPUTE,LLM_TRAINING");
        assert_int_equal(device_read_workloads(&list.devices[1], &now), READING_OK);
        assert_true(workload_is_empty(&now.requested));
        stop();
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *settings, *script, *wanted;
        int code;
        const char *text;
    } cases[] = {
        {"model=a100", "", "MAX_Q", FLY_EUNSUPPORTED, "since Blackwell"},
        {"model=h100", "", "none", FLY_EUNSUPPORTED, "since Blackwell"},
        {"model=b200", "", "4", FLY_EUSAGE, "does not offer the workload power profile 4; choose of MAX_P,"},
        {"model=b200", "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 no-permission\n", "MAX_Q",
         FLY_EPERM, "only root may"},
        {"model=b200", "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return UNKNOWN\n", "MAX_Q",
         FLY_EREAD, "(NVML 999)"},
        {"model=b200",
         "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return NOT_SUPPORTED\n"
         "call nvmlDeviceWorkloadPowerProfileSetRequestedProfiles return NOT_SUPPORTED\n",
         "MAX_Q", FLY_EUNSUPPORTED, "(NVML 3)"},
        {"model=b200", "call nvmlDeviceWorkloadPowerProfileGetCurrentProfiles return UNKNOWN\n", "MAX_Q",
         FLY_EREAD, "are not known"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct workload_set wanted = set_of(cases[i].wanted), now;
        struct fly_error error = {.text = ""};

        start(cases[i].settings, cases[i].script);
        assert_int_equal(device_request_workloads(&list.devices[0], &wanted, &error), cases[i].code);
        check_contains(error.text, cases[i].text);
        now = emulator_requested_workloads(emulator, 0);
        assert_true(workload_is_empty(&now));
        stop();
    }
}

/* If the second of the two older functions fails, the first is undone. */
static void test_half_a_request(void **state)
{
    struct workload_set first = set_of("MAX_Q"), second = set_of("HPC"), now;

    (void)state;
    start("model=b200", "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return FUNCTION_NOT_FOUND\n"
                        "call nvmlDeviceWorkloadPowerProfileClearRequestedProfiles nth 1 return UNKNOWN\n");
    assert_int_equal(device_request_workloads(&list.devices[0], &first, NULL), 0);
    assert_int_equal(device_request_workloads(&list.devices[0], &second, NULL), FLY_EREAD);
    now = emulator_requested_workloads(emulator, 0);
    assert_true(workload_equals(&now, &first));
    stop();
}

/* Numbers and sets through one interface. */
static void test_settings(void **state)
{
    struct setting limit = setting_number(700000), profiles = {.workloads = set_of("MAX_Q")}, now;

    (void)state;
    start("model=b200", "");
    assert_int_equal(setting_make(&list.devices[0], QUANTITY_POWER_LIMIT, &limit, NULL), 0);
    assert_int_equal(setting_make(&list.devices[0], QUANTITY_WORKLOADS, &profiles, NULL), 0);
    assert_int_equal(setting_read(&list.devices[0], QUANTITY_POWER_LIMIT, &now), READING_OK);
    assert_true(setting_equals(&now, &limit));
    assert_int_equal(setting_read(&list.devices[0], QUANTITY_WORKLOADS, &now), READING_OK);
    assert_true(setting_equals(&now, &profiles));
    assert_false(setting_equals(&limit, &profiles));
    assert_int_equal(setting_read(&list.devices[0], QUANTITY_CLOCK_CEILING, &now), READING_UNSUPPORTED);
    assert_int_equal(device_check_set(&list.devices[0], QUANTITY_WORKLOADS, 1, NULL), FLY_EUNSUPPORTED);
    assert_int_equal(quantity_find_named("workload_profiles"), QUANTITY_WORKLOADS);
    assert_int_equal(quantity_find("workload_profiles"), -1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),           cmocka_unit_test(test_random_sets),
        cmocka_unit_test(test_request),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_half_a_request), cmocka_unit_test(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
