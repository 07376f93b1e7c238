/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/gpu_usage.h"

#include <math.h>

#include "shapes/shape_rows.h"

enum { SHORT = 256 };

static const char *const kind_words[] = {"process", "idle", "shared", "unobserved"};
_Static_assert(sizeof kind_words / sizeof kind_words[0] == USAGE_KIND_COUNT, "each kind has a word");

const char *usage_kind_word(enum usage_kind kind)
{
    return kind_words[kind];
}

const char *usage_source_word(bool emulated, bool estimated)
{
    if (emulated)
        return "emulated";
    return estimated ? "estimated" : "measured";
}

/* The members of a row, within a struct that has them behind `in`: "" for the row itself. */
/* clang-format off */
#define NAMED(title, type, in, member) SHAPE_AT_AS(title, type, in member)
#define WORDS(title, type, in, member) \
    {NAMED(title, type, in, member), SHAPE_IS_TEXT(USAGE_TEXT_MAX), .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL, \
     .any_bytes = true}
#define UNKNOWN(title, type, in, member) \
    {NAMED(title, type, in, member), SHAPE_IS_NUMBER(SHAPE_FROM_0), .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN}
#define WHOLE(title, type, in, member) \
    {NAMED(title, type, in, member), .kind = SHAPE_I64, .most = INT64_MAX, .need = SHAPE_OPTIONAL}
#define WHOLE_OR_0(title, type, in, member) \
    {NAMED(title, type, in, member), .kind = SHAPE_I64, .most = INT64_MAX, .need = SHAPE_OPTIONAL, .null = SHAPE_ZERO}
#define ROW_ROWS(type, in) \
    {NAMED("kind", type, in, kind), SHAPE_IS_WORD(kind_words, USAGE_KIND_COUNT), .need = SHAPE_OPTIONAL}, \
    {NAMED("gpu", type, in, gpu), SHAPE_IS_U64(0, INT64_MAX)}, \
    {NAMED("uuid", type, in, uuid), SHAPE_IS_TEXT(SHORT), .any_bytes = true}, \
    {NAMED("pid", type, in, pid), SHAPE_IS_U64(0, INT64_MAX), .need = SHAPE_OPTIONAL, .null = SHAPE_ZERO}, \
    WHOLE_OR_0("started_unix_ms", type, in, started_unix_ms), \
    WHOLE_OR_0("ended_unix_ms", type, in, ended_unix_ms), \
    {NAMED("uid", type, in, uid), .kind = SHAPE_I64, .most = INT64_MAX, .need = SHAPE_OPTIONAL, .null = SHAPE_AS_DEFAULT}, \
    WORDS("user", type, in, user), \
    WORDS("command", type, in, command), \
    WORDS("cgroup", type, in, cgroup), \
    WORDS("runtime", type, in, runtime), \
    WORDS("container_id", type, in, container_id), \
    WORDS("slurm_job", type, in, slurm_job), \
    WORDS("slurm_step", type, in, slurm_step), \
    WORDS("pod_uid", type, in, pod_uid), \
    WORDS("pod", type, in, pod), \
    WORDS("pod_namespace", type, in, pod_namespace), \
    WORDS("container", type, in, container), \
    WORDS("training_job", type, in, training_job), \
    UNKNOWN("energy_j", type, in, energy_j), \
    WHOLE("energy_uj", type, in, energy_uj), \
    UNKNOWN("half_width_j", type, in, half_width_j), \
    UNKNOWN("time_s", type, in, time_s), \
    UNKNOWN("shared_s", type, in, shared_s), \
    UNKNOWN("power_w", type, in, power_w), \
    {NAMED("memory_bytes", type, in, memory_bytes), .kind = SHAPE_I64, .most = INT64_MAX, .need = SHAPE_OPTIONAL, \
     .null = SHAPE_AS_DEFAULT}, \
    {NAMED("sharers", type, in, sharers), .kind = SHAPE_U32S, .longest = USAGE_SHARERS_MAX, .most = UINT32_MAX, \
     .beside = offsetof(struct type, in sharer_count), .need = SHAPE_OPTIONAL}
/* clang-format on */

#define NO_ROW                                                                                               \
    {                                                                                                        \
        .uid = -1, .memory_bytes = -1, .energy_j = NAN, .half_width_j = NAN, .time_s = NAN, .shared_s = NAN, \
        .power_w = NAN                                                                                       \
    }

static const struct usage_row no_row = NO_ROW;
static const struct shape_field row_rows[] = {ROW_ROWS(usage_row, )};
const struct shape shape_usage_row = {.name = "UsageRow",
                                      .about = "A part of what a GPU drew.",
                                      SHAPE_OF(usage_row, row_rows),
                                      .defaults = &no_row};

static const struct usage_gpu no_gpu = {.idle_w = NAN, .energy_j = NAN};
static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(usage_gpu, gpu), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(usage_gpu, uuid), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    WORDS("name", usage_gpu, , name),
    WORDS("source", usage_gpu, , source),
    UNKNOWN("energy_j", usage_gpu, , energy_j),
    WHOLE("energy_uj", usage_gpu, , energy_uj),
    UNKNOWN("idle_w", usage_gpu, , idle_w),
    WHOLE_OR_0("unix_ms", usage_gpu, , unix_ms),
};
const struct shape shape_usage_gpu = {
    .name = "UsageGpu", .about = "A GPU.", SHAPE_OF(usage_gpu, gpu_rows), .defaults = &no_gpu};

static const struct shape_field usage_rows[] = {
    {SHAPE_AT(usage, schema), SHAPE_IS_TEXT(SHORT)},
    {SHAPE_AT(usage, gpus), SHAPE_IS_STRUCTS(&shape_usage_gpu, UINT32_MAX, usage, gpu_count)},
    {SHAPE_AT(usage, rows), SHAPE_IS_STRUCTS(&shape_usage_row, UINT32_MAX, usage, row_count)},
};
const struct shape shape_usage = {SHAPE_OF(usage, usage_rows)};

static const struct usage_line no_line = {.idle_w = NAN, .row = NO_ROW};
static const struct shape_field line_rows[] = {
    {SHAPE_AT(usage_line, schema), SHAPE_IS_TEXT(SHORT)},
    {SHAPE_AT(usage_line, what), SHAPE_IS_TEXT(SHORT)},
    {SHAPE_AT(usage_line, unix_ms), SHAPE_IS_TIME},
    WORDS("boot", usage_line, , boot),
    {SHAPE_AT(usage_line, start_ticks), SHAPE_IS_U64(0, INT64_MAX), .need = SHAPE_OPTIONAL,
     .null = SHAPE_ZERO},
    {SHAPE_AT(usage_line, serial), SHAPE_IS_U64(0, INT64_MAX), .need = SHAPE_OPTIONAL},
    WORDS("source", usage_line, , source),
    UNKNOWN("idle_w", usage_line, , idle_w),
    WHOLE("ended_uj", usage_line, , ended_uj),
    WHOLE("left_out_uj", usage_line, , left_out_uj),
    ROW_ROWS(usage_line, row.),
};
const struct shape shape_usage_line = {SHAPE_OF(usage_line, line_rows), .defaults = &no_line};
