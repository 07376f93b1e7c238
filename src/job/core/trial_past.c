/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/trial_past.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

const struct trial_past trial_past_empty = {.metric = NAN,
                                            .limit_w = NAN,
                                            .reference_per_kwh = NAN,
                                            .run_reference_per_kwh = NAN,
                                            .how = {.reference_per_kwh = NAN}};

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

static void take_proposed(struct trial_past *past, struct members *members, json_t *body, int64_t time_us)
{
    double limits_w[JOB_LIMITS_MAX];

    record_read_proposed(members, limits_w, &past->record);
    past->record.hardware = (struct job_hardware){0};
    keep(&past->proposed, body);
    past->proposed_us = time_us;
    past->limit_w = past->record.limit_w;
    past->epochs = past->record.epochs;
}

static void take_attempt(struct trial_past *past, struct members *members, json_t *body)
{
    record_read_attempt(members, &past->origin);
    keep(&past->attempted, body);
    past->attempt = past->origin.attempt;
    past->past_energy_j += past->energy_j;
    past->past_time_s += past->time_s;
    past->energy_j = past->time_s = 0.0;
    past->silent = false;
}

static void take_profiled(struct trial_past *past, struct members *members)
{
    struct profiled_record *record = malloc(sizeof *record);

    if (record == NULL) {
        members_refuse(members, "", "memory for a profile");
        return;
    }
    record_read_profiled(members, record);
    past->profiled = true;
    past->limit_w = record->limit_w;
    past->epochs = record->epochs;
    free(record);
}

static void take_heartbeat(struct trial_past *past, struct members *members)
{
    struct heartbeat_record record;

    record_read_heartbeat(members, &record);
    past->silent &= record.attempt != past->attempt;
    if (record.attempt != past->attempt || !isfinite(record.energy_j) || !isfinite(record.time_s))
        return;
    past->energy_j = fmax(past->energy_j, record.energy_j);
    past->time_s = fmax(past->time_s, record.time_s);
}

static void take_epoch(struct trial_past *past, struct members *members)
{
    struct epoch_record record;

    record_read_epoch(members, &record);
    if (record.attempt != past->attempt)
        return;
    past->silent = false;
    past->energy_j = record.energy_j;
    past->time_s = record.time_s;
    past->epochs_done = record.epoch;
    past->metric = record.metric;
    if (!isnan(record.reference_per_kwh))
        past->reference_per_kwh = record.reference_per_kwh;
}

static void take_ended(struct trial_past *past, struct members *members, json_t *body, int64_t time_us)
{
    record_read_ended(members, &past->how);
    keep(&past->end, body);
    past->ended_us = time_us;
    past->silent = past->how.outcome == TRIAL_EXPIRED;
    past->expired |= past->silent;
    past->ended |= past->how.outcome != TRIAL_EXPIRED;
    past->run_reference_per_kwh = past->how.reference_per_kwh;
}

static void take_closed(struct trial_past *past, struct members *members)
{
    struct closed_record record;

    record_read_closed(members, &record);
    past->closed = true;
    past->run_energy_j = record.energy_j;
    past->run_time_s = record.time_s;
    if (isnan(past->run_reference_per_kwh))
        past->run_reference_per_kwh = record.reference_per_kwh;
}

int trial_past_take(struct trial_past *past, const struct store_event *event, json_t *body,
                    struct fly_error *out_error)
{
    struct members members = members_of(body);

    switch (record_kind_parse(event->kind)) {
    case RECORD_PROPOSED:
        take_proposed(past, &members, body, event->time_us);
        break;
    case RECORD_ATTEMPT:
        take_attempt(past, &members, body);
        break;
    case RECORD_PROFILED:
        take_profiled(past, &members);
        break;
    case RECORD_PROFILED_PART:
        past->parted = true;
        break;
    case RECORD_HEARTBEAT:
        take_heartbeat(past, &members);
        break;
    case RECORD_EPOCH:
        take_epoch(past, &members);
        break;
    case RECORD_ENDED:
        take_ended(past, &members, body, event->time_us);
        break;
    case RECORD_CLOSED:
        take_closed(past, &members);
        break;
    case RECORD_DEFINED:
    case RECORD_SET:
    case RECORD_KINDS:
        break;
    }
    if (members.wrong != NULL)
        return error_set(out_error, FLY_EDATA, "event %" PRIu64 " ('%s'): '%s': expected %s", event->number,
                         event->kind, members.wrong, members.expected);
    return past->until_attempt > 0 && past->attempt >= past->until_attempt;
}

int trial_past_visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    json_t *body = json_loads(event->body, 0, NULL);
    int code = trial_past_take(context, event, body, out_error);

    json_decref(body);
    return code;
}
