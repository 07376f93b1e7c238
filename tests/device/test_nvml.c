/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML back end against a driver library that answers what each test wants. */
#include "test.h"

#include "device/nvidia/sensor_facts.h"
#include "nvml/opened.h"

static struct reading read_one(const struct opened *opened, size_t gpu, enum quantity quantity)
{
    struct device_reading reading;

    device_read(&opened->list.devices[gpu], &clock_real, QUANTITY_BIT(quantity), &reading);
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if (i != (int)quantity)
            assert_int_equal(reading.values[i].state, READING_NOT_READ);
    }
    return reading.values[quantity];
}

static void check_value(const struct reading *reading, enum quantity quantity, int64_t value)
{
    if (reading->state == READING_OK && reading->value == value)
        return;
    fail_msg("%s is %lld, %s; expected %lld", quantity_facts[quantity].key, (long long)reading->value,
             reading_state_word(reading->state), (long long)value);
}

static void check_state(const struct reading *reading, enum quantity quantity, enum reading_state state,
                        int code)
{
    if (reading->state == state && reading->code == code && reading->value == 0)
        return;
    fail_msg("%s is %s, code %d, value %lld; expected %s, code %d", quantity_facts[quantity].key,
             reading_state_word(reading->state), reading->code, (long long)reading->value,
             reading_state_word(state), code);
}

/* -1: the old library has it not. */
static const struct expected {
    enum quantity quantity;
    int64_t now, once;
    enum standin_slot slot; /* that a new library answers with */
} expected[] = {
    {QUANTITY_ENERGY, 1000LL * STANDIN_ENERGY_MJ, -1, STANDIN_energy},
    {QUANTITY_POWER_INSTANT, STANDIN_INSTANT_MW, STANDIN_POWER_MW, STANDIN_fields},
    {QUANTITY_POWER_AVERAGE, STANDIN_AVERAGE_MW, -1, STANDIN_fields},
    {QUANTITY_POWER_LIMIT, STANDIN_LIMIT_MW, STANDIN_LIMIT_MW, STANDIN_limit},
    {QUANTITY_POWER_LIMIT_ENFORCED, STANDIN_ENFORCED_MW, STANDIN_ENFORCED_MW, STANDIN_limit_enforced},
    {QUANTITY_POWER_LIMIT_DEFAULT, STANDIN_DEFAULT_MW, STANDIN_DEFAULT_MW, STANDIN_limit_default},
    {QUANTITY_POWER_LIMIT_MIN, STANDIN_LOWEST_MW, STANDIN_LOWEST_MW, STANDIN_limit_range},
    {QUANTITY_POWER_LIMIT_MAX, STANDIN_HIGHEST_MW, STANDIN_HIGHEST_MW, STANDIN_limit_range},
    {QUANTITY_CLOCK_GPU, STANDIN_CLOCK_MHZ, STANDIN_CLOCK_MHZ, STANDIN_clock},
    {QUANTITY_CLOCK_GPU_MAX, STANDIN_CLOCK_MAX_MHZ, STANDIN_CLOCK_MAX_MHZ, STANDIN_clock_max},
    {QUANTITY_CLOCK_MEMORY, STANDIN_MEMORY_MHZ, STANDIN_MEMORY_MHZ, STANDIN_clock},
    {QUANTITY_TEMPERATURE, STANDIN_TEMPERATURE_C, STANDIN_TEMPERATURE_C, STANDIN_temperature},
    {QUANTITY_UTILIZATION, STANDIN_BUSY_PERCENT, STANDIN_BUSY_PERCENT, STANDIN_utilization},
    {QUANTITY_UTILIZATION_MEMORY, STANDIN_MEMORY_PERCENT, STANDIN_MEMORY_PERCENT, STANDIN_utilization},
    {QUANTITY_THROTTLE, STANDIN_REASONS, STANDIN_REASONS, STANDIN_throttle},
    {QUANTITY_PERSISTENCE, 1, -1, STANDIN_persistence},
    {QUANTITY_MIG, 0, -1, STANDIN_mig_mode},
    {QUANTITY_POWER_MODULE, STANDIN_MODULE_MW, -1, STANDIN_fields},
    {QUANTITY_ENERGY_MODULE, 1000LL * STANDIN_MODULE_ENERGY_MJ, -1, STANDIN_fields},
};
_Static_assert(COUNT(expected) == QUANTITY_COUNT, "a row for every quantity");

static void test_reads_all(void **state)
{
    struct opened *opened = opened_load("new");
    struct device_reading reading;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    assert_int_equal(opened->list.count, 1);
    device_read(&opened->list.devices[0], &clock_real, QUANTITY_ALL, &reading);
    for (size_t i = 0; i < COUNT(expected); i++)
        check_value(&reading.values[expected[i].quantity], expected[i].quantity, expected[i].now);
    opened_close(opened);
}

static void test_reads_old_names(void **state)
{
    struct opened *opened = opened_load("old");
    struct device_reading reading;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    assert_int_equal(opened->list.count, 1);
    assert_string_equal(opened->list.devices[0].info.pci, "00000000:80:00.0");
    assert_int_equal(opened->list.devices[0].info.minor, -1);
    device_read(&opened->list.devices[0], &clock_real, QUANTITY_ALL, &reading);
    for (size_t i = 0; i < COUNT(expected); i++) {
        const struct reading *got = &reading.values[expected[i].quantity];

        if (expected[i].once < 0)
            check_state(got, expected[i].quantity, READING_MISSING, NVML_FUNCTION_NOT_FOUND);
        else
            check_value(got, expected[i].quantity, expected[i].once);
    }
    opened_close(opened);
}

static void test_says_who_it_is(void **state)
{
    struct opened *opened = opened_load("new");
    const struct device_info *info;

    (void)state;
    opened->standin->gpus = 3;
    assert_int_equal(opened_gpus(opened), 0);
    assert_int_equal(opened->list.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        info = &opened->list.devices[i].info;
        assert_int_equal(info->index, i);
        assert_int_equal(info->minor, 7 + i);
        assert_int_equal(info->uuid[strlen(info->uuid) - 1], '0' + i);
    }
    assert_int_equal(info->kind, DEVICE_GPU);
    assert_string_equal(info->name, "NVIDIA H100 80GB HBM3");
    assert_string_equal(info->pci, "00000001:82:1F.0");
    assert_string_equal(info->driver, "550.54.14");
    assert_false(info->emulated || info->estimated || info->module_power || info->mig || info->denied);
    assert_true(info->energy_modulus_uj == 0);
    assert_string_equal(info->note, "");
    opened_close(opened);
}

static void test_nameless(void **state)
{
    struct opened *opened = opened_load("new");

    (void)state;
    opened->standin->codes[STANDIN_uuid] = opened->standin->codes[STANDIN_name] = NVML_UNKNOWN;
    assert_int_equal(opened_gpus(opened), 0);
    assert_string_equal(opened->list.devices[0].info.name, "");
    assert_string_equal(opened->list.devices[0].info.uuid, "pci-00000001:80:1F.0");
    device_list_close(&opened->list);
    opened->standin->codes[STANDIN_pci] = NVML_UNKNOWN;
    assert_int_equal(opened_gpus(opened), 0);
    assert_string_equal(opened->list.devices[0].info.uuid, "nvidia-0");
    opened_close(opened);
}

/* One call for an energy; one for all fields, and one for each function, however many quantities it answers.
 */
static void test_calls_no_more_than_needed(void **state)
{
    struct opened *opened = opened_load("new");
    struct device_reading reading;
    unsigned before;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    before = opened_calls(opened);
    (void)read_one(opened, 0, QUANTITY_ENERGY);
    assert_int_equal(opened_calls(opened) - before, 1);
    before = opened->standin->calls[STANDIN_fields];
    device_read(&opened->list.devices[0], &clock_real,
                QUANTITY_BIT(QUANTITY_POWER_INSTANT) | QUANTITY_BIT(QUANTITY_POWER_AVERAGE), &reading);
    assert_int_equal(opened->standin->calls[STANDIN_fields] - before, 1);
    before = opened_calls(opened);
    device_read(&opened->list.devices[0], &clock_real, QUANTITY_ALL, &reading);
    assert_int_equal(opened_calls(opened) - before, QUANTITY_COUNT - 5); /* two pairs and four fields share */
    opened_close(opened);
}

static void test_asks_once_for_what_is_not_there(void **state)
{
    struct opened *opened = opened_load("new");
    struct reading reading;
    unsigned before;

    (void)state;
    opened->standin->codes[STANDIN_energy] = NVML_NOT_SUPPORTED;
    for (int scope = 0; scope < 4; scope++)
        opened->standin->field_codes[scope][NVML_FIELD_TOTAL_ENERGY] =
            opened->standin->field_codes[scope][NVML_FIELD_ENERGY] = NVML_INVALID_ARGUMENT;
    assert_int_equal(opened_gpus(opened), 0);
    before = opened_calls(opened);
    reading = read_one(opened, 0, QUANTITY_ENERGY);
    check_state(&reading, QUANTITY_ENERGY, READING_UNSUPPORTED, NVML_INVALID_ARGUMENT);
    assert_int_equal(opened_calls(opened), before);
    opened_close(opened);
}

struct code_case {
    int code;
    enum reading_state state;
};
static enum reading_state state_of(int code)
{
    static const struct code_case cases[] = {
        {NVML_SUCCESS, READING_OK},
        {NVML_NOT_SUPPORTED, READING_UNSUPPORTED},
        {NVML_DEPRECATED, READING_UNSUPPORTED},
        {NVML_ARGUMENT_VERSION_MISMATCH, READING_UNSUPPORTED},
        {NVML_FUNCTION_NOT_FOUND, READING_MISSING},
        {NVML_NO_PERMISSION, READING_DENIED},
        {NVML_GPU_IS_LOST, READING_LOST},
        {NVML_GPU_NOT_FOUND, READING_LOST},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (cases[i].code == code)
            return cases[i].state;
    }
    return READING_FAILED;
}

#define CODE(name, number, meaning) number,
static const int all_codes[] = {NVML_RETURNS(CODE) 12345, -1};

/* Each code of each function while reading, and of each field; the other quantities stay readable. */
static void test_every_code_of_every_function(void **state)
{
    struct opened *opened = opened_load("new");
    struct reading lost;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    for (size_t i = 0; i < COUNT(expected) * COUNT(all_codes); i++) {
        const struct expected *at = &expected[i / COUNT(all_codes)];
        int code = all_codes[i % COUNT(all_codes)];
        struct reading reading;

        opened->standin->codes[at->slot] = code;
        reading = read_one(opened, 0, at->quantity);
        if (code == NVML_SUCCESS)
            check_value(&reading, at->quantity, at->now);
        else
            check_state(&reading, at->quantity, state_of(code), code);
        opened->standin->codes[at->slot] = 0;
    }
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_POWER_INSTANT] = NVML_GPU_IS_LOST;
    lost = read_one(opened, 0, QUANTITY_POWER_INSTANT);
    check_state(&lost, QUANTITY_POWER_INSTANT, READING_LOST, NVML_GPU_IS_LOST);
    assert_int_equal(read_one(opened, 0, QUANTITY_POWER_AVERAGE).state, READING_OK);
    opened_close(opened);
}

static void test_types_of_fields(void **state)
{
    static const unsigned types[] = {NVML_VALUE_DOUBLE, NVML_VALUE_UNSIGNED, NVML_VALUE_SIGNED,
                                     NVML_VALUE_SIGNED_LONG_LONG, NVML_VALUE_UNSIGNED_LONG};
    struct opened *opened = opened_load("new");
    struct reading reading;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    for (size_t i = 0; i < COUNT(types); i++) {
        opened->standin->field_type = types[i];
        reading = read_one(opened, 0, QUANTITY_POWER_INSTANT);
        check_value(&reading, QUANTITY_POWER_INSTANT, STANDIN_INSTANT_MW);
    }
    opened->standin->field_type = 77;
    reading = read_one(opened, 0, QUANTITY_POWER_INSTANT);
    check_state(&reading, QUANTITY_POWER_INSTANT, READING_FAILED, NVML_UNKNOWN);
    opened_close(opened);
}

/* What nvmlDeviceGetPowerUsage means where the fields are not to be had. */
static const struct chip_case {
    const char *name;
    unsigned architecture;
    int major, minor;
    enum quantity is, is_not;
} chip_cases[] = {
    {"Tesla P100", NVML_PASCAL, 6, 0, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
    {"Tesla V100", NVML_VOLTA, 7, 0, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
    {"Tesla T4", NVML_TURING, 7, 5, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
    {"NVIDIA A100-SXM4-80GB", NVML_AMPERE, 8, 0, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
    {"NVIDIA A100-SXM4-80GB", NVML_AMPERE, 0, 0, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
    {"NVIDIA A30", NVML_AMPERE, 0, 0, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
    {"NVIDIA RTX A3000", NVML_AMPERE, 0, 0, QUANTITY_POWER_AVERAGE, QUANTITY_POWER_INSTANT},
    {"NVIDIA A40", NVML_AMPERE, 8, 6, QUANTITY_POWER_AVERAGE, QUANTITY_POWER_INSTANT},
    {"NVIDIA L40S", NVML_ADA, 8, 9, QUANTITY_POWER_AVERAGE, QUANTITY_POWER_INSTANT},
    {"NVIDIA H100", NVML_HOPPER, 9, 0, QUANTITY_POWER_AVERAGE, QUANTITY_POWER_INSTANT},
    {"NVIDIA B200", NVML_BLACKWELL, 10, 0, QUANTITY_POWER_AVERAGE, QUANTITY_POWER_INSTANT},
    {"", NVML_ARCHITECTURE_UNKNOWN, 0, 0, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE},
};

static void test_power_by_chip(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(chip_cases); i++) {
        const struct chip_case *at = &chip_cases[i];
        struct opened *opened = opened_load("new");
        struct reading reading;

        opened->standin->name = at->name;
        opened->standin->architecture = at->architecture;
        opened->standin->capability_major = at->major;
        opened->standin->capability_minor = at->minor;
        opened->standin->codes[STANDIN_fields] = NVML_NOT_SUPPORTED;
        assert_int_equal(opened_gpus(opened), 0);
        reading = read_one(opened, 0, at->is);
        check_value(&reading, at->is, STANDIN_POWER_MW);
        reading = read_one(opened, 0, at->is_not);
        check_state(&reading, at->is_not, READING_UNSUPPORTED, NVML_NOT_SUPPORTED);
        assert_true((opened->list.devices[0].info.sensor.power_window_s == 1.0) ==
                    (at->is == QUANTITY_POWER_AVERAGE));
        opened_close(opened);
    }
}

static void test_sensor_facts(void **state)
{
    static const struct {
        unsigned architecture;
        int minor;
        double power_period_s, power_window_s;
    } cases[] = {
        {NVML_VOLTA, 0, 0.02, 0.01},  {NVML_TURING, 5, 0.1, 0.1},
        {NVML_AMPERE, 0, 0.1, 0.025}, {NVML_AMPERE, 6, 0.1, 0.1},
        {NVML_HOPPER, 0, 0.1, 0.025}, {NVML_BLACKWELL, 0, 0.1, 0.025},
        {NVML_RUBIN, 0, 0.1, 0.025},  {NVML_ARCHITECTURE_UNKNOWN, 0, 0.1, 0.025},
        {0, 0, 0.1, 0.025},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gpu_chip chip = {.architecture = cases[i].architecture,
                                .capability_major = 8,
                                .capability_minor = cases[i].minor,
                                .name = ""};
        struct sensor_facts instant = gpu_sensor_facts(&chip, true), average = gpu_sensor_facts(&chip, false);

        check_double(instant.power_period_s, cases[i].power_period_s);
        check_double(instant.power_window_s, cases[i].power_window_s);
        check_double(average.power_window_s, 1.0);
        check_double(average.counter_period_s, instant.counter_period_s);
        check_double(instant.gain_error, 0.05);
        assert_true(instant.source[0] != '\0');
    }
}

/* A function that a device does not offer, and what takes its place. */
static const struct instead_case {
    enum standin_slot slot;
    int code;
    enum quantity quantity;
    int64_t value;
} instead_cases[] = {
    {STANDIN_energy, NVML_NOT_SUPPORTED, QUANTITY_ENERGY, 1000LL * STANDIN_ENERGY_MJ},
    {STANDIN_energy, NVML_FUNCTION_NOT_FOUND, QUANTITY_ENERGY, 1000LL * STANDIN_ENERGY_MJ},
    {STANDIN_limit, NVML_NOT_SUPPORTED, QUANTITY_POWER_LIMIT, STANDIN_LIMIT_MW},
    {STANDIN_limit_default, NVML_NOT_SUPPORTED, QUANTITY_POWER_LIMIT_DEFAULT, STANDIN_DEFAULT_MW},
    {STANDIN_limit_enforced, NVML_NOT_SUPPORTED, QUANTITY_POWER_LIMIT_ENFORCED, STANDIN_ENFORCED_MW},
    {STANDIN_limit_range, NVML_NOT_SUPPORTED, QUANTITY_POWER_LIMIT_MIN, STANDIN_LOWEST_MW},
    {STANDIN_limit_range, NVML_NOT_SUPPORTED, QUANTITY_POWER_LIMIT_MAX, STANDIN_HIGHEST_MW},
    {STANDIN_temperature, NVML_NOT_SUPPORTED, QUANTITY_TEMPERATURE, STANDIN_TEMPERATURE_C},
    {STANDIN_temperature, NVML_ARGUMENT_VERSION_MISMATCH, QUANTITY_TEMPERATURE, STANDIN_TEMPERATURE_C},
};

static void test_what_takes_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(instead_cases); i++) {
        const struct instead_case *at = &instead_cases[i];
        struct opened *opened = opened_load("new");
        struct reading reading;

        opened->standin->codes[at->slot] = at->code;
        assert_int_equal(opened_gpus(opened), 0);
        reading = read_one(opened, 0, at->quantity);
        check_value(&reading, at->quantity, at->value);
        assert_false(opened->list.devices[0].info.module_power);
        opened_close(opened);
    }
}

/* Success with a value of 0 is no figure, in any scope. */
static void test_empty_scopes(void **state)
{
    struct opened *opened = opened_load("new");
    struct reading reading;

    (void)state;
    opened->standin->codes[STANDIN_energy] = opened->standin->codes[STANDIN_power] = NVML_NOT_SUPPORTED;
    opened->standin->empty_scopes[NVML_SCOPE_GPU] = true;
    assert_int_equal(opened_gpus(opened), 0);
    reading = read_one(opened, 0, QUANTITY_ENERGY);
    check_state(&reading, QUANTITY_ENERGY, READING_UNSUPPORTED, NVML_SUCCESS);
    reading = read_one(opened, 0, QUANTITY_POWER_MODULE);
    check_value(&reading, QUANTITY_POWER_MODULE, STANDIN_MODULE_MW);
    opened->standin->empty_scopes[NVML_SCOPE_MODULE] = true;
    reading = read_one(opened, 0, QUANTITY_POWER_MODULE);
    check_state(&reading, QUANTITY_POWER_MODULE, READING_UNSUPPORTED, NVML_SUCCESS);
    device_list_close(&opened->list);
    assert_int_equal(opened_gpus(opened), 0);
    assert_false(opened->list.devices[0].info.module_power);
    reading = read_one(opened, 0, QUANTITY_ENERGY);
    check_state(&reading, QUANTITY_ENERGY, READING_UNSUPPORTED, NVML_SUCCESS);
    reading = read_one(opened, 0, QUANTITY_POWER_AVERAGE);
    check_state(&reading, QUANTITY_POWER_AVERAGE, READING_UNSUPPORTED, NVML_NOT_SUPPORTED);
    opened_close(opened);
}

/* A way that fails for the moment is kept: a reading that comes back must mean what it meant. */
static void test_keeps_a_way_that_fails_now(void **state)
{
    struct opened *opened = opened_load("new");
    struct reading reading;

    (void)state;
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_POWER_INSTANT] = NVML_TIMEOUT;
    assert_int_equal(opened_gpus(opened), 0);
    reading = read_one(opened, 0, QUANTITY_POWER_INSTANT);
    check_state(&reading, QUANTITY_POWER_INSTANT, READING_FAILED, NVML_TIMEOUT);
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_POWER_INSTANT] = 0;
    reading = read_one(opened, 0, QUANTITY_POWER_INSTANT);
    check_value(&reading, QUANTITY_POWER_INSTANT, STANDIN_INSTANT_MW);
    opened_close(opened);
}

/* A module's figures never take the place of the GPU's, whichever of those the driver lacks. */
static void test_module(void **state)
{
    static const enum quantity of_gpu[] = {QUANTITY_ENERGY, QUANTITY_POWER_INSTANT, QUANTITY_POWER_AVERAGE};
    struct opened *opened = opened_load("new");
    struct reading reading;

    (void)state;
    assert_int_equal(opened_gpus(opened), 0);
    assert_string_equal(opened->list.devices[0].info.note, "");
    device_list_close(&opened->list);
    opened->standin->codes[STANDIN_energy] = NVML_NOT_SUPPORTED;
    opened->standin->codes[STANDIN_power] = NVML_NOT_SUPPORTED;
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_TOTAL_ENERGY] = NVML_NOT_SUPPORTED;
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_ENERGY] = NVML_NOT_SUPPORTED;
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_POWER_INSTANT] = NVML_NOT_SUPPORTED;
    opened->standin->field_codes[NVML_SCOPE_GPU][NVML_FIELD_POWER_AVERAGE] = NVML_NOT_SUPPORTED;
    assert_int_equal(opened_gpus(opened), 0);
    for (size_t i = 0; i < COUNT(of_gpu); i++) {
        reading = read_one(opened, 0, of_gpu[i]);
        assert_int_equal(reading.state, READING_UNSUPPORTED);
    }
    reading = read_one(opened, 0, QUANTITY_ENERGY_MODULE);
    check_value(&reading, QUANTITY_ENERGY_MODULE, 1000LL * STANDIN_MODULE_ENERGY_MJ);
    reading = read_one(opened, 0, QUANTITY_POWER_MODULE);
    check_value(&reading, QUANTITY_POWER_MODULE, STANDIN_MODULE_MW);
    assert_false(opened->list.devices[0].info.module_power);
    check_contains(opened->list.devices[0].info.note, "tells the power of its module only");
    opened_close(opened);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_reads_all),
    cmocka_unit_test(test_reads_old_names),
    cmocka_unit_test(test_says_who_it_is),
    cmocka_unit_test(test_nameless),
    cmocka_unit_test(test_calls_no_more_than_needed),
    cmocka_unit_test(test_asks_once_for_what_is_not_there),
    cmocka_unit_test(test_every_code_of_every_function),
    cmocka_unit_test(test_types_of_fields),
    cmocka_unit_test(test_power_by_chip),
    cmocka_unit_test(test_sensor_facts),
    cmocka_unit_test(test_what_takes_its_place),
    cmocka_unit_test(test_empty_scopes),
    cmocka_unit_test(test_keeps_a_way_that_fails_now),
    cmocka_unit_test(test_module),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
