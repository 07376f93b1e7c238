/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/trial_past.h"

#include <math.h>

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

double trial_past_metric(const struct trial_past *past, const struct fly_job_definition *definition)
{
    if (!definition->best_so_far)
        return past->metric;
    return definition->target == FLY_TARGET_AT_MOST ? past->least_metric : past->greatest_metric;
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

static int on_proposed(void *fold, const struct log_event *at, const struct proposed_record *proposed)
{
    struct trial_past *past = fold;

    past->record = *proposed;
    past->record.hardware = (struct job_hardware){0};
    keep(&past->proposed, at->body);
    past->proposed_us = at->event->time_us;
    past->limit_w = proposed->limit_w;
    past->epochs = proposed->epochs;
    return 0;
}

static int on_attempt(void *fold, const struct log_event *at, const struct attempt_record *attempt)
{
    struct trial_past *past = fold;

    past->origin = *attempt;
    keep(&past->attempted, at->body);
    if (past->attempt > 0) {
        past->past_startup_energy_j += past->startup_energy_j;
        past->past_startup_time_s += past->startup_time_s;
    }
    past->startup_energy_j = past->startup_time_s = NAN;
    past->attempt = attempt->attempt;
    past->past_energy_j += past->energy_j;
    past->past_time_s += past->time_s;
    past->energy_j = past->time_s = 0.0;
    past->silent = false;
    return 0;
}

static int on_profiled(void *fold, const struct log_event *at, const struct profiled_record *profiled)
{
    struct trial_past *past = fold;

    (void)at;
    past->profiled = true;
    past->limit_w = profiled->limit_w;
    past->epochs = profiled->epochs;
    return 0;
}

static int on_heartbeat(void *fold, const struct log_event *at, const struct heartbeat_record *heartbeat)
{
    struct trial_past *past = fold;

    (void)at;
    past->silent &= heartbeat->attempt != past->attempt;
    if (heartbeat->attempt != past->attempt || !isfinite(heartbeat->energy_j) || !isfinite(heartbeat->time_s))
        return 0;
    past->energy_j = fmax(past->energy_j, heartbeat->energy_j);
    past->time_s = fmax(past->time_s, heartbeat->time_s);
    return 0;
}

static int on_epoch(void *fold, const struct log_event *at, const struct epoch_record *epoch)
{
    struct trial_past *past = fold;

    (void)at;
    if (epoch->attempt != past->attempt)
        return 0;
    past->silent = false;
    past->energy_j = epoch->energy_j;
    past->time_s = epoch->time_s;
    past->startup_energy_j = epoch->startup_energy_j;
    past->startup_time_s = epoch->startup_time_s;
    past->epochs_done = epoch->epoch;
    past->metric = epoch->metric;
    past->least_metric = fmin(past->least_metric, epoch->metric);
    past->greatest_metric = fmax(past->greatest_metric, epoch->metric);
    if (!isnan(epoch->reference_per_kwh))
        past->reference_per_kwh = epoch->reference_per_kwh;
    return 0;
}

static int on_ended(void *fold, const struct log_event *at, const struct ended_record *ended)
{
    struct trial_past *past = fold;

    past->how = *ended;
    keep(&past->end, at->body);
    past->ended_us = at->event->time_us;
    past->silent = ended->outcome == TRIAL_EXPIRED;
    past->expired |= past->silent;
    past->ended |= ended->outcome != TRIAL_EXPIRED;
    past->run_reference_per_kwh = ended->reference_per_kwh;
    return 0;
}

static int on_closed(void *fold, const struct log_event *at, const struct closed_record *closed)
{
    struct trial_past *past = fold;

    (void)at;
    past->closed = true;
    past->run_energy_j = closed->energy_j;
    past->run_time_s = closed->time_s;
    if (isnan(past->run_reference_per_kwh))
        past->run_reference_per_kwh = closed->reference_per_kwh;
    return 0;
}

static const struct log_visitor visitor = {.on_proposed = on_proposed,
                                           .on_attempt = on_attempt,
                                           .on_profiled = on_profiled,
                                           .on_heartbeat = on_heartbeat,
                                           .on_epoch = on_epoch,
                                           .on_ended = on_ended,
                                           .on_closed = on_closed};

int trial_past_take(struct trial_past *past, const struct store_event *event, json_t *body,
                    struct fly_error *out_error)
{
    int code = log_tell(&visitor, past, event, body, out_error);

    past->parted |= record_kind_parse(event->kind) == RECORD_PROFILED_PART;
    return code < 0 ? code : past->until_attempt > 0 && past->attempt >= past->until_attempt;
}

int trial_past_visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    return trial_past_take(context, event, NULL, out_error);
}
