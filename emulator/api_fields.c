/* SPDX-License-Identifier: Apache-2.0 */
/* Values by field id, and the driver's buffer of power samples. */
#include "emulator/api.h"
#include "emulator/call.h"
#include "emulator/sensor.h"

enum { SAMPLES_MAX = 120, NS_PER_US = 1000 };

/* The time stamp of an answer that was made at `made_ns`. */
static long long stamp_us(const struct call *call, int64_t made_ns)
{
    const struct emulator_sensor *sensor = &call->gpu->sensor;
    int64_t stamp_ns = sensor->stamps == EMULATOR_STAMPS_READ ? call->now_ns : made_ns;

    if (sensor->stamps == EMULATOR_STAMPS_LATE)
        stamp_ns += sensor->stamps_late_ns;
    return state_date_ns(call->state, stamp_ns) / NS_PER_US;
}

static void answer_unsigned(struct nvml_field_value *field, unsigned value)
{
    field->value_type = NVML_VALUE_UNSIGNED;
    field->value.ui = value;
    field->code = NVML_SUCCESS;
}

static void answer_long(struct nvml_field_value *field, double value)
{
    field->value_type = NVML_VALUE_UNSIGNED_LONG_LONG;
    field->value.ull = (unsigned long long)(value + 0.5);
    field->code = NVML_SUCCESS;
}

static void answer_energy(const struct call *call, struct nvml_field_value *field)
{
    if (call->gpu->sensor.counter_missing)
        return;
    field->value_type = NVML_VALUE_UNSIGNED_LONG_LONG;
    field->value.ull = sensor_read_counter_mj(call->gpu, call->now_ns);
    field->timestamp_us = stamp_us(call, sensor_counter_made_ns(call->gpu, call->now_ns));
    field->code = NVML_SUCCESS;
}

/* The GPU's power as a sensor of the board gives it; false where there is no such reading. */
static bool read_power(const struct call *call, unsigned field_id, unsigned *out_power_mw)
{
    const struct emulated_gpu *gpu = call->gpu;
    bool is_average = field_id == NVML_FIELD_POWER_AVERAGE;

    if (!(is_average ? sensor_has_average(gpu) : sensor_has_instant(gpu)))
        return false;
    *out_power_mw = (is_average ? sensor_average_mw : sensor_instant_mw)(gpu, call->now_ns);
    return true;
}

static void answer_power(const struct call *call, struct nvml_field_value *field)
{
    unsigned power_mw;

    if (read_power(call, field->field_id, &power_mw))
        answer_unsigned(field, power_mw);
    field->timestamp_us = stamp_us(call, sensor_power_made_ns(call->gpu, call->now_ns));
}

/* Whether the module's figures are asked for, or those of another part; only such fields have a scope. */
static bool is_of_other(const struct nvml_field_value *field)
{
    return field->scope_id != NVML_SCOPE_GPU && (field->field_id == NVML_FIELD_ENERGY ||
                                                 (field->field_id >= NVML_FIELD_POWER_AVERAGE &&
                                                  field->field_id <= NVML_FIELD_POWER_LIMIT_ENFORCED) ||
                                                 field->field_id == NVML_FIELD_POWER_LIMIT_REQUESTED);
}

/* The module's figures contain the GPU's. No board here has a sensor for its memory's power. */
static void answer_module(const struct call *call, struct nvml_field_value *field)
{
    const struct emulated_board *board = gpu_board(call->gpu);
    double rest_mj = board->module_rest_w * (double)(call->now_ns - call->state->created_ns) / 1e6;
    unsigned power_mw;

    if (field->scope_id != NVML_SCOPE_MODULE || board->module_limit_w <= 0.0)
        return;
    switch (field->field_id) {
    case NVML_FIELD_ENERGY:
        answer_energy(call, field);
        field->value.ull += (unsigned long long)(rest_mj + 0.5);
        break;
    case NVML_FIELD_POWER_AVERAGE:
    case NVML_FIELD_POWER_INSTANT:
        if (read_power(call, field->field_id, &power_mw))
            answer_unsigned(field, power_mw + (unsigned)(board->module_rest_w * 1000.0));
        break;
    case NVML_FIELD_POWER_LIMIT_MIN:
        break;
    default:
        answer_unsigned(field, (unsigned)(board->module_limit_w * 1000.0));
    }
}

static void answer_field(const struct call *call, struct nvml_field_value *field)
{
    const struct emulated_gpu *gpu = call->gpu;

    switch (field->field_id) {
    case NVML_FIELD_TOTAL_ENERGY:
    case NVML_FIELD_ENERGY:
        answer_energy(call, field);
        break;
    case NVML_FIELD_POWER_AVERAGE:
    case NVML_FIELD_POWER_INSTANT:
        answer_power(call, field);
        break;
    case NVML_FIELD_POWER_LIMIT_MIN:
        answer_unsigned(field, gpu_lowest_mw(gpu));
        break;
    case NVML_FIELD_POWER_LIMIT_MAX:
        answer_unsigned(field, gpu_highest_mw(gpu));
        break;
    case NVML_FIELD_POWER_LIMIT_DEFAULT:
        answer_unsigned(field, gpu->default_limit_mw);
        break;
    case NVML_FIELD_POWER_LIMIT_ENFORCED:
        answer_unsigned(field, gpu_enforced_mw(gpu));
        break;
    case NVML_FIELD_POWER_LIMIT_REQUESTED:
        answer_unsigned(field, gpu->limit_mw);
        break;
    case NVML_FIELD_POWER_VIOLATION_TIME:
        answer_long(field, history_capped_s(&gpu->history, call->now_ns) * 1e6);
        break;
    case NVML_FIELD_THERMAL_VIOLATION_TIME:
        answer_long(field, history_hot_s(&gpu->history, call->now_ns) * 1e6);
        break;
    case NVML_FIELD_SOFTWARE_THERMAL_NS:
        answer_long(field, history_hot_s(&gpu->history, call->now_ns) * 1e9);
        break;
    case NVML_FIELD_HARDWARE_THERMAL_NS:
    case NVML_FIELD_POWER_BRAKE_NS:
        answer_long(field, 0.0);
        break;
    default:
        break;
    }
}

int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *fields)
{
    struct call call;
    int code = call_device(&call, __func__, device, fields != NULL && count > 0);

    for (int i = 0; code == NVML_SUCCESS && i < count; i++) {
        fields[i].timestamp_us = state_date_ns(call.state, call.now_ns) / NS_PER_US;
        fields[i].latency_us = 0;
        fields[i].code = NVML_NOT_SUPPORTED;
        (is_of_other(&fields[i]) ? answer_module : answer_field)(&call, &fields[i]);
    }
    return call_end(&call, code);
}

/* Returns the power readings after `last_us`, oldest first, as many as the driver's buffer holds. */
int nvmlDeviceGetSamples(struct nvml_device *device, unsigned type, unsigned long long last_us,
                         unsigned *value_type, unsigned *count, struct nvml_sample *samples)
{
    struct call call;
    int code = call_device(&call, __func__, device, value_type != NULL && count != NULL);
    int64_t period_ns, made_ns;
    unsigned filled = 0;

    if (code != NVML_SUCCESS)
        return code;
    period_ns = call.gpu->sensor.power_period_ns;
    if (type != NVML_SAMPLES_TOTAL_POWER || period_ns == 0)
        return call_end(&call, NVML_NOT_SUPPORTED);
    *value_type = NVML_VALUE_UNSIGNED;
    if (samples == NULL) {
        *count = SAMPLES_MAX;
        return call_end(&call, NVML_SUCCESS);
    }
    made_ns = sensor_power_made_ns(call.gpu, call.now_ns) - (SAMPLES_MAX - 1) * period_ns;
    for (; made_ns <= call.now_ns && filled < *count; made_ns += period_ns) {
        unsigned long long date = (unsigned long long)state_date_ns(call.state, made_ns) / NS_PER_US;

        if (date > last_us && made_ns >= call.state->created_ns)
            samples[filled++] =
                (struct nvml_sample){.timestamp_us = date, .value.ui = sensor_usage_mw(call.gpu, made_ns)};
    }
    *count = filled;
    return call_end(&call, filled > 0 ? NVML_SUCCESS : NVML_NOT_FOUND);
}
