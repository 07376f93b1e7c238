/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ways, which of them work for a device, and the readings. */
#include "device/nvidia/nvml_quantities.h"

#include <math.h>
#include <stddef.h>

/* Codes that say more than that the driver failed. */
static const struct code_row {
    int code;
    enum reading_state state;
} code_rows[] = {
    {NVML_SUCCESS, READING_OK},
    {NVML_NOT_SUPPORTED, READING_UNSUPPORTED},
    {NVML_DEPRECATED, READING_UNSUPPORTED},
    {NVML_ARGUMENT_VERSION_MISMATCH, READING_UNSUPPORTED},
    {NVML_FUNCTION_NOT_FOUND, READING_MISSING},
    {NVML_NO_PERMISSION, READING_DENIED},
    {NVML_GPU_IS_LOST, READING_LOST},
    {NVML_GPU_NOT_FOUND, READING_LOST},
};

enum reading_state nvml_reading_state(int code)
{
    for (size_t i = 0; i < sizeof code_rows / sizeof code_rows[0]; i++) {
        if (code_rows[i].code == code)
            return code_rows[i].state;
    }
    return READING_FAILED;
}

/*
 * Defines an `ask` for a function with one result of `type` in `slot`, called with the remaining
 * arguments.
 */
#define ASK_ONE(name, slot, type, ...)                                                                      \
    static int ask_##name(const struct nvml_calls *call, struct nvml_device *device, int64_t out_values[2]) \
    {                                                                                                       \
        type value = 0;                                                                                     \
        int code = call->slot != NULL ? call->slot(device, __VA_ARGS__) : NVML_FUNCTION_NOT_FOUND;          \
                                                                                                            \
        out_values[0] = (int64_t)value;                                                                     \
        return code;                                                                                        \
    }
ASK_ONE(energy, energy, unsigned long long, &value)
ASK_ONE(power, power, unsigned, &value)
ASK_ONE(limit, limit, unsigned, &value)
ASK_ONE(limit_default, limit_default, unsigned, &value)
ASK_ONE(limit_enforced, limit_enforced, unsigned, &value)
ASK_ONE(clock_gpu, clock, unsigned, NVML_CLOCK_GRAPHICS, &value)
ASK_ONE(clock_gpu_max, clock_max, unsigned, NVML_CLOCK_GRAPHICS, &value)
ASK_ONE(clock_memory, clock, unsigned, NVML_CLOCK_MEMORY, &value)
ASK_ONE(temperature_old, temperature_old, unsigned, NVML_TEMPERATURE_GPU, &value)
ASK_ONE(throttle, throttle, unsigned long long, &value)
ASK_ONE(persistence, persistence, unsigned, &value)

static int ask_temperature(const struct nvml_calls *call, struct nvml_device *device, int64_t out_values[2])
{
    struct nvml_temperature_v1 temperature = {.version = NVML_TEMPERATURE_V1, .sensor = NVML_TEMPERATURE_GPU};
    int code = call->temperature != NULL ? call->temperature(device, &temperature) : NVML_FUNCTION_NOT_FOUND;

    out_values[0] = temperature.temperature_c;
    return code;
}

static int ask_mig(const struct nvml_calls *call, struct nvml_device *device, int64_t out_values[2])
{
    unsigned now = 0, after_reset = 0;
    int code = call->mig_mode != NULL ? call->mig_mode(device, &now, &after_reset) : NVML_FUNCTION_NOT_FOUND;

    out_values[0] = now;
    return code;
}

static int ask_limit_range(const struct nvml_calls *call, struct nvml_device *device, int64_t out_values[2])
{
    unsigned lowest_mw = 0, highest_mw = 0;
    int code = call->limit_range != NULL ? call->limit_range(device, &lowest_mw, &highest_mw)
                                         : NVML_FUNCTION_NOT_FOUND;

    out_values[0] = lowest_mw;
    out_values[1] = highest_mw;
    return code;
}

static int ask_utilization(const struct nvml_calls *call, struct nvml_device *device, int64_t out_values[2])
{
    struct nvml_utilization percent = {0};
    int code = call->utilization != NULL ? call->utilization(device, &percent) : NVML_FUNCTION_NOT_FOUND;

    out_values[0] = percent.gpu;
    out_values[1] = percent.memory;
    return code;
}

#define CALL(quantity, name, value, factor, only_for)                                \
    {                                                                                \
        QUANTITY_##quantity, ask_##name, value, 0, 0, factor, POWER_USAGE_##only_for \
    }
#define FIELD(quantity, field, scope, factor)                                                         \
    {                                                                                                 \
        QUANTITY_##quantity, NULL, 0, NVML_FIELD_##field, NVML_SCOPE_##scope, factor, POWER_USAGE_ANY \
    }

/*
 * The ways of a quantity are next to each other, the best first. The figures of a module are quantities
 * of their own: they contain the GPU's, so neither ever takes the other's place or is added to it.
 */
static const struct nvml_way all_ways[] = {
    CALL(ENERGY, energy, 0, 1000, ANY),
    FIELD(ENERGY, TOTAL_ENERGY, GPU, 1000),
    FIELD(ENERGY, ENERGY, GPU, 1000),
    FIELD(POWER_INSTANT, POWER_INSTANT, GPU, 1),
    CALL(POWER_INSTANT, power, 0, 1, INSTANT),
    FIELD(POWER_AVERAGE, POWER_AVERAGE, GPU, 1),
    CALL(POWER_AVERAGE, power, 0, 1, AVERAGE),
    CALL(POWER_LIMIT, limit, 0, 1, ANY),
    FIELD(POWER_LIMIT, POWER_LIMIT_REQUESTED, GPU, 1),
    CALL(POWER_LIMIT_ENFORCED, limit_enforced, 0, 1, ANY),
    FIELD(POWER_LIMIT_ENFORCED, POWER_LIMIT_ENFORCED, GPU, 1),
    CALL(POWER_LIMIT_DEFAULT, limit_default, 0, 1, ANY),
    FIELD(POWER_LIMIT_DEFAULT, POWER_LIMIT_DEFAULT, GPU, 1),
    CALL(POWER_LIMIT_MIN, limit_range, 0, 1, ANY),
    FIELD(POWER_LIMIT_MIN, POWER_LIMIT_MIN, GPU, 1),
    CALL(POWER_LIMIT_MAX, limit_range, 1, 1, ANY),
    FIELD(POWER_LIMIT_MAX, POWER_LIMIT_MAX, GPU, 1),
    CALL(CLOCK_GPU, clock_gpu, 0, 1, ANY),
    CALL(CLOCK_GPU_MAX, clock_gpu_max, 0, 1, ANY),
    CALL(CLOCK_MEMORY, clock_memory, 0, 1, ANY),
    CALL(TEMPERATURE, temperature, 0, 1, ANY),
    CALL(TEMPERATURE, temperature_old, 0, 1, ANY),
    CALL(UTILIZATION, utilization, 0, 1, ANY),
    CALL(UTILIZATION_MEMORY, utilization, 1, 1, ANY),
    CALL(THROTTLE, throttle, 0, 1, ANY),
    CALL(PERSISTENCE, persistence, 0, 1, ANY),
    CALL(MIG, mig, 0, 1, ANY),
    FIELD(POWER_MODULE, POWER_INSTANT, MODULE, 1),
    FIELD(POWER_MODULE, POWER_AVERAGE, MODULE, 1),
    FIELD(ENERGY_MODULE, ENERGY, MODULE, 1000),
};

/*
 * Figures that are never 0 on a board with power. Some drivers report 0, with success, for a
 * scope that a board lacks.
 */
static const quantity_set never_zero =
    QUANTITY_BIT(QUANTITY_POWER_INSTANT) | QUANTITY_BIT(QUANTITY_POWER_AVERAGE) |
    QUANTITY_BIT(QUANTITY_POWER_LIMIT) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_ENFORCED) |
    QUANTITY_BIT(QUANTITY_POWER_LIMIT_DEFAULT) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) |
    QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX) | QUANTITY_BIT(QUANTITY_POWER_MODULE);

static void set_reading(struct reading *reading, const struct nvml_way *way, int code, int64_t value)
{
    *reading = (struct reading){.state = nvml_reading_state(code), .code = code};
    if (code != NVML_SUCCESS)
        return;
    if (value == 0 && (never_zero & QUANTITY_BIT(way->quantity)) != 0)
        reading->state = READING_UNSUPPORTED;
    else
        reading->value = value * way->factor;
}

/* Returns false for a type of value that no driver has used so far. */
static bool field_number(const struct nvml_field_value *field, int64_t *out_number)
{
    const union nvml_value *value = &field->value;

    switch (field->value_type) {
    case NVML_VALUE_DOUBLE:
        if (!(fabs(value->d) < 1e15)) /* excludes NaN too */
            return false;
        *out_number = (int64_t)value->d;
        return true;
    case NVML_VALUE_UNSIGNED:
        *out_number = value->ui;
        return true;
    case NVML_VALUE_UNSIGNED_LONG:
        *out_number = (int64_t)value->ul;
        return true;
    case NVML_VALUE_UNSIGNED_LONG_LONG:
        *out_number = (int64_t)value->ull;
        return true;
    case NVML_VALUE_SIGNED_LONG_LONG:
        *out_number = value->sll;
        return true;
    case NVML_VALUE_SIGNED:
        *out_number = value->si;
        return true;
    case NVML_VALUE_UNSIGNED_SHORT:
        *out_number = value->us;
        return true;
    default:
        return false;
    }
}

/* Reads all fields of a reading in one call; each field has a code of its own. */
static void read_fields(const struct nvml_calls *call, struct nvml_device *device,
                        const struct nvml_way *const *ways, struct nvml_field_value *fields, int count,
                        struct reading *values)
{
    int code = call->fields != NULL ? call->fields(device, count, fields) : NVML_FUNCTION_NOT_FOUND;

    for (int i = 0; i < count; i++) {
        int64_t number = 0;
        int own = code != NVML_SUCCESS ? code : fields[i].code;

        if (own == NVML_SUCCESS && !field_number(&fields[i], &number))
            own = NVML_UNKNOWN;
        set_reading(&values[ways[i]->quantity], ways[i], own, number);
    }
}

void nvml_ways_read(const struct nvml_ways *ways, const struct nvml_calls *call, struct nvml_device *device,
                    quantity_set wanted, struct reading *values)
{
    const struct nvml_way *field_ways[QUANTITY_COUNT], *last = NULL;
    struct nvml_field_value fields[QUANTITY_COUNT];
    int64_t answers[2] = {0, 0};
    int code = NVML_SUCCESS, field_count = 0;

    for (wanted &= QUANTITY_ALL; wanted != 0; wanted &= wanted - 1) {
        int quantity = __builtin_ctz(wanted);
        const struct nvml_way *way = ways->to[quantity];

        if (way == NULL) {
            values[quantity] = ways->absent[quantity];
        } else if (way->ask == NULL) {
            fields[field_count] = (struct nvml_field_value){.field_id = way->field, .scope_id = way->scope};
            field_ways[field_count++] = way;
        } else {
            if (last == NULL || last->ask != way->ask) /* neighbours in the table share a call */
                code = way->ask(call, device, answers);
            last = way;
            set_reading(&values[quantity], way, code, answers[way->value]);
        }
    }
    if (field_count > 0)
        read_fields(call, device, field_ways, fields, field_count, values);
}

/* Returns whether a failure means that this way will never work, so that the next may be tried. */
static bool is_final(const struct nvml_way *way, const struct reading *reading)
{
    bool is_field = way->ask == NULL;

    if (reading->state == READING_UNSUPPORTED || reading->state == READING_MISSING)
        return true;
    /* Drivers older than a field call its number an invalid argument; an empty field is 0. */
    return is_field &&
           (reading->code == NVML_INVALID_ARGUMENT || (reading->state == READING_OK && reading->value == 0));
}

void nvml_ways_find(const struct nvml_calls *call, struct nvml_device *device, const struct gpu_chip *chip,
                    struct nvml_ways *out_ways)
{
    enum power_usage_kind usage = gpu_power_usage(chip);

    for (int i = 0; i < QUANTITY_COUNT; i++) {
        out_ways->to[i] = NULL;
        out_ways->absent[i] = (struct reading){.state = READING_MISSING, .code = NVML_FUNCTION_NOT_FOUND};
    }
    for (size_t i = 0; i < sizeof all_ways / sizeof all_ways[0]; i++) {
        const struct nvml_way *way = &all_ways[i];
        struct nvml_ways trial = {.to = {NULL}};
        struct reading readings[QUANTITY_COUNT] = {0};
        const struct reading *reading = &readings[way->quantity];

        if (out_ways->to[way->quantity] != NULL ||
            (way->only_for != POWER_USAGE_ANY && way->only_for != usage))
            continue;
        trial.to[way->quantity] = way;
        nvml_ways_read(&trial, call, device, QUANTITY_BIT(way->quantity), readings);
        if (!is_final(way, reading))
            out_ways->to[way->quantity] = way;
        else if (reading->state != READING_MISSING)
            out_ways->absent[way->quantity] =
                (struct reading){.state = READING_UNSUPPORTED, .code = reading->code};
    }
}
