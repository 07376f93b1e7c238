/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/job_record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/shapes.h"

enum { RANDOM_WORDS = 4, RANDOM_DIGITS = 4 * 16 + 8 + 1 };

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *text(const char *value)
{
    return json_string(value != NULL ? value : "");
}

double record_reference(double reference_per_kwh)
{
    return isfinite(reference_per_kwh) && reference_per_kwh > 0.0 ? reference_per_kwh : NAN;
}

/* Only where it is known: the rest of a log looks as it did before there were any. */
static json_t *with_reference(json_t *object, double reference_per_kwh)
{
    double known = record_reference(reference_per_kwh);

    if (object != NULL && !isnan(known) &&
        json_object_set_new(object, "reference_per_kwh", json_real(known)) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static double read_reference(struct members *members)
{
    return members_has(members, "reference_per_kwh")
               ? record_reference(members_number(members, "reference_per_kwh"))
               : NAN;
}

/* ---- hardware ---- */

static json_t *write_hardware(const struct job_hardware *hardware)
{
    json_t *limits = json_array();

    for (size_t i = 0; i < hardware->limit_count; i++)
        json_array_append_new(limits, json_real(hardware->limits_w[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "gpu_model", text(hardware->gpu_model), "gpu_count",
                     count(hardware->gpu_count), "gpu_memory_bytes", count(hardware->gpu_memory_bytes),
                     "world_size", count(hardware->world_size), "limits_w", limits, "max_power_w",
                     number(hardware->max_power_w));
}

static struct job_hardware read_hardware(struct members *outer, double limits_w[JOB_LIMITS_MAX])
{
    struct members members = members_inside(outer, "hardware");
    const json_t *limits = members_array(&members, "limits_w", JOB_LIMITS_MAX);
    struct job_hardware hardware = {
        .gpu_model = members_text(&members, "gpu_model", JOB_TEXT_MAX - 1),
        .gpu_count = (uint32_t)members_u64(&members, "gpu_count", 1, UINT32_MAX),
        .gpu_memory_bytes = members_u64(&members, "gpu_memory_bytes", 0, INT64_MAX),
        .world_size = (uint32_t)members_u64(&members, "world_size", 1, UINT32_MAX),
        .limits_w = limits_w,
        .limit_count = json_array_size(limits),
        .max_power_w = members_number(&members, "max_power_w"),
    };

    for (size_t i = 0; i < hardware.limit_count; i++) {
        limits_w[i] = json_number_value(json_array_get(limits, i));
        if (!(limits_w[i] > 0.0) || (i > 0 && !(limits_w[i] > limits_w[i - 1])))
            members_refuse(&members, "limits_w", "ascending numbers above 0");
    }
    if (members.wrong != NULL)
        members_refuse(outer, "hardware", "what the trial runs on");
    return hardware;
}

/* ---- the published generator ---- */

/* As text, since JSON's whole numbers end at 63 bits. */
static json_t *write_random(const struct numpy_random *random)
{
    char state[128];

    snprintf(state, sizeof state, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%08" PRIx32 "%d",
             (uint64_t)(random->state >> 64), (uint64_t)random->state, (uint64_t)(random->increment >> 64),
             (uint64_t)random->increment, random->spare, random->has_spare);
    return json_string(state);
}

/* The next `digits` of a text of hexadecimal digits. */
static uint64_t take_hex(const char **text, int digits)
{
    uint64_t value = 0;

    for (int i = 0; i < digits; i++, ++*text)
        value = value << 4 | (uint64_t)(**text <= '9' ? **text - '0' : **text - 'a' + 10);
    return value;
}

static struct numpy_random read_random(struct members *members)
{
    const char *text = members_text(members, "random", RANDOM_DIGITS);
    uint64_t words[RANDOM_WORDS] = {0};
    struct numpy_random random = {.state = 0};

    if (strlen(text) != RANDOM_DIGITS || strspn(text, "0123456789abcdef") != RANDOM_DIGITS) {
        members_refuse(members, "random", "where the generator stands");
        return random;
    }
    for (size_t i = 0; i < RANDOM_WORDS; i++)
        words[i] = take_hex(&text, 16);
    random.state = (numpy_u128)words[0] << 64 | words[1];
    random.increment = (numpy_u128)words[2] << 64 | words[3];
    random.spare = (uint32_t)take_hex(&text, 8);
    random.has_spare = take_hex(&text, 1) == 1;
    return random;
}

/* ---- proposed ---- */

json_t *record_write_proposed(const struct proposed_record *record)
{
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:b, s:s, s:o, s:o, s:b, s:b, s:b, s:o, s:o, s:o, "
        "s:o}",
        "recurrence", count(record->recurrence), "try", count(record->try_number), "tries",
        count(record->tries), "submission", text(record->submission), "run", text(record->run), "line",
        count(record->line), "batch_size", count(record->batch_size), "limit",
        record->limit_rule == LIMIT_FIXED ? "fixed" : "profiled", "limit_w", number(record->limit_w),
        "wants_profile", (int)record->wants_profile, "reason", job_reason_name(record->reason), "policy",
        text(record->policy), "policy_version", count(record->policy_version), "counted",
        (int)record->counted, "capped", (int)record->capped, "last_try", (int)record->last_try, "epochs",
        count(record->epochs), "stop_by_us", json_integer(record->stop_by_us), "heartbeat_s",
        number(record->heartbeat_s), "why", text(record->why));

    if (object != NULL && record->new_line)
        json_object_set_new(object, "hardware", write_hardware(&record->hardware));
    if (object != NULL)
        json_object_set_new(object, "finish_by_us", json_integer(record->finish_by_us));
    if (object != NULL && record->random)
        json_object_set_new(object, "random", write_random(&record->random_after));
    if (object != NULL && record->numbers != NULL)
        json_object_set_new(object, "numbers", record->numbers);
    return object;
}

void record_read_proposed(struct members *members, double limits_w[JOB_LIMITS_MAX],
                          struct proposed_record *out_record)
{
    static const char *const limit_words[] = {"profiled", "fixed"};
    struct proposed_record record = {
        .recurrence = members_u64(members, "recurrence", 0, INT64_MAX),
        .try_number = (uint32_t)members_u64(members, "try", 0, UINT32_MAX),
        .tries = (uint32_t)members_u64(members, "tries", 0, UINT32_MAX),
        .submission = members_text(members, "submission", JOB_TEXT_MAX - 1),
        .run = members_text(members, "run", JOB_TEXT_MAX - 1),
        .line = (size_t)members_u64(members, "line", 0, JOB_HARDWARE_MAX - 1),
        .new_line = members_has(members, "hardware"),
        .batch_size = (uint32_t)members_u64(members, "batch_size", 1, UINT32_MAX),
        .limit_rule = members_word(members, "limit", limit_words, 2) == 1 ? LIMIT_FIXED : LIMIT_PROFILED,
        .limit_w = members_number_or_null(members, "limit_w", NAN),
        .wants_profile = members_bool(members, "wants_profile"),
        .policy = members_text(members, "policy", JOB_TEXT_MAX - 1),
        .policy_version = (uint32_t)members_u64(members, "policy_version", 0, UINT32_MAX),
        .counted = members_bool(members, "counted"),
        .capped = members_bool(members, "capped"),
        .last_try = members_bool(members, "last_try"),
        .epochs = (uint32_t)members_u64(members, "epochs", 0, JOB_EPOCHS_MAX),
        .stop_by_us = members_time_us(members, "stop_by_us"),
        .finish_by_us =
            members_has(members, "finish_by_us") ? members_time_us(members, "finish_by_us") : FINISH_UNTOLD,
        .heartbeat_s = members_number(members, "heartbeat_s"),
        .random = members_has(members, "random"),
        .why = members_text(members, "why", JOB_WHY_MAX),
        .numbers = json_object_get(members->object, "numbers"),
    };

    if (!job_reason_parse(members_text(members, "reason", JOB_TEXT_MAX), &record.reason))
        members_refuse(members, "reason", "a known reason");
    if (record.new_line)
        record.hardware = read_hardware(members, limits_w);
    if (record.random)
        record.random_after = read_random(members);
    *out_record = record;
}

/* ---- attempt ---- */

json_t *record_write_attempt(const struct attempt_record *record)
{
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:o}", "attempt", count(record->attempt), "user", text(record->user),
                  "account", text(record->account), "host", text(record->host));

    if (record->gpus != NULL && record->gpus[0] != '\0' &&
        json_object_set_new(object, "gpus", json_string(record->gpus)) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

void record_read_attempt(struct members *members, struct attempt_record *out_record)
{
    *out_record = (struct attempt_record){
        .attempt = (uint32_t)members_u64(members, "attempt", 1, UINT32_MAX),
        .user = members_text(members, "user", JOB_TEXT_MAX - 1),
        .account = members_text(members, "account", JOB_TEXT_MAX - 1),
        .host = members_text(members, "host", JOB_TEXT_MAX - 1),
        .gpus = members_has(members, "gpus") ? members_text(members, "gpus", JOB_GPUS_MAX - 1) : "",
    };
}

/* ---- profiled ---- */

static json_t *write_points(const struct fly_power_point *points, size_t point_count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < point_count; i++)
        json_array_append_new(array,
                              json_pack("[f, f, f]", points[i].limit_w, points[i].power_w, points[i].time_s));
    return array;
}

static size_t read_points(struct members *members, struct fly_power_point *out_points, size_t most)
{
    const json_t *points = members_array(members, "points", most);

    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);

        out_points[i] = (struct fly_power_point){json_number_value(json_array_get(point, 0)),
                                                 json_number_value(json_array_get(point, 1)),
                                                 json_number_value(json_array_get(point, 2))};
    }
    return json_array_size(points);
}

json_t *record_write_profiled(const struct profiled_record *record)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b}", "points", write_points(record->points, record->count),
                     "units_per_epoch", number(record->units_per_epoch), "limit_w", number(record->limit_w),
                     "epochs", count(record->epochs), "refused", (int)record->refused, "folded",
                     (int)record->folded);
}

void record_read_profiled(struct members *members, struct profiled_record *out_record)
{
    *out_record = (struct profiled_record){
        .units_per_epoch = members_number(members, "units_per_epoch"),
        .limit_w = members_number(members, "limit_w"),
        .epochs = (uint32_t)members_u64(members, "epochs", 0, JOB_EPOCHS_MAX),
        .refused = members_bool(members, "refused"),
        .folded = members_bool(members, "folded"),
    };
    out_record->count = read_points(members, out_record->points, JOB_LIMITS_MAX);
}

json_t *record_write_profiled_part(const struct profiled_part_record *record)
{
    return json_pack("{s:o, s:o, s:o}", "line", count(record->line), "batch_size", count(record->batch_size),
                     "points", write_points(record->points, record->count));
}

void record_read_profiled_part(struct members *members, struct profiled_part_record *out_record)
{
    *out_record = (struct profiled_part_record){
        .line = (size_t)members_u64(members, "line", 0, JOB_HARDWARE_MAX - 1),
        .batch_size = (uint32_t)members_u64(members, "batch_size", 1, UINT32_MAX),
    };
    out_record->count = read_points(members, out_record->points, JOB_KNOWN_MAX);
}

/* ---- while it runs ---- */

json_t *record_write_heartbeat(const struct heartbeat_record *record)
{
    return json_pack("{s:o, s:o, s:o}", "attempt", count(record->attempt), "energy_j",
                     number(record->energy_j), "time_s", number(record->time_s));
}

void record_read_heartbeat(struct members *members, struct heartbeat_record *out_record)
{
    *out_record = (struct heartbeat_record){
        .attempt = (uint32_t)members_u64(members, "attempt", 1, UINT32_MAX),
        .energy_j = members_number_or_null(members, "energy_j", NAN),
        .time_s = members_number_or_null(members, "time_s", NAN),
    };
}

json_t *record_write_epoch(const struct epoch_record *record)
{
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:b, s:o, s:o}", "attempt", count(record->attempt), "epoch",
        count(record->epoch), "metric", number(record->metric), "energy_j", number(record->energy_j),
        "time_s", number(record->time_s), "answer", job_answer_name(record->answer), "stop",
        job_stop_name(record->stop), "epochs", count(record->epochs), "late", (int)record->late,
        "total_energy_j", number(record->total_energy_j), "total_time_s", number(record->total_time_s));

    /* A bool that says nothing is not written: most are. */
    if (record->afterwards)
        json_object_set_new(object, "afterwards", json_true());
    return with_reference(object, record->reference_per_kwh);
}

void record_read_epoch(struct members *members, struct epoch_record *out_record)
{
    *out_record = (struct epoch_record){
        .attempt = (uint32_t)members_u64(members, "attempt", 1, UINT32_MAX),
        .epoch = (uint32_t)members_u64(members, "epoch", 1, JOB_EPOCHS_MAX),
        .metric = members_number_or_null(members, "metric", NAN),
        .energy_j = members_number_or_null(members, "energy_j", NAN),
        .time_s = members_number(members, "time_s"),
        .epochs = (uint32_t)members_u64(members, "epochs", 0, JOB_EPOCHS_MAX),
        .late = members_bool(members, "late"),
        .total_energy_j = members_number_or_null(members, "total_energy_j", NAN),
        .total_time_s = members_number(members, "total_time_s"),
        .reference_per_kwh = read_reference(members),
        .afterwards = members_has(members, "afterwards") && members_bool(members, "afterwards"),
    };
    if (!job_answer_parse(members_text(members, "answer", JOB_TEXT_MAX), &out_record->answer) ||
        !job_stop_parse(members_text(members, "stop", JOB_TEXT_MAX), &out_record->stop))
        members_refuse(members, "answer", "a known answer and stop");
}

/* ---- the end ---- */

json_t *record_write_ended(const struct ended_record *record)
{
    json_t *object =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "outcome", job_outcome_name(record->outcome),
                  "stop", job_stop_name(record->stop), "attempt", count(record->attempt), "epochs",
                  count(record->epochs), "metric", number(record->metric), "energy_j",
                  number(record->energy_j), "time_s", number(record->time_s), "text", text(record->text));

    return with_reference(object, record->reference_per_kwh);
}

void record_read_ended(struct members *members, struct ended_record *out_record)
{
    *out_record = (struct ended_record){
        .attempt = (uint32_t)members_u64(members, "attempt", 1, UINT32_MAX),
        .epochs = (uint32_t)members_u64(members, "epochs", 0, JOB_EPOCHS_MAX),
        .metric = members_number_or_null(members, "metric", NAN),
        .energy_j = members_number_or_null(members, "energy_j", NAN),
        .time_s = members_number(members, "time_s"),
        .text = members_text(members, "text", JOB_WHY_MAX),
        .reference_per_kwh = read_reference(members),
    };
    if (!job_outcome_parse(members_text(members, "outcome", JOB_TEXT_MAX), &out_record->outcome) ||
        !job_stop_parse(members_text(members, "stop", JOB_TEXT_MAX), &out_record->stop))
        members_refuse(members, "outcome", "a known outcome and stop");
}

json_t *record_write_closed(const struct closed_record *record)
{
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:o}", "attempt", count(record->attempt), "energy_j",
                  number(record->energy_j), "time_s", number(record->time_s), "text", text(record->text));

    return with_reference(object, record->reference_per_kwh);
}

void record_read_closed(struct members *members, struct closed_record *out_record)
{
    *out_record = (struct closed_record){
        .attempt = (uint32_t)members_u64(members, "attempt", 1, UINT32_MAX),
        .energy_j = members_number_or_null(members, "energy_j", NAN),
        .time_s = members_number(members, "time_s"),
        .text = members_text(members, "text", JOB_WHY_MAX),
        .reference_per_kwh = read_reference(members),
    };
}

/* ---- set ---- */

json_t *record_write_setting(const struct job_setting *setting)
{
    json_t *json = NULL;

    return shape_write(&shape_setting, setting, &json, NULL) == 0 ? json : NULL;
}

void record_read_setting(struct members *members, struct job_setting *out_setting)
{
    struct job_setting setting = {.job = NULL};
    struct arena nothing; /* a setting has no texts or lists */

    arena_init(&nothing, 0);
    if (shape_read(&shape_setting, members->object, SHAPE_LENIENT, &nothing, &setting, NULL) < 0)
        members_refuse(members, "objective, control_every or pin", "a setting");
    *out_setting = setting;
}
