/* SPDX-License-Identifier: Apache-2.0 */
#include "node/v1/v1_shapes.h"

#include <math.h>

#include "base/error.h"
#include "device/workloads.h"
#include "shapes/shape_rows.h"

enum { SHORT = 256, WORDY = 4096 };

#define UNKNOWN(type, member)                                                     \
    {                                                                             \
        SHAPE_AT(type, member), SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_UNKNOWN \
    }

static const struct shape_field figure_rows[] = {
    {SHAPE_AT(v1_figures, id), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(v1_figures, unix_ms), SHAPE_IS_TIME},
    UNKNOWN(v1_figures, energy_j),
    UNKNOWN(v1_figures, power_w),
    UNKNOWN(v1_figures, power_limit_w),
    UNKNOWN(v1_figures, power_limit_enforced_w),
    UNKNOWN(v1_figures, temperature_c),
    UNKNOWN(v1_figures, clock_gpu_mhz),
    UNKNOWN(v1_figures, clock_memory_mhz),
    UNKNOWN(v1_figures, utilization_percent),
};
const struct shape shape_v1_figures = {SHAPE_OF(v1_figures, figure_rows)};

static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(v1_gpu, index), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(v1_gpu, uuid), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(v1_gpu, pci), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(v1_gpu, name), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(v1_gpu, driver), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(v1_gpu, answers), SHAPE_IS_BOOL},
    {SHAPE_AT(v1_gpu, why), SHAPE_IS_TEXT(WORDY), .null = SHAPE_OR_NULL, .any_bytes = true},
    {SHAPE_AT(v1_gpu, figures), .kind = SHAPE_POINTED, .shape = &shape_v1_figures},
    UNKNOWN(v1_gpu, power_limit_min_w),
    UNKNOWN(v1_gpu, power_limit_max_w),
    UNKNOWN(v1_gpu, power_limit_default_w),
    {SHAPE_AT(v1_gpu, leases), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(v1_gpu, turned), SHAPE_IS_BOOL},
    {SHAPE_AT(v1_gpu, may_control), SHAPE_IS_BOOL},
    {SHAPE_AT(v1_gpu, may_not), SHAPE_IS_TEXT(WORDY), .null = SHAPE_OR_NULL, .any_bytes = true},
    UNKNOWN(v1_gpu, floor_w),
    UNKNOWN(v1_gpu, ceiling_w),
};
const struct shape shape_v1_gpu = {SHAPE_OF(v1_gpu, gpu_rows)};

static const struct shape_field gpus_rows[] = {
    {SHAPE_AT(v1_gpus, gpus), SHAPE_IS_STRUCTS(&shape_v1_gpu, UINT32_MAX, v1_gpus, count)},
};
const struct shape shape_v1_gpus = {SHAPE_OF(v1_gpus, gpus_rows)};

/* The members of a wish, within a struct that has it as `wish`. */
/* clang-format off */
#define WISH_CLOCK(type, member) \
    {SHAPE_AT_AS(#member, type, wish.member), SHAPE_IS_NUMBER(SHAPE_FROM_1), .highest = 1e5, \
     .need = SHAPE_SPARING, .null = SHAPE_UNKNOWN}
#define WISH_ROWS(type) \
    {SHAPE_AT_AS("power_limit_w", type, wish.power_limit_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0), .highest = 1e5, \
     .need = SHAPE_SPARING, .null = SHAPE_UNKNOWN}, \
    WISH_CLOCK(type, clock_floor_mhz), \
    WISH_CLOCK(type, clock_ceiling_mhz), \
    WISH_CLOCK(type, memory_clock_floor_mhz), \
    WISH_CLOCK(type, memory_clock_ceiling_mhz), \
    {SHAPE_AT_AS("performance_level", type, wish.performance_level), SHAPE_IS_TEXT(SHORT), .need = SHAPE_SPARING, \
     .null = SHAPE_OR_NULL}, \
    {SHAPE_AT_AS("persistence_mode", type, wish.persistence_mode), SHAPE_IS_BOOL, SHAPE_IF(type, wish.has_persistence)}, \
    {SHAPE_AT_AS("workload_profiles", type, wish.workload_profiles), SHAPE_IS_TEXT(WORDY), .need = SHAPE_SPARING, \
     .null = SHAPE_OR_NULL}
/* clang-format on */

static const struct shape_field request_rows[] = {
    {SHAPE_AT(v1_lease_request, gpus), .kind = SHAPE_TEXTS, .longest = LEASE_GPUS_MAX,
     .beside = offsetof(struct v1_lease_request, gpu_count)},
    WISH_ROWS(v1_lease_request),
    {SHAPE_AT(v1_lease_request, expires_s), SHAPE_IS_NUMBER(SHAPE_ABOVE_0), .highest = 1e8,
     .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN},
    {SHAPE_AT(v1_lease_request, bind), SHAPE_IS_TEXT(SHORT), .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL},
    {SHAPE_AT(v1_lease_request, program), .kind = SHAPE_TEXT, .longest = LEASE_NAME_MAX - 1,
     .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL},
    {SHAPE_AT(v1_lease_request, overrules), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL},
};
const struct shape shape_v1_lease_request = {SHAPE_OF(v1_lease_request, request_rows)};

/* A change has a wish alone; it is read into a struct v1_lease_request. */
static const struct shape_field change_rows[] = {WISH_ROWS(v1_lease_request)};
const struct shape shape_v1_change = {SHAPE_OF(v1_lease_request, change_rows)};

static const struct shape_field renewal_rows[] = {
    {SHAPE_AT(v1_renewal, expires_s), SHAPE_IS_NUMBER(SHAPE_ABOVE_0), .highest = 1e8},
};
const struct shape shape_v1_renewal = {SHAPE_OF(v1_renewal, renewal_rows)};

static const struct shape_field set_rows[] = {
    {SHAPE_AT(v1_set, gpu), SHAPE_IS_U32(0, UINT32_MAX)},
    UNKNOWN(v1_set, power_limit_w),
    UNKNOWN(v1_set, power_limit_enforced_w),
    UNKNOWN(v1_set, clock_ceiling_mhz),
    UNKNOWN(v1_set, memory_clock_ceiling_mhz),
};
static const struct shape set_shape = {SHAPE_OF(v1_set, set_rows)};

static const struct shape_field lease_rows[] = {
    {SHAPE_AT(v1_lease, id), SHAPE_IS_TEXT(SHORT)},
    {SHAPE_AT(v1_lease, gpus), .kind = SHAPE_U32S, .longest = LEASE_GPUS_MAX,
     .beside = offsetof(struct v1_lease, gpu_count), .most = UINT32_MAX},
    WISH_ROWS(v1_lease),
    {SHAPE_AT(v1_lease, set), SHAPE_IS_STRUCTS(&set_shape, LEASE_GPUS_MAX, v1_lease, set_count)},
    {SHAPE_AT(v1_lease, pid), SHAPE_IS_U64(0, INT64_MAX), .null = SHAPE_ZERO},
    {SHAPE_AT(v1_lease, holder), SHAPE_IS_TEXT(WORDY), .any_bytes = true},
    {SHAPE_AT(v1_lease, own), SHAPE_IS_BOOL},
    {SHAPE_AT(v1_lease, connection), SHAPE_IS_BOOL},
    UNKNOWN(v1_lease, expires_s),
};
const struct shape shape_v1_lease = {SHAPE_OF(v1_lease, lease_rows)};

static const struct shape_field leases_rows[] = {
    {SHAPE_AT(v1_leases, leases), SHAPE_IS_STRUCTS(&shape_v1_lease, UINT32_MAX, v1_leases, count)},
};
const struct shape shape_v1_leases = {SHAPE_OF(v1_leases, leases_rows)};

static const struct shape_field release_rows[] = {
    {SHAPE_AT(v1_release_request, most_s), SHAPE_IS_NUMBER(SHAPE_ABOVE_0), .highest = 600,
     .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN},
};
const struct shape shape_v1_release_request = {SHAPE_OF(v1_release_request, release_rows)};

static const struct shape_field done_rows[] = {{SHAPE_AT(v1_done, done), SHAPE_IS_BOOL}};
const struct shape shape_v1_done = {SHAPE_OF(v1_done, done_rows)};

double v1_reading(const struct watch_sample *sample, enum quantity quantity, double factor)
{
    const struct reading *reading = &sample->reading.values[quantity];

    return reading->state == READING_OK ? (double)reading->value * factor : NAN;
}

void v1_figures_of(const struct watch_sample *sample, struct v1_figures *out_figures)
{
    double power_w = v1_reading(sample, QUANTITY_POWER_INSTANT, 1e-3);

    *out_figures = (struct v1_figures){
        .id = sample->id,
        .unix_ms = sample->unix_ms,
        .energy_j = sample->energy_total_j,
        .power_w = isnan(power_w) ? v1_reading(sample, QUANTITY_POWER_AVERAGE, 1e-3) : power_w,
        .power_limit_w = v1_reading(sample, QUANTITY_POWER_LIMIT, 1e-3),
        .power_limit_enforced_w = v1_reading(sample, QUANTITY_POWER_LIMIT_ENFORCED, 1e-3),
        .temperature_c = v1_reading(sample, QUANTITY_TEMPERATURE, 1),
        .clock_gpu_mhz = v1_reading(sample, QUANTITY_CLOCK_GPU, 1),
        .clock_memory_mhz = v1_reading(sample, QUANTITY_CLOCK_MEMORY, 1),
        .utilization_percent = v1_reading(sample, QUANTITY_UTILIZATION, 1),
    };
}

static int take_level(const char *word, struct lease_wish *wish, struct fly_error *out_error)
{
    int level = device_level_find(word);

    if (level < 0 || !device_level_is_settable(level))
        return error_set(
            out_error, FLY_EUSAGE,
            "member 'performance_level': '%.40s' is no level that can be set; try auto, low or high", word);
    wish->level = level;
    wish->asked |= QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL);
    return 0;
}

static int take_profiles(const char *text, struct lease_wish *wish, struct fly_error *out_error)
{
    if (!workload_parse(text, &wish->workloads))
        return error_set(
            out_error, FLY_EUSAGE,
            "member 'workload_profiles': expected names or numbers separated by commas, or none");
    wish->asked |= QUANTITY_BIT(QUANTITY_WORKLOADS);
    return 0;
}

static void take_clock(double clock_mhz, enum quantity quantity, struct lease_wish *wish)
{
    if (isnan(clock_mhz))
        return;
    *lease_wish_number(wish, quantity) = llround(clock_mhz);
    wish->asked |= QUANTITY_BIT(quantity);
}

int v1_wish_take(const struct v1_wish *from, struct lease_wish *out_wish, struct fly_error *out_error)
{
    struct lease_wish wish = {.asked = 0};
    int code = 0;

    if (!isnan(from->power_limit_w)) {
        wish.limit_mw = llround(from->power_limit_w * 1e3);
        wish.asked |= QUANTITY_BIT(QUANTITY_POWER_LIMIT);
    }
    take_clock(from->clock_floor_mhz, QUANTITY_CLOCK_FLOOR, &wish);
    take_clock(from->clock_ceiling_mhz, QUANTITY_CLOCK_CEILING, &wish);
    take_clock(from->memory_clock_floor_mhz, QUANTITY_MEMORY_CLOCK_FLOOR, &wish);
    take_clock(from->memory_clock_ceiling_mhz, QUANTITY_MEMORY_CLOCK_CEILING, &wish);
    if (from->has_persistence) {
        wish.persistence = from->persistence_mode;
        wish.asked |= QUANTITY_BIT(QUANTITY_PERSISTENCE);
    }
    if (from->performance_level != NULL)
        code = take_level(from->performance_level, &wish, out_error);
    if (code == 0 && from->workload_profiles != NULL)
        code = take_profiles(from->workload_profiles, &wish, out_error);
    if (code == 0 && wish.asked == 0)
        code = error_set(out_error, FLY_EUSAGE,
                         "nothing is asked for; give power_limit_w, clock_ceiling_mhz, clock_floor_mhz, "
                         "memory_clock_ceiling_mhz, memory_clock_floor_mhz, performance_level, "
                         "persistence_mode or workload_profiles");
    if (code == 0)
        *out_wish = wish;
    return code;
}

static bool asks(const struct lease_wish *wish, enum quantity quantity)
{
    return (wish->asked & QUANTITY_BIT(quantity)) != 0;
}

static double number_of(const struct lease_wish *wish, enum quantity quantity, double factor)
{
    return asks(wish, quantity) ? (double)lease_wish_value(wish, quantity) * factor : NAN;
}

void v1_wish_of(const struct lease_wish *from, char profiles[WORKLOAD_TEXT_MAX], struct v1_wish *out_wish)
{
    *out_wish = (struct v1_wish){
        .power_limit_w = number_of(from, QUANTITY_POWER_LIMIT, 1e-3),
        .clock_floor_mhz = number_of(from, QUANTITY_CLOCK_FLOOR, 1),
        .clock_ceiling_mhz = number_of(from, QUANTITY_CLOCK_CEILING, 1),
        .memory_clock_floor_mhz = number_of(from, QUANTITY_MEMORY_CLOCK_FLOOR, 1),
        .memory_clock_ceiling_mhz = number_of(from, QUANTITY_MEMORY_CLOCK_CEILING, 1),
        .performance_level = asks(from, QUANTITY_PERFORMANCE_LEVEL) ? device_level_word(from->level) : NULL,
        .has_persistence = asks(from, QUANTITY_PERSISTENCE),
        .persistence_mode = from->persistence != 0,
        .workload_profiles =
            asks(from, QUANTITY_WORKLOADS) ? workload_text(&from->workloads, profiles) : NULL,
    };
}
