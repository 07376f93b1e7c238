/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's driver library, loaded as a program would: what it answers. */
#include "emulator_support.h"

static void test_identity(void **state)
{
    struct emulator *emulator = start("gpus=3,model=h100", NULL);
    char text[NVML_NAME_BYTES], again[NVML_NAME_BYTES];
    struct nvml_device *handle = NULL;
    struct nvml_pci_info pci;
    unsigned count = 0, number = 0;

    (void)state;
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_UNINITIALIZED);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(count, 3);
    assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(3, &handle), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetIndex(NULL, &number), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetIndex(device(0), NULL), NVML_INVALID_ARGUMENT);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(nvml.nvmlDeviceGetUUID(device(i), text, sizeof text), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlDeviceGetHandleByUUID(text, &handle), NVML_SUCCESS);
        assert_ptr_equal(handle, device(i));
        assert_int_equal(nvml.nvmlDeviceGetPciInfo_v3(device(i), &pci), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &handle), NVML_SUCCESS);
        assert_ptr_equal(handle, device(i));
        assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id_legacy, &handle), NVML_SUCCESS);
        assert_ptr_equal(handle, device(i));
        assert_int_equal(nvml.nvmlDeviceGetUUID(device((i + 1) % count), again, sizeof again), NVML_SUCCESS);
        assert_string_not_equal(text, again);
    }
    assert_int_equal(nvml.nvmlDeviceGetName(device(0), text, 5), NVML_INSUFFICIENT_SIZE);
    assert_int_equal(nvml.nvmlDeviceGetName(device(0), text, sizeof text), NVML_SUCCESS);
    assert_string_equal(text, "Emulated H100-SXM5-80GB (Flyball)");
    assert_int_equal(nvml.nvmlSystemGetDriverVersion(text, sizeof text), NVML_SUCCESS);
    check_contains(text, "flyball-emulator");
    check_contains(nvml.flyball_emulator_version(), "flyball-emulator");
    check_contains(nvml.nvmlErrorString(NVML_GPU_IS_LOST), "emulator");
    check_contains(nvml.nvmlErrorString(12345), "does not have");
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_UNINITIALIZED);
    stop(emulator);
}

/* A divided GPU: instances have names and a parent, and no readings of their own. */
static void test_instances(void **state)
{
    struct emulator *emulator = start("gpus=2,model=h100,mig=3", NULL);
    struct emulator_settings settings = *emulator_settings_of(emulator);
    struct nvml_device *instance = NULL, *again = NULL, *parent = NULL;
    struct nvml_device_attributes attributes;
    struct fly_error error;
    char uuid[NVML_UUID_BYTES], name[NVML_NAME_BYTES];
    unsigned current = 0, pending = 0, number = 7;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetMigMode(device(1), &current, &pending), NVML_SUCCESS);
    assert_int_equal(current, NVML_ENABLED);
    assert_int_equal(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device(1), 3, &instance), NVML_NOT_FOUND);
    assert_int_equal(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device(1), 2, &instance), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceIsMigDeviceHandle(instance, &number), NVML_SUCCESS);
    assert_int_equal(number, 1);
    assert_int_equal(nvml.nvmlDeviceIsMigDeviceHandle(device(1), &number), NVML_SUCCESS);
    assert_int_equal(number, 0);
    assert_int_equal(nvml.nvmlDeviceGetUUID(instance, uuid, sizeof uuid), NVML_SUCCESS);
    assert_memory_equal(uuid, "MIG-", 4);
    assert_int_equal(nvml.nvmlDeviceGetHandleByUUID(uuid, &again), NVML_SUCCESS);
    assert_ptr_equal(again, instance);
    assert_int_equal(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance, &parent), NVML_SUCCESS);
    assert_ptr_equal(parent, device(1));
    assert_int_equal(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(parent, &again),
                     NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetName(instance, name, sizeof name), NVML_SUCCESS);
    assert_string_equal(name, "Emulated H100-SXM5-80GB (Flyball) MIG 1g.10gb");
    assert_int_equal(nvml.nvmlDeviceGetAttributes_v2(instance, &attributes), NVML_SUCCESS);
    assert_int_equal(attributes.memory_mib, 10240);
    assert_int_equal(nvml.nvmlDeviceGetPowerUsage(instance, &number), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetHandleByUUID("MIG-nobody", &again), NVML_NOT_FOUND);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
    assert_int_equal(emulator_settings_parse(&settings, "model=v100,faults=/dev/null", NULL), 0);
    assert_int_equal(emulator_create(state_path, &settings, &emulator, &error), FLY_EUSAGE);
    check_contains(error.text, "v100 has no MIG");
}

static unsigned application_clock(unsigned type, bool by_default)
{
    unsigned clock_mhz = 0;

    assert_int_equal((by_default ? nvml.nvmlDeviceGetDefaultApplicationsClock
                                 : nvml.nvmlDeviceGetApplicationsClock)(device(0), type, &clock_mhz),
                     NVML_SUCCESS);
    return clock_mhz;
}

/* Clocks of applications are checked, hold work down until they are reset, and are root's unless it opens
 * them. */
static void test_applications(void **state)
{
    struct emulator *emulator = start("gpus=1,model=a100,time=virtual,any-user,sensor=exact", NULL);
    unsigned number = 7;
    unsigned long long reasons = 0;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(application_clock(NVML_CLOCK_GRAPHICS, false), 1410);
    assert_int_equal(application_clock(NVML_CLOCK_MEMORY, true), 1593);
    assert_int_equal(nvml.nvmlDeviceGetApplicationsClock(device(0), NVML_CLOCK_VIDEO, &number),
                     NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetApplicationsClock(device(0), 9, &number), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceSetApplicationsClocks(device(0), 1593, 1409), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceSetApplicationsClocks(device(0), 1593, 1425), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceSetApplicationsClocks(device(0), 1593, 195), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceSetApplicationsClocks(device(0), 877, 705), NVML_INVALID_ARGUMENT);
    assert_int_equal(application_clock(NVML_CLOCK_SM, false), 1410);
    assert_int_equal(nvml.nvmlDeviceSetApplicationsClocks(device(0), 1593, 705), NVML_SUCCESS);
    assert_int_equal(application_clock(NVML_CLOCK_SM, false), 705);
    assert_int_equal(application_clock(NVML_CLOCK_SM, true), 1410);
    emulator_set_load(emulator, 0, 300.0);
    emulator_advance_s(emulator, 5.0);
    assert_int_equal(nvml.nvmlDeviceGetClockInfo(device(0), NVML_CLOCK_SM, &number), NVML_SUCCESS);
    assert_int_equal(number, 705);
    assert_int_equal(nvml.nvmlDeviceGetCurrentClocksEventReasons(device(0), &reasons), NVML_SUCCESS);
    assert_int_equal(reasons, NVML_REASON_APPLICATION_CLOCKS);
    assert_int_equal(nvml.nvmlDeviceSetGpuLockedClocks(device(0), 210, 1410), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceResetApplicationsClocks(device(0)), NVML_SUCCESS);
    emulator_advance_s(emulator, 5.0);
    assert_int_equal(nvml.nvmlDeviceGetClockInfo(device(0), NVML_CLOCK_SM, &number), NVML_SUCCESS);
    assert_int_equal(number, 1410);
    assert_int_equal(nvml.nvmlDeviceGetAPIRestriction(device(0), NVML_API_APPLICATION_CLOCKS, &number),
                     NVML_SUCCESS);
    assert_int_equal(number, NVML_ENABLED);
    assert_int_equal(nvml.nvmlDeviceSetAPIRestriction(device(0), NVML_API_AUTO_BOOSTED_CLOCKS, 0),
                     NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceSetComputeMode(device(0), NVML_COMPUTE_EXCLUSIVE_THREAD),
                     NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

static unsigned power_field(unsigned field_id, unsigned scope, int code)
{
    struct nvml_field_value field = {.field_id = field_id, .scope_id = scope};

    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device(0), 1, &field), NVML_SUCCESS);
    assert_int_equal(field.code, code);
    return code == NVML_SUCCESS ? field.value.ui : 0;
}

static unsigned long long energy_field(unsigned scope)
{
    struct nvml_field_value field = {.field_id = NVML_FIELD_ENERGY, .scope_id = scope};

    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device(0), 1, &field), NVML_SUCCESS);
    assert_int_equal(field.code, NVML_SUCCESS);
    return field.value.ull;
}

/* The module of a GH200 contains its GPU; other boards have none. */
static void test_module(void **state)
{
    struct emulator *emulator =
        start("gpus=1,model=gh200,time=virtual,any-user,sensor=exact,noise-w=0,settle-ms=1", NULL);
    unsigned long long gpu_mj, module_mj;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    emulator_set_load(emulator, 0, 900.0);
    emulator_advance_s(emulator, 10.0);
    assert_int_equal(power_field(NVML_FIELD_POWER_INSTANT, NVML_SCOPE_GPU, NVML_SUCCESS), 900000);
    assert_int_equal(power_field(NVML_FIELD_POWER_INSTANT, NVML_SCOPE_MODULE, NVML_SUCCESS), 1000000);
    assert_int_equal(power_field(NVML_FIELD_POWER_LIMIT_MAX, NVML_SCOPE_GPU, NVML_SUCCESS), 900000);
    assert_int_equal(power_field(NVML_FIELD_POWER_LIMIT_MAX, NVML_SCOPE_MODULE, NVML_SUCCESS), 1000000);
    power_field(NVML_FIELD_POWER_LIMIT_MIN, NVML_SCOPE_MODULE, NVML_NOT_SUPPORTED);
    power_field(NVML_FIELD_POWER_INSTANT, NVML_SCOPE_MEMORY, NVML_NOT_SUPPORTED);
    gpu_mj = energy_field(NVML_SCOPE_GPU);
    module_mj = energy_field(NVML_SCOPE_MODULE);
    emulator_advance_s(emulator, 10.0);
    assert_in_range(energy_field(NVML_SCOPE_GPU) - gpu_mj, 8999990, 9000010);
    assert_in_range(energy_field(NVML_SCOPE_MODULE) - module_mj, 9999990, 10000010);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
    emulator = start("gpus=1,model=h100,time=virtual", NULL);
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    power_field(NVML_FIELD_POWER_INSTANT, NVML_SCOPE_MODULE, NVML_NOT_SUPPORTED);
    power_field(NVML_FIELD_POWER_LIMIT_MAX, NVML_SCOPE_MODULE, NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* What no emulated board has is refused in one way, as on boards without it, and never answered with zeros.
 */
static void test_unsupported(void **state)
{
    struct emulator *emulator = start("gpus=1,model=v100", NULL);
    struct nvml_pci_info pci;
    unsigned long mask[2] = {1, 2};
    unsigned first = 7, second = 8;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetDriverModel(device(0), &first, &second), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetDriverModel_v2(device(0), &first, &second), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetNvLinkState(device(0), 0, &first), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetNvLinkCapability(device(0), 0, 0, &first), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(device(0), 0, &pci), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetCpuAffinity(device(0), 2, mask), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetMemoryAffinity(device(0), 2, mask, 0), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceSetCpuAffinity(device(0)), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetFanSpeed_v2(device(0), 0, &first), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetNvLinkState(NULL, 0, &first), NVML_INVALID_ARGUMENT);
    assert_true(first == 7 && second == 8 && mask[0] == 1 && mask[1] == 2);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

static void test_limits_and_clocks(void **state)
{
    struct emulator *emulator = start("gpus=1,model=a100,time=virtual,any-user,sensor=exact", NULL);
    struct nvml_power_value_v2 limit = {
        .version = NVML_POWER_VALUE_V2, .scope = NVML_SCOPE_GPU, .power_mw = 150000};
    const double static_w = 60.0 + 15.0 * 240.0 / 340.0; /* of 300 W */
    unsigned lowest = 0, highest = 0, number = 0;
    unsigned long long reasons = 0;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetPowerManagementLimitConstraints(device(0), &lowest, &highest),
                     NVML_SUCCESS);
    assert_int_equal(lowest, 100000);
    assert_int_equal(highest, 400000);
    assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit(device(0), 99999), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit(device(0), 400001), NVML_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit_v2(device(0), &limit), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetPowerManagementLimit(device(0), &number), NVML_SUCCESS);
    assert_int_equal(number, 150000);
    assert_int_equal(nvml.nvmlDeviceGetCurrentClocksEventReasons(device(0), &reasons), NVML_SUCCESS);
    assert_int_equal(reasons, NVML_REASON_IDLE);
    emulator_set_load(emulator, 0, 300.0);
    emulator_advance_s(emulator, 5.0);
    assert_int_equal(nvml.nvmlDeviceGetPowerUsage(device(0), &number), NVML_SUCCESS);
    assert_int_equal(number, 150000);
    assert_int_equal(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device(0), &reasons), NVML_SUCCESS);
    assert_int_equal(reasons, NVML_REASON_POWER_CAP);
    assert_int_equal(nvml.nvmlDeviceGetClockInfo(device(0), NVML_CLOCK_SM, &number), NVML_SUCCESS);
    assert_int_equal(number, (unsigned)(1410 * cbrt((150.0 - static_w) / (300.0 - static_w))));
    assert_int_equal(nvml.nvmlDeviceSetGpuLockedClocks(device(0), 210, 705), NVML_SUCCESS);
    emulator_advance_s(emulator, 5.0);
    assert_int_equal(nvml.nvmlDeviceGetPowerUsage(device(0), &number), NVML_SUCCESS);
    assert_int_equal(number, (unsigned)(1000.0 * (static_w + (300.0 - static_w) * 0.5 * 0.65 * 0.65) + 0.5));
    assert_int_equal(nvml.nvmlDeviceResetGpuLockedClocks(device(0)), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* The field ids against the functions, and what a board does not have. */
static void test_fields(void **state)
{
    struct emulator *emulator = start("gpus=1,model=h100,time=virtual", NULL);
    struct nvml_field_value fields[] = {
        {.field_id = NVML_FIELD_TOTAL_ENERGY},
        {.field_id = NVML_FIELD_POWER_INSTANT},
        {.field_id = NVML_FIELD_POWER_AVERAGE},
        {.field_id = NVML_FIELD_POWER_LIMIT_MAX},
        {.field_id = NVML_FIELD_POWER_INSTANT, .scope_id = NVML_SCOPE_MODULE},
        {.field_id = 4711},
    };
    struct nvml_sample samples[200];
    struct flyball_emulator_sensor sensor;
    unsigned long long energy_mj = 0;
    unsigned power_mw = 0, type = 0, count = COUNT(samples);

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    emulator_set_load(emulator, 0, 500.0);
    emulator_advance_s(emulator, 0.7);
    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device(0), (int)COUNT(fields), fields), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &energy_mj), NVML_SUCCESS);
    assert_int_equal(fields[0].code, NVML_SUCCESS);
    assert_int_equal(fields[0].value.ull, energy_mj);
    assert_int_equal(nvml.nvmlDeviceGetPowerUsage(device(0), &power_mw), NVML_SUCCESS);
    assert_int_equal(fields[2].value.ui, power_mw);
    assert_true(fields[1].value.ui > 499000 && fields[1].value.ui <= 500000);
    assert_true(power_mw < 400000);
    assert_int_equal(fields[3].value.ui, 700000);
    assert_int_equal(fields[4].code, NVML_NOT_SUPPORTED);
    assert_int_equal(fields[5].code, NVML_NOT_SUPPORTED);
    assert_int_equal(
        nvml.nvmlDeviceGetSamples(device(0), NVML_SAMPLES_TOTAL_POWER, 0, &type, &count, samples),
        NVML_SUCCESS);
    assert_true(count >= 6 && count <= 8);
    assert_int_equal(samples[count - 1].value.ui, power_mw);
    for (unsigned i = 1; i < count; i++)
        assert_int_equal(samples[i].timestamp_us - samples[i - 1].timestamp_us, 100000);
    assert_int_equal(nvml.flyball_emulator_sensor(device(0), &sensor), NVML_SUCCESS);
    check_double(sensor.average_window_s, 1.0);
    check_double(sensor.instant_window_s, 0.025);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* A load that comes and goes every 50 ms is half at work; time held down by the limit adds up. */
static void test_use(void **state)
{
    struct emulator *emulator = start("gpus=1,model=v100,time=virtual", NULL);
    struct nvml_violation_time capped, later;
    struct nvml_utilization use;
    struct nvml_temperature_v1 temperature = {.version = NVML_TEMPERATURE_V1};
    unsigned number = 0;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(emulator_set_limit_w(emulator, 0, 150.0, NULL), 0);
    assert_int_equal(nvml.nvmlDeviceGetUtilizationRates(device(0), &use), NVML_SUCCESS);
    assert_int_equal(use.gpu, 0);
    for (int i = 0; i < 20; i++) {
        emulator_set_load(emulator, 0, i % 2 == 0 ? 200.0 : 0.0);
        emulator_advance_s(emulator, 0.05);
    }
    assert_int_equal(nvml.nvmlDeviceGetUtilizationRates(device(0), &use), NVML_SUCCESS);
    assert_true(use.gpu >= 35 && use.gpu <= 65);
    assert_int_equal(nvml.nvmlDeviceGetViolationStatus(device(0), NVML_POLICY_POWER, &capped), NVML_SUCCESS);
    assert_int_equal(capped.violation_ns, 500000000);
    emulator_advance_s(emulator, 1.0);
    assert_int_equal(nvml.nvmlDeviceGetViolationStatus(device(0), NVML_POLICY_POWER, &later), NVML_SUCCESS);
    assert_int_equal(later.violation_ns, capped.violation_ns);
    assert_int_equal(later.reference_us - capped.reference_us, 1000000);
    assert_int_equal(nvml.nvmlDeviceGetViolationStatus(device(0), 9, &later), NVML_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetTemperature(device(0), NVML_TEMPERATURE_GPU, &number), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetTemperatureV(device(0), &temperature), NVML_SUCCESS);
    assert_int_equal(temperature.temperature_c, number);
    assert_true(number > 30 && number < 60);
    temperature.version = 1;
    assert_int_equal(nvml.nvmlDeviceGetTemperatureV(device(0), &temperature), NVML_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* The same history by the same calls: the same answers, to the last digit. */
static void test_virtual_time_repeats(void **state)
{
    unsigned long long answers[2][300];

    (void)state;
    for (int run = 0; run < 2; run++) {
        struct emulator *emulator = start("gpus=1,time=virtual,noise-w=3,counter=power,latency-us=37", NULL);
        uint64_t random = 5;

        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        for (int i = 0; i < 300; i += 3) {
            unsigned power_mw = 0;

            emulator_set_load(emulator, 0, 500.0 * test_uniform(&random));
            emulator_advance_s(emulator, test_uniform(&random));
            assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &answers[run][i]),
                             NVML_SUCCESS);
            assert_int_equal(nvml.nvmlDeviceGetPowerUsage(device(0), &power_mw), NVML_SUCCESS);
            answers[run][i + 1] = power_mw;
            answers[run][i + 2] = (unsigned long long)emulator_now(emulator).ns;
        }
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
    assert_memory_equal(answers[0], answers[1], sizeof answers[0]);
}

/* Reads and turns what another thread does too; the first failing code, or 0. */
static void *use_often(void *data)
{
    unsigned *failed = data;
    unsigned power_mw;
    unsigned long long energy_mj, last_mj = 0;

    for (int i = 0; i < 2000 && *failed == 0; i++) {
        *failed |= (unsigned)nvml.nvmlInit_v2();
        *failed |= (unsigned)nvml.nvmlDeviceGetPowerUsage(device(0), &power_mw);
        *failed |= (unsigned)nvml.nvmlDeviceSetPowerManagementLimit(device(0), 100000 + (unsigned)i);
        *failed |= (unsigned)nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &energy_mj);
        *failed |= energy_mj < last_mj;
        last_mj = energy_mj;
        *failed |= (unsigned)nvml.nvmlShutdown();
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct emulator *emulator =
        start("gpus=1,any-user,counter-period-ms=0,counter=power", "every 1000000 lost");
    pthread_t threads[4];
    unsigned failed[COUNT(threads)] = {0};

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, &failed[i]), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failed[i], 0);
    }
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_instances),
        cmocka_unit_test(test_applications),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_module),
        cmocka_unit_test(test_limits_and_clocks),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_use),
        cmocka_unit_test(test_virtual_time_repeats),
        cmocka_unit_test(test_threads),
    };

    return emulator_support_begin() != 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
