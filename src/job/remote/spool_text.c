/* SPDX-License-Identifier: Apache-2.0 */
/* A kept call as a line of JSON, and back. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "job/core/definition.h"
#include "job/core/definition_json.h"
#include "job/core/job_words.h"
#include "job/core/shapes.h"
#include "job/remote/spool.h"
#include "shapes/shape_rows.h"

enum { PARSED_MEMORY_MAX = 1 << 20 };

static const char *const call_words[] = {"profile", "report", "end", "run"};
_Static_assert(sizeof call_words / sizeof call_words[0] == SPOOL_RUN + 1, "a word for each kind");

/* ---- the format: any values are allowed, the log judges them ---- */

/* Rows of a kept call. */
#define CALL                                                                             \
    {                                                                                    \
        SHAPE_AT_AS("call", spool_entry, kind), SHAPE_IS_WORD(call_words, SPOOL_RUN + 1) \
    }
#define AS(title, member) SHAPE_AT_AS(title, spool_entry, member)
#define TEXT SHAPE_IS_TEXT(SPOOL_LINE_MAX)
#define NUMBER SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE
#define SINCE_0_2 .need = SHAPE_OPTIONAL

static const struct shape_field call_rows[] = {CALL};
static const struct shape shape_call = {SHAPE_OF(spool_entry, call_rows)};

static const struct shape_field point_rows[] = {
    {SHAPE_AT(fly_power_point, limit_w), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(fly_power_point, power_w), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(fly_power_point, time_s), SHAPE_IS_NUMBER(SHAPE_ANY)},
};
static const struct shape shape_kept_point = {SHAPE_OF(fly_power_point, point_rows), .as_list = true};

static const struct shape_field profile_rows[] = {
    CALL,
    {AS("job", profile.job), TEXT},
    {AS("trial", profile.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {AS("points", profile.points),
     SHAPE_IS_STRUCTS(&shape_kept_point, FLY_POWER_SEARCH_LIMITS_MAX, spool_entry, profile.point_count)},
    {AS("units_per_epoch", profile.units_per_epoch), NUMBER},
    {AS("partial", profile.partial), SHAPE_IS_BOOL, SINCE_0_2},
};

static const struct shape_field report_rows[] = {
    CALL,
    {AS("job", epoch.job), TEXT},
    {AS("trial", epoch.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {AS("attempt", epoch.attempt), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("epoch", epoch.epoch), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("metric", epoch.metric), NUMBER},
    {AS("energy_j", epoch.energy_j), NUMBER},
    {AS("time_s", epoch.time_s), NUMBER},
    {AS("reference_per_kwh", epoch.reference_per_kwh), NUMBER, SINCE_0_2},
    {AS("steps", epoch.steps), SHAPE_IS_U32(0, UINT32_MAX), .need = SHAPE_SPARING},
    {AS("startup_energy_j", epoch.startup_energy_j), NUMBER, .need = SHAPE_SPARING},
    {AS("startup_time_s", epoch.startup_time_s), NUMBER, .need = SHAPE_SPARING},
};

static const struct shape_field end_rows[] = {
    CALL,
    {AS("job", end.job), TEXT},
    {AS("trial", end.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {AS("attempt", end.attempt), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("outcome", end.outcome), SHAPE_IS_WORD(job_outcome_words, TRIAL_OUTCOME_COUNT)},
    {AS("energy_j", end.energy_j), NUMBER},
    {AS("time_s", end.time_s), NUMBER},
    {AS("text", end.text), TEXT},
    {AS("reference_per_kwh", end.reference_per_kwh), NUMBER, SINCE_0_2},
    {AS("startup_energy_j", end.startup_energy_j), NUMBER, .need = SHAPE_SPARING},
    {AS("startup_time_s", end.startup_time_s), NUMBER, .need = SHAPE_SPARING},
    {AS("nothing_learnt", end.nothing_learnt), SHAPE_IS_BOOL, .need = SHAPE_SPARING},
};

static const struct shape_field run_rows[] = {
    CALL,
    {AS("definition", run.definition), SHAPE_IS_STRUCT(&shape_definition)},
    {AS("request", run.question.request), TEXT},
    {AS("run", run.question.run), TEXT},
    {AS("submission", run.question.submission), TEXT},
    {AS("batch_size", run.question.ran_batch_size), SHAPE_IS_U32(1, UINT32_MAX)},
    {AS("limit_w", run.question.ran_limit_w), NUMBER},
    {AS("gpu_model", run.question.hardware.gpu_model), TEXT},
    {AS("gpu_count", run.question.hardware.gpu_count), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("world_size", run.question.hardware.world_size), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("limits_w", run.question.hardware.limits_w),
     SHAPE_IS_NUMBERS(SHAPE_ANY, FLY_POWER_SEARCH_LIMITS_MAX, spool_entry,
                      run.question.hardware.limit_count)},
    {AS("max_power_w", run.question.hardware.max_power_w), NUMBER},
    {AS("user", run.question.origin.user), TEXT},
    {AS("account", run.question.origin.account), TEXT},
    {AS("host", run.question.origin.host), TEXT},
    {AS("gpus", run.question.origin.gpus), TEXT, SINCE_0_2},
    {AS("gpu_memory_bytes", run.question.hardware.gpu_memory_bytes), SHAPE_IS_U64(0, INT64_MAX), SINCE_0_2},
};

static const struct shape calls[] = {
    [SPOOL_PROFILE] = {SHAPE_OF(spool_entry, profile_rows)},
    [SPOOL_REPORT] = {SHAPE_OF(spool_entry, report_rows)},
    [SPOOL_END] = {SHAPE_OF(spool_entry, end_rows)},
    [SPOOL_RUN] = {SHAPE_OF(spool_entry, run_rows)},
};

/* ---- writing ---- */

int spool_write(const struct spool_entry *entry, struct buffer *out, struct fly_error *out_error)
{
    struct spool_entry written = *entry;
    json_t *json = NULL;
    char *text;
    int code;

    if (entry->kind == SPOOL_RUN)
        written.run.definition = definition_on_record(&entry->run.definition);
    code = shape_write(&calls[entry->kind], &written, &json, out_error);
    if (code < 0)
        return code;
    text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(json);
    if (text == NULL)
        return error_no_memory(out_error);
    buffer_puts(out, text);
    buffer_puts(out, "\n");
    free(text);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

/* ---- reading ---- */

static int check(struct spool_entry *entry, struct fly_error *out_error)
{
    if (entry->kind == SPOOL_PROFILE && entry->profile.point_count == 0)
        return error_set(out_error, FLY_EDATA, "member 'points': expected at least one");
    if (entry->kind != SPOOL_RUN)
        return 0;
    entry->run.question.tries = 1;
    entry->run.question.job = entry->run.definition.name;
    return job_definition_check(&entry->run.definition, out_error);
}

static int read_call(json_t *json, struct spool_parsed *parsed, struct fly_error *out_error)
{
    int code = shape_read(&shape_call, json, SHAPE_LENIENT, NULL, &parsed->entry, out_error);

    if (code == 0)
        code = shape_read(&calls[parsed->entry.kind], json, SHAPE_LENIENT, &parsed->arena, &parsed->entry,
                          out_error);
    return code == 0 ? check(&parsed->entry, out_error) : code;
}

int spool_parse(const char *line, size_t length, struct spool_parsed *out_parsed, struct fly_error *out_error)
{
    struct fly_error why = {.text = "it is too long"};
    json_t *json = NULL;
    int code = length <= SPOOL_LINE_MAX ? shape_parse(line, length, &json, &why) : FLY_ELIMIT;

    arena_init(&out_parsed->arena, PARSED_MEMORY_MAX);
    if (code == 0)
        code = read_call(json, out_parsed, &why);
    json_decref(json);
    if (code == 0)
        return 0;
    arena_deinit(&out_parsed->arena);
    return error_set(out_error, FLY_EDATA, "a kept report is no call to a job's log: %.300s", why.text);
}

void spool_parsed_free(struct spool_parsed *parsed)
{
    arena_deinit(&parsed->arena);
}
