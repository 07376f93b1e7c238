/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML back end over the emulator: what boards offer, GPUs that fall off the bus, and every function at
 * fault. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/backend.h"
#include "device/nvidia/nvml_library.h"
#include "device/nvidia/sensor_facts.h"
#include "emulator/boards.h"
#include "emulator/control.h"

static char state_path[64], library_path[512];
static struct device_list list;

static struct emulator *start(const char *settings_text)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator = NULL;
    struct fly_error error = {.code = 0};
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");

    snprintf(library_path, sizeof library_path, "%s/libnvidia-ml.so.1",
             directory != NULL ? directory : "build/emulator");
    snprintf(state_path, sizeof state_path, "/tmp/flyball-test-nvml-%d", (int)getpid());
    unlink(state_path);
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);
    settings.ideal = true;
    if (emulator_settings_parse(&settings, settings_text, &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0)
        fail_msg("%s", error.text);
    return emulator;
}

static void stop(struct emulator *emulator)
{
    device_list_close(&list);
    emulator_close(emulator);
    assert_int_equal(emulator_remove(state_path, NULL), 0);
}

static int open_gpus(struct fly_error *out_error)
{
    struct device_options options = {.nvml_path = library_path};

    memset(&list, 0, sizeof list);
    return device_backend_nvml.open(&options, &list, out_error);
}

static struct device_reading read_gpu(size_t gpu)
{
    struct device_reading reading;

    device_read(&list.devices[gpu], &clock_real, QUANTITY_ALL, &reading);
    return reading;
}

/* The figures stated for a board's sensors are those that the emulated board has. */
static void test_boards(void **state)
{
    (void)state;
    for (const struct emulated_board *board = emulated_boards; board->name != NULL; board++) {
        char settings[64];
        const struct device_info *info;
        struct emulator *emulator;
        struct device_reading reading;

        snprintf(settings, sizeof settings, "gpus=1,time=virtual,model=%s", board->name);
        emulator = start(settings);
        assert_int_equal(open_gpus(NULL), 0);
        info = &list.devices[0].info;
        assert_true(info->emulated);
        assert_true(info->uuid[0] != '\0' && info->pci[0] != '\0' && info->driver[0] != '\0');
        check_contains(info->name, board->title);
        assert_int_equal(info->memory_bytes, board->memory_bytes);
        check_double(info->sensor.counter_period_s, board->counter_period_s);
        check_double(info->sensor.power_period_s, board->power_period_s);
        check_double(info->sensor.power_window_s, board->instant_window_s);
        reading = read_gpu(0);
        for (int i = 0; i < QUANTITY_COUNT; i++) {
            bool has = i == QUANTITY_POWER_AVERAGE ? board->average_window_s > 0.0
                       : i == QUANTITY_POWER_MODULE || i == QUANTITY_ENERGY_MODULE
                           ? board->module_limit_w > 0.0
                           : true;

            if (i == QUANTITY_MIG)
                continue;
            if ((reading.values[i].state == READING_OK) != has)
                fail_msg("%s of a %s is %s", quantity_facts[i].key, board->name,
                         reading_state_word(reading.values[i].state));
        }
        stop(emulator);
    }
}

/* Found by its name, where the loader is told to look there first. */
static void test_by_name(void **state)
{
    const char *path = getenv("LD_LIBRARY_PATH"), *directory = getenv("FLYBALL_TEST_EMULATOR");
    struct device_options options = {.nvml_path = NULL};
    struct emulator *emulator;

    (void)state;
    if (path == NULL || directory == NULL || strstr(path, directory) == NULL) {
        print_message("# skipped: the emulator is not in LD_LIBRARY_PATH\n");
        skip();
    }
    emulator = start("gpus=2,time=virtual");
    memset(&list, 0, sizeof list);
    assert_int_equal(device_backend_nvml.open(&options, &list, NULL), 0);
    assert_int_equal(list.count, 2);
    assert_true(list.devices[1].info.emulated);
    stop(emulator);
}

static void test_lost(void **state)
{
    struct emulator *emulator = start("gpus=3,time=virtual");
    struct device_reading reading;

    (void)state;
    assert_int_equal(open_gpus(NULL), 0);
    emulator_lose(emulator, 1);
    reading = read_gpu(1);
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        assert_true(reading.values[i].state == READING_LOST ||
                    reading.values[i].state == READING_UNSUPPORTED);
        assert_int_equal(reading.values[i].value, 0);
    }
    assert_int_equal(reading.values[QUANTITY_ENERGY].state, READING_LOST);
    assert_int_equal(read_gpu(0).values[QUANTITY_ENERGY].state, READING_OK);
    device_list_close(&list);
    (void)open_gpus(NULL);
    assert_int_equal(list.count, 3); /* it keeps its place */
    assert_int_equal(read_gpu(1).values[QUANTITY_ENERGY].state, READING_LOST);
    assert_int_equal(read_gpu(2).values[QUANTITY_ENERGY].state, READING_OK);
    stop(emulator);
}

static void test_reset_counter(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,model=v100");
    struct device_reading before, after;
    uint64_t used_uj = 7;

    (void)state;
    assert_int_equal(open_gpus(NULL), 0);
    emulator_advance_s(emulator, 100.0);
    before = read_gpu(0);
    emulator_reset_counter(emulator, 0);
    emulator_advance_s(emulator, 1.0);
    after = read_gpu(0);
    assert_int_equal(after.values[QUANTITY_ENERGY].state, READING_OK);
    assert_true(after.values[QUANTITY_ENERGY].value < before.values[QUANTITY_ENERGY].value);
    assert_false(counter_delta_uj(list.devices[0].info.energy_modulus_uj,
                                  (uint64_t)before.values[QUANTITY_ENERGY].value,
                                  (uint64_t)after.values[QUANTITY_ENERGY].value, &used_uj));
    assert_true(used_uj == 7);
    stop(emulator);
}

#define CALL_SYMBOL(slot, required, type, ...) #type,
static const char *const functions[] = {NVML_CALLS(CALL_SYMBOL)};
static const char *const actions[] = {
    "missing",        "no-permission",  "return GPU_IS_LOST",  "return UNKNOWN",
    "return TIMEOUT", "return NO_DATA", "return NOT_SUPPORTED"};

/* Nothing that failed has a value, and GPU 1, of which the script does not speak, answers as ever. */
static void check_list(const char *script)
{
    for (size_t gpu = 0; gpu < list.count; gpu++) {
        struct device_reading reading = read_gpu(gpu);

        assert_true(list.devices[gpu].info.uuid[0] != '\0');
        for (int i = 0; i < QUANTITY_COUNT; i++) {
            const struct reading *at = &reading.values[i];

            if (at->state == READING_NOT_READ || (at->state != READING_OK && at->value != 0))
                fail_msg("with '%s', %s of GPU %zu is %s with value %lld", script, quantity_facts[i].key, gpu,
                         reading_state_word(at->state), (long long)at->value);
        }
        if (gpu == 1 && (reading.values[QUANTITY_ENERGY].state != READING_OK ||
                         reading.values[QUANTITY_POWER_INSTANT].state != READING_OK))
            fail_msg("with '%s', GPU 1 suffers", script);
    }
}

/* Each function fails in each way, from the start and from a later call on; and for all GPUs. */
static void test_every_fault(void **state)
{
    static const char *const when[] = {"gpu 0 call %s %s", "gpu 0 call %s from 2 %s",
                                       "gpu 0 call %s nth 1 %s", "call %s %s"};
    struct emulator *emulator = start("gpus=2,time=virtual");

    (void)state;
    for (size_t i = 0; i < COUNT(functions) * COUNT(actions) * COUNT(when); i++) {
        const char *form = when[i % COUNT(when)];
        char script[160];
        struct fault_list faults;
        struct fly_error error = {.code = 0};
        int code;

        snprintf(script, sizeof script, form, functions[i / COUNT(when) / COUNT(actions)],
                 actions[i / COUNT(when) % COUNT(actions)]);
        if (faults_parse(script, "script", &faults, &error) < 0)
            fail_msg("%s", error.text);
        emulator_set_faults(emulator, &faults);
        code = open_gpus(&error);
        if (code < 0)
            assert_true(error.text[0] != '\0' &&
                        (code == FLY_EUNSUPPORTED || code == FLY_EPERM || code == FLY_EREAD));
        if (strncmp(form, "gpu 0", 5) == 0) {
            if (list.count != 2)
                fail_msg("with '%s' there are %zu GPUs: %s", script, list.count, error.text);
            check_list(script);
        } else {
            for (size_t gpu = 0; gpu < list.count; gpu++)
                (void)read_gpu(gpu);
        }
        device_list_close(&list);
    }
    emulator_set_faults(emulator, &(struct fault_list){.count = 0});
    stop(emulator);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_boards),        cmocka_unit_test(test_by_name),     cmocka_unit_test(test_lost),
    cmocka_unit_test(test_reset_counter), cmocka_unit_test(test_every_fault),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
