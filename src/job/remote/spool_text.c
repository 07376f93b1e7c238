/* SPDX-License-Identifier: Apache-2.0 */
/* A kept call as a line of JSON, and back. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "job/core/definition_json.h"
#include "job/remote/spool.h"

enum { RUN_MEMORY_MAX = 1 << 20 };

static const char *const kind_names[] = {"profile", "report", "end", "run"};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == SPOOL_RUN + 1, "a name for each kind");

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *profile_json(const struct job_profile *profile)
{
    json_t *points = json_array();

    for (size_t i = 0; i < profile->point_count; i++) {
        const struct fly_power_point *point = &profile->points[i];

        json_array_append_new(points, json_pack("[f,f,f]", point->limit_w, point->power_w, point->time_s));
    }
    return json_pack("{s:s,s:I,s:o,s:o,s:b}", "job", profile->job, "trial", (json_int_t)profile->trial,
                     "points", points, "units_per_epoch", number(profile->units_per_epoch), "partial",
                     (int)profile->partial);
}

static json_t *report_json(const struct job_epoch *epoch)
{
    return json_pack("{s:s,s:I,s:I,s:I,s:o,s:o,s:o,s:o}", "job", epoch->job, "trial",
                     (json_int_t)epoch->trial, "attempt", (json_int_t)epoch->attempt, "epoch",
                     (json_int_t)epoch->epoch, "metric", number(epoch->metric), "energy_j",
                     number(epoch->energy_j), "time_s", number(epoch->time_s), "reference_per_kwh",
                     number(epoch->reference_per_kwh));
}

static json_t *end_json(const struct job_end *end)
{
    return json_pack("{s:s,s:I,s:I,s:s,s:o,s:o,s:s,s:o}", "job", end->job, "trial", (json_int_t)end->trial,
                     "attempt", (json_int_t)end->attempt, "outcome", job_outcome_name(end->outcome),
                     "energy_j", number(end->energy_j), "time_s", number(end->time_s), "text",
                     end->text != NULL ? end->text : "", "reference_per_kwh", number(end->reference_per_kwh));
}

static json_t *run_json(const struct spool_run *run)
{
    const struct job_question *question = &run->question;
    const struct job_hardware *hardware = &question->hardware;
    json_t *limits = json_array();

    for (size_t i = 0; i < hardware->limit_count; i++)
        json_array_append_new(limits, json_real(hardware->limits_w[i]));
    return json_pack("{s:o,s:s,s:s,s:s,s:I,s:o,s:s,s:I,s:I,s:o,s:f,s:s,s:s,s:s,s:s,s:I}", "definition",
                     definition_to_json(&run->definition), "request", question->request, "run", question->run,
                     "submission", question->submission, "batch_size", (json_int_t)question->ran_batch_size,
                     "limit_w", number(question->ran_limit_w), "gpu_model", hardware->gpu_model, "gpu_count",
                     (json_int_t)hardware->gpu_count, "world_size", (json_int_t)hardware->world_size,
                     "limits_w", limits, "max_power_w", hardware->max_power_w, "user", question->origin.user,
                     "account", question->origin.account, "host", question->origin.host, "gpus",
                     question->origin.gpus != NULL ? question->origin.gpus : "", "gpu_memory_bytes",
                     (json_int_t)hardware->gpu_memory_bytes);
}

int spool_write(const struct spool_entry *entry, struct buffer *out, struct fly_error *out_error)
{
    json_t *line = NULL;
    char *text = NULL;

    switch (entry->kind) {
    case SPOOL_PROFILE:
        line = profile_json(&entry->profile);
        break;
    case SPOOL_REPORT:
        line = report_json(&entry->epoch);
        break;
    case SPOOL_END:
        line = end_json(&entry->end);
        break;
    case SPOOL_RUN:
        line = run_json(&entry->run);
        break;
    }
    if (line != NULL && json_object_set_new(line, "call", json_string(kind_names[entry->kind])) == 0)
        text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(line);
    if (text == NULL)
        return error_no_memory(out_error);
    buffer_puts(out, text);
    buffer_puts(out, "\n");
    free(text);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

/* Takes members from an object; anything that does not fit makes it bad. */
struct taking {
    const json_t *object;
    bool bad;
};

static const char *take_text(struct taking *taking, const char *name)
{
    const char *text = json_string_value(json_object_get(taking->object, name));

    taking->bad |= text == NULL;
    return text != NULL ? text : "";
}

/* "" in what an earlier version kept. */
static const char *take_optional(struct taking *taking, const char *name)
{
    return json_object_get(taking->object, name) != NULL ? take_text(taking, name) : "";
}

static uint64_t take_count(struct taking *taking, const char *name, uint64_t most)
{
    const json_t *value = json_object_get(taking->object, name);
    json_int_t count = json_integer_value(value);

    if (!json_is_integer(value) || count < 0 || (uint64_t)count > most) {
        taking->bad = true;
        return 0;
    }
    return (uint64_t)count;
}

static double take_number(struct taking *taking, const char *name)
{
    const json_t *value = json_object_get(taking->object, name);

    taking->bad |= !json_is_number(value) && !json_is_null(value);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Not known in what an earlier version kept. */
static double take_reference(struct taking *taking)
{
    return json_object_get(taking->object, "reference_per_kwh") != NULL
               ? take_number(taking, "reference_per_kwh")
               : NAN;
}

static void take_points(struct taking *taking, struct spool_parsed *parsed)
{
    const json_t *points = json_object_get(taking->object, "points");
    size_t count = json_array_size(points);

    if (count == 0 || count > FLY_POWER_SEARCH_LIMITS_MAX) {
        taking->bad = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *point = json_array_get(points, i);
        double values[3] = {0};

        taking->bad |= json_array_size(point) != 3;
        for (size_t k = 0; k < 3; k++) {
            taking->bad |= !json_is_number(json_array_get(point, k));
            values[k] = json_number_value(json_array_get(point, k));
        }
        parsed->points[i] = (struct fly_power_point){values[0], values[1], values[2]};
    }
    parsed->entry.profile.points = parsed->points;
    parsed->entry.profile.point_count = count;
}

static void take_profile(struct taking *taking, struct spool_parsed *parsed)
{
    parsed->entry.profile =
        (struct job_profile){.job = take_text(taking, "job"),
                             .trial = take_count(taking, "trial", INT64_MAX),
                             .units_per_epoch = take_number(taking, "units_per_epoch"),
                             .partial = json_is_true(json_object_get(taking->object, "partial"))};
    take_points(taking, parsed);
}

static void take_report(struct taking *taking, struct spool_parsed *parsed)
{
    parsed->entry.epoch = (struct job_epoch){.job = take_text(taking, "job"),
                                             .trial = take_count(taking, "trial", INT64_MAX),
                                             .attempt = (uint32_t)take_count(taking, "attempt", UINT32_MAX),
                                             .epoch = (uint32_t)take_count(taking, "epoch", UINT32_MAX),
                                             .metric = take_number(taking, "metric"),
                                             .energy_j = take_number(taking, "energy_j"),
                                             .time_s = take_number(taking, "time_s"),
                                             .reference_per_kwh = take_reference(taking)};
}

static void take_end(struct taking *taking, struct spool_parsed *parsed)
{
    struct job_end *end = &parsed->entry.end;

    *end = (struct job_end){.job = take_text(taking, "job"),
                            .trial = take_count(taking, "trial", INT64_MAX),
                            .attempt = (uint32_t)take_count(taking, "attempt", UINT32_MAX),
                            .energy_j = take_number(taking, "energy_j"),
                            .time_s = take_number(taking, "time_s"),
                            .text = take_text(taking, "text"),
                            .reference_per_kwh = take_reference(taking)};
    taking->bad |= !job_outcome_parse(take_text(taking, "outcome"), &end->outcome);
}

static void take_limits(struct taking *taking, struct spool_parsed *parsed)
{
    const json_t *limits = json_object_get(taking->object, "limits_w");
    size_t count = json_array_size(limits);

    if (!json_is_array(limits) || count > FLY_POWER_SEARCH_LIMITS_MAX) {
        taking->bad = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        taking->bad |= !json_is_number(json_array_get(limits, i));
        parsed->limits_w[i] = json_number_value(json_array_get(limits, i));
    }
    parsed->entry.run.question.hardware.limits_w = parsed->limits_w;
    parsed->entry.run.question.hardware.limit_count = count;
}

static void take_run(struct taking *taking, struct spool_parsed *parsed)
{
    struct spool_run *run = &parsed->entry.run;

    *run = (struct spool_run){
        .question = {
            .request = take_text(taking, "request"),
            .run = take_text(taking, "run"),
            .submission = take_text(taking, "submission"),
            .tries = 1,
            .ran_batch_size = (uint32_t)take_count(taking, "batch_size", UINT32_MAX),
            .ran_limit_w = take_number(taking, "limit_w"),
            .hardware = {.gpu_model = take_text(taking, "gpu_model"),
                         .gpu_count = (uint32_t)take_count(taking, "gpu_count", UINT32_MAX),
                         .world_size = (uint32_t)take_count(taking, "world_size", UINT32_MAX),
                         .max_power_w = take_number(taking, "max_power_w")},
            .origin = {take_text(taking, "user"), take_text(taking, "account"), take_text(taking, "host"),
                       take_optional(taking, "gpus")},
        }};
    if (json_object_get(taking->object, "gpu_memory_bytes") != NULL)
        run->question.hardware.gpu_memory_bytes = take_count(taking, "gpu_memory_bytes", INT64_MAX);
    take_limits(taking, parsed);
    taking->bad |= run->question.ran_batch_size == 0;
    if (taking->bad ||
        definition_from_json(json_object_get(taking->object, "definition"), &parsed->arena, &run->definition,
                             NULL) < 0 ||
        job_definition_check(&run->definition, NULL) < 0) {
        taking->bad = true;
        return;
    }
    run->question.job = run->definition.name;
}

int spool_parse(const char *line, size_t length, struct spool_parsed *out_parsed, struct fly_error *out_error)
{
    static void (*const take[])(struct taking *, struct spool_parsed *) = {take_profile, take_report,
                                                                           take_end, take_run};
    json_error_t fault;
    json_t *document =
        length <= SPOOL_LINE_MAX ? json_loadb(line, length, JSON_REJECT_DUPLICATES, &fault) : NULL;
    struct taking taking = {.object = document};
    const char *call = take_text(&taking, "call");

    arena_init(&out_parsed->arena, RUN_MEMORY_MAX);
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
        if (taking.bad || strcmp(call, kind_names[i]) != 0)
            continue;
        out_parsed->entry.kind = (enum spool_kind)i;
        out_parsed->document = document;
        take[i](&taking, out_parsed);
        if (!taking.bad)
            return 0;
        break;
    }
    json_decref(document);
    arena_deinit(&out_parsed->arena);
    out_parsed->document = NULL;
    return error_set(out_error, FLY_EDATA, "a kept report is no call to a job's log");
}

void spool_parsed_free(struct spool_parsed *parsed)
{
    json_decref(parsed->document);
    arena_deinit(&parsed->arena);
    parsed->document = NULL;
}
