/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/trial_past.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "job/core/job_words.h"

const struct trial_past trial_past_empty = {
    .metric = NAN,
    .least_metric = NAN,
    .greatest_metric = NAN,
    .startup_energy_j = NAN,
    .startup_time_s = NAN,
    .limit_w = NAN,
    .reference_per_kwh = NAN,
    .run_reference_per_kwh = NAN,
    .how = {.reference_per_kwh = NAN, .startup_energy_j = NAN, .startup_time_s = NAN}};

double trial_past_metric(const struct trial_past *past, const struct job_definition *definition)
{
    if (!definition->best_so_far)
        return past->metric;
    return definition->target == JOB_AT_MOST ? past->least_metric : past->greatest_metric;
}

void trial_past_deinit(struct trial_past *past)
{
    json_decref(past->proposed);
    json_decref(past->attempted);
    json_decref(past->end);
    *past = trial_past_empty;
}

static void keep(json_t **place, json_t *body)
{
    json_decref(*place);
    *place = json_incref(body);
}

static int take_proposed(struct trial_past *past, json_t *body, int64_t time_us, struct fly_error *why)
{
    struct arena arena;
    int code;

    arena_init(&arena, RECORD_ARENA_MAX);
    code = record_read_proposed(body, &arena, &past->record, why);
    arena_deinit(&arena);
    if (code < 0)
        return code;
    past->record.hardware = (struct job_hardware){0};
    keep(&past->proposed, body);
    past->proposed_us = time_us;
    past->limit_w = past->record.limit_w;
    past->epochs = past->record.epochs;
    return 0;
}

static int take_attempt(struct trial_past *past, json_t *body, struct fly_error *why)
{
    int code = record_read_attempt(body, &past->origin, why);

    if (code < 0)
        return code;
    keep(&past->attempted, body);
    if (past->attempt > 0) {
        past->past_startup_energy_j += past->startup_energy_j;
        past->past_startup_time_s += past->startup_time_s;
    }
    past->startup_energy_j = past->startup_time_s = NAN;
    past->attempt = past->origin.attempt;
    past->past_energy_j += past->energy_j;
    past->past_time_s += past->time_s;
    past->energy_j = past->time_s = 0.0;
    past->silent = false;
    return 0;
}

static int take_profiled(struct trial_past *past, json_t *body, struct fly_error *why)
{
    struct profiled_record *record = malloc(sizeof *record);
    int code = record != NULL ? record_read_profiled(body, record, why) : error_no_memory(why);

    if (code == 0) {
        past->profiled = true;
        past->limit_w = record->limit_w;
        past->epochs = record->epochs;
    }
    free(record);
    return code;
}

static int take_heartbeat(struct trial_past *past, json_t *body, struct fly_error *why)
{
    struct heartbeat_record record;
    int code = record_read_heartbeat(body, &record, why);

    if (code < 0)
        return code;
    past->silent &= record.attempt != past->attempt;
    if (record.attempt != past->attempt || !isfinite(record.energy_j) || !isfinite(record.time_s))
        return 0;
    past->energy_j = fmax(past->energy_j, record.energy_j);
    past->time_s = fmax(past->time_s, record.time_s);
    return 0;
}

static int take_epoch(struct trial_past *past, json_t *body, struct fly_error *why)
{
    struct epoch_record record;
    int code = record_read_epoch(body, &record, why);

    if (code < 0 || record.attempt != past->attempt)
        return code;
    past->silent = false;
    past->energy_j = record.energy_j;
    past->time_s = record.time_s;
    past->startup_energy_j = record.startup_energy_j;
    past->startup_time_s = record.startup_time_s;
    past->epochs_done = record.epoch;
    past->metric = record.metric;
    past->least_metric = fmin(past->least_metric, record.metric);
    past->greatest_metric = fmax(past->greatest_metric, record.metric);
    if (!isnan(record.reference_per_kwh))
        past->reference_per_kwh = record.reference_per_kwh;
    return 0;
}

static int take_ended(struct trial_past *past, json_t *body, int64_t time_us, struct fly_error *why)
{
    int code = record_read_ended(body, &past->how, why);

    if (code < 0)
        return code;
    keep(&past->end, body);
    past->ended_us = time_us;
    past->silent = past->how.outcome == TRIAL_EXPIRED;
    past->expired |= past->silent;
    past->ended |= past->how.outcome != TRIAL_EXPIRED;
    past->run_reference_per_kwh = past->how.reference_per_kwh;
    return 0;
}

static int take_closed(struct trial_past *past, json_t *body, struct fly_error *why)
{
    struct closed_record record;
    int code = record_read_closed(body, &record, why);

    if (code < 0)
        return code;
    past->closed = true;
    past->run_energy_j = record.energy_j;
    past->run_time_s = record.time_s;
    if (isnan(past->run_reference_per_kwh))
        past->run_reference_per_kwh = record.reference_per_kwh;
    return 0;
}

static int take(struct trial_past *past, const struct store_event *event, json_t *body, struct fly_error *why)
{
    switch (record_kind_parse(event->kind)) {
    case RECORD_PROPOSED:
        return take_proposed(past, body, event->time_us, why);
    case RECORD_ATTEMPT:
        return take_attempt(past, body, why);
    case RECORD_PROFILED:
        return take_profiled(past, body, why);
    case RECORD_PROFILED_PART:
        past->parted = true;
        return 0;
    case RECORD_BROUGHT: /* of no trial */
        return 0;
    case RECORD_HEARTBEAT:
        return take_heartbeat(past, body, why);
    case RECORD_EPOCH:
        return take_epoch(past, body, why);
    case RECORD_ENDED:
        return take_ended(past, body, event->time_us, why);
    case RECORD_CLOSED:
        return take_closed(past, body, why);
    case RECORD_DEFINED:
    case RECORD_SET:
    case RECORD_KINDS:
        break;
    }
    return 0;
}

int trial_past_take(struct trial_past *past, const struct store_event *event, json_t *body,
                    struct fly_error *out_error)
{
    struct fly_error why;

    if (take(past, event, body, &why) < 0)
        return record_refuse(event, &why, out_error);
    return past->until_attempt > 0 && past->attempt >= past->until_attempt;
}

int trial_past_visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    json_t *body;
    int code = record_parse(event, &body, out_error);

    if (code < 0)
        return code;
    code = trial_past_take(context, event, body, out_error);
    json_decref(body);
    return code;
}
