/* SPDX-License-Identifier: Apache-2.0 */
/* Power, energy and power limits. */
#include "emulator/getter.h"
#include "emulator/sensor.h"

static int get_usage(const struct call *call, unsigned *out_value)
{
    *out_value = sensor_usage_mw(call->gpu, call->now_ns);
    return NVML_SUCCESS;
}

static int get_limit(const struct call *call, unsigned *out_value)
{
    *out_value = call->gpu->limit_mw;
    return NVML_SUCCESS;
}

static int get_enforced_limit(const struct call *call, unsigned *out_value)
{
    *out_value = gpu_enforced_mw(call->gpu);
    return NVML_SUCCESS;
}

static int get_default_limit(const struct call *call, unsigned *out_value)
{
    *out_value = call->gpu->default_limit_mw;
    return NVML_SUCCESS;
}

static int get_enabled(const struct call *call, unsigned *out_value)
{
    (void)call;
    *out_value = NVML_ENABLED;
    return NVML_SUCCESS;
}

/* clang-format off */
GETTER(nvmlDeviceGetPowerUsage, get_usage)
GETTER(nvmlDeviceGetPowerManagementMode, get_enabled)
GETTER(nvmlDeviceGetPowerManagementLimit, get_limit)
GETTER(nvmlDeviceGetEnforcedPowerLimit, get_enforced_limit)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, get_default_limit)
/* clang-format on */

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *energy_mj)
{
    struct call call;
    int code = call_device(&call, __func__, device, energy_mj != NULL);

    if (code == NVML_SUCCESS && call.gpu->sensor.counter_missing)
        return call_end(&call, NVML_NOT_SUPPORTED);
    if (code == NVML_SUCCESS)
        *energy_mj = sensor_read_counter_mj(call.gpu, call.now_ns);
    return call_end(&call, code);
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned *lowest_mw,
                                                 unsigned *highest_mw)
{
    struct call call;
    int code = call_device(&call, __func__, device, lowest_mw != NULL && highest_mw != NULL);

    if (code == NVML_SUCCESS) {
        *lowest_mw = gpu_lowest_mw(call.gpu);
        *highest_mw = gpu_highest_mw(call.gpu);
    }
    return call_end(&call, code);
}

static int set_limit(const char *function, const struct nvml_device *device, bool given, unsigned limit_mw)
{
    struct call call;
    int code = call_setting(&call, function, device, given);

    if (code != NVML_SUCCESS)
        return code;
    if (limit_mw < gpu_lowest_mw(call.gpu) || limit_mw > gpu_highest_mw(call.gpu))
        return call_end(&call, NVML_INVALID_ARGUMENT);
    call.gpu->limit_mw = call.gpu->step_mw != 0 ? limit_mw - limit_mw % call.gpu->step_mw : limit_mw;
    gpu_changed(call.gpu, call.now_ns);
    return call_end(&call, NVML_SUCCESS);
}

int nvmlDeviceSetPowerManagementLimit(struct nvml_device *device, unsigned limit_mw)
{
    return set_limit(__func__, device, true, limit_mw);
}

int nvmlDeviceSetPowerManagementLimit_v2(struct nvml_device *device, struct nvml_power_value_v2 *limit)
{
    if (limit != NULL && limit->version != NVML_POWER_VALUE_V2)
        return NVML_ARGUMENT_VERSION_MISMATCH;
    return set_limit(__func__, device, limit != NULL && limit->scope == NVML_SCOPE_GPU,
                     limit != NULL ? limit->power_mw : 0);
}

int flyball_emulator_sensor(struct nvml_device *device, struct flyball_emulator_sensor *sensor)
{
    struct call call;
    int code = call_device(&call, __func__, device, sensor != NULL);
    const struct emulator_sensor *of;

    if (code != NVML_SUCCESS)
        return code;
    of = &call.gpu->sensor;
    *sensor = (struct flyball_emulator_sensor){
        .counter_period_s = (double)of->counter.period_ns / 1e9,
        .power_period_s = (double)of->power_period_ns / 1e9,
        .instant_window_s = of->instant_window_s,
        .average_window_s = of->average_window_s,
        .counter_from_power = of->counter_from_power,
        .usage_is_average = of->usage_is_average,
    };
    return call_end(&call, code);
}
