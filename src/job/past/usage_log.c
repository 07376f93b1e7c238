/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a job's log once, from begin to end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "job/core/job_words.h"
#include "job/past/usage_private.h"

enum { NUMBER_SIZE = 24 };

/* The GPUs of a kind of hardware. */
struct machine {
    const char *model; /* in the index of texts */
    uint32_t gpu_count;
};

/* A pass over the log of one job. */
struct pass {
    struct usage *usage;
    const char *job;
    struct machine machines[JOB_HARDWARE_MAX];
    size_t machine_count;
    uint64_t newest;          /* trial */
    struct name_index missed; /* numbers of the trials whose slot another trial took */
    uint64_t *missed_from;    /* owned; for each, the first event that was skipped */
    size_t missed_capacity;
    /* While one of these is read once more: */
    uint64_t trial;
    uint64_t from; /* events before this one were added already */
};

static int take_machine(struct pass *pass, const struct proposed_record *record, struct fly_error *out_error)
{
    struct machine *machine = &pass->machines[pass->machine_count];
    int code;

    if (!record->new_line || record->line < pass->machine_count || pass->machine_count == JOB_HARDWARE_MAX)
        return 0;
    code = usage_take_text(pass->usage, record->hardware.gpu_model, &machine->model, out_error);
    machine->gpu_count = record->hardware.gpu_count;
    pass->machine_count += code == 0;
    return code;
}

static int take_proposed(struct pass *pass, struct usage_trial *trial, const struct store_event *event,
                         json_t *body, struct fly_error *out_error)
{
    struct proposed_record record;
    struct fly_error why;
    struct arena arena;
    int code;

    arena_init(&arena, RECORD_ARENA_MAX);
    if (record_read_proposed(body, &arena, &record, &why) == 0)
        code = take_machine(pass, &record, out_error);
    else
        code = record_refuse(event, &why, out_error);
    arena_deinit(&arena);
    if (code < 0)
        return code;
    if (record.line >= pass->machine_count)
        return error_set(out_error, FLY_EDATA, "a trial runs on hardware that is not described");
    trial->first_try = record.try_number == 0;
    trial->line = record.line;
    trial->gpu_count = pass->machines[record.line].gpu_count;
    return 0;
}

static int take_attempt(struct pass *pass, struct usage_trial *trial, const struct store_event *event,
                        json_t *body, bool added, struct fly_error *out_error)
{
    const struct usage_piece moment = {.from_us = event->time_us, .to_us = event->time_us};
    struct attempt_record record;
    struct fly_error why;
    int code;

    if (record_read_attempt(body, &record, &why) < 0)
        return record_refuse(event, &why, out_error);
    if (trial->gpu_count == 0)
        return error_set(out_error, FLY_EDATA, "an attempt at a trial that was never proposed");
    usage_trial_attempt(trial, record.attempt, event->time_us);
    code = usage_part_attempt(pass->usage, trial, pass->job, pass->machines[trial->line].model, &record,
                              out_error);
    return code < 0 ? code : usage_spend(pass->usage, trial, &moment, added, out_error);
}

/* Takes an event that may give a piece: returns 1 if it does, else 0 or an error. */
static int take_figures(struct usage_trial *trial, const struct store_event *event, json_t *body,
                        struct usage_piece *out_piece, struct fly_error *why)
{
    union {
        struct heartbeat_record heartbeat;
        struct epoch_record epoch;
        struct ended_record ended;
        struct closed_record closed;
    } record;
    int64_t time_us = event->time_us;
    int code;

    switch (record_kind_parse(event->kind)) {
    case RECORD_HEARTBEAT:
        code = record_read_heartbeat(body, &record.heartbeat, why);
        return code < 0 ? code : usage_trial_heartbeat(trial, &record.heartbeat, time_us, out_piece);
    case RECORD_EPOCH:
        code = record_read_epoch(body, &record.epoch, why);
        return code < 0 ? code : usage_trial_epoch(trial, &record.epoch, time_us, out_piece);
    case RECORD_ENDED:
        code = record_read_ended(body, &record.ended, why);
        return code < 0 ? code : usage_trial_ended(trial, &record.ended, time_us, out_piece);
    case RECORD_CLOSED:
        code = record_read_closed(body, &record.closed, why);
        return code < 0 ? code : usage_trial_closed(trial, &record.closed, time_us, out_piece);
    default:
        return 0;
    }
}

static int spend_figures(struct pass *pass, struct usage_trial *trial, const struct store_event *event,
                         json_t *body, bool added, struct fly_error *out_error)
{
    struct usage_piece piece;
    struct fly_error why;
    int code = take_figures(trial, event, body, &piece, &why);

    if (code < 0)
        return record_refuse(event, &why, out_error);
    return code == 1 ? usage_spend(pass->usage, trial, &piece, added, out_error) : 0;
}

/* `added`: an earlier pass has added the event. */
static int take_event(struct pass *pass, struct usage_trial *trial, const struct store_event *event,
                      bool added, struct fly_error *out_error)
{
    enum record_kind kind = record_kind_parse(event->kind);
    json_t *body;
    int code = record_parse(event, &body, out_error);

    if (code < 0)
        return code;
    if (kind == RECORD_PROPOSED)
        code = take_proposed(pass, trial, event, body, out_error);
    else if (kind == RECORD_ATTEMPT)
        code = take_attempt(pass, trial, event, body, added, out_error);
    else
        code = spend_figures(pass, trial, event, body, added, out_error);
    json_decref(body);
    return code;
}

/* ---- a job ---- */

static void shut(struct usage *usage, struct usage_trial *trial)
{
    if (trial->number != 0)
        usage_count(usage, trial, 1);
    usage_trial_deinit(trial);
}

/* Notes an event of a trial whose slot another trial has: the log must be read once more for it. */
static int miss(struct pass *pass, const struct store_event *event, struct fly_error *out_error)
{
    size_t before = pass->missed.count, number;
    char name[NUMBER_SIZE];
    uint64_t *from;
    int code;

    snprintf(name, sizeof name, "%" PRIu64, event->trial);
    code = name_index_take(&pass->missed, name, "", &number, out_error);
    if (code < 0 || number < before)
        return code;
    from = array_grow(pass->missed_from, number, &pass->missed_capacity, sizeof from[0]);
    if (from == NULL)
        return error_no_memory(out_error);
    pass->missed_from = from;
    pass->missed_from[number] = event->number;
    return 0;
}

static bool tells(enum record_kind kind)
{
    return kind != RECORD_DEFINED && kind != RECORD_SET && kind != RECORD_PROFILED &&
           kind != RECORD_PROFILED_PART && kind != RECORD_BROUGHT;
}

static int visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct pass *pass = context;
    struct usage *usage = pass->usage;
    struct usage_trial *trial = &usage->slots[event->trial % usage->options.slots];
    enum record_kind kind = record_kind_parse(event->kind);

    if (kind == RECORD_KINDS)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "event %" PRIu64 " is of the kind '%.64s', which this version does not know",
                         event->number, event->kind);
    if (event->trial == 0 || !tells(kind))
        return 0;
    if (event->trial > pass->newest) {
        if (kind != RECORD_PROPOSED)
            return error_set(out_error, FLY_EDATA, "event %" PRIu64 ": trial %" PRIu64 " was never proposed",
                             event->number, event->trial);
        pass->newest = event->trial;
        shut(usage, trial);
        trial->number = event->trial;
    }
    if (trial->number != event->trial)
        return miss(pass, event, out_error);
    return take_event(pass, trial, event, false, out_error);
}

static int visit_again(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct pass *pass = context;
    struct usage *usage = pass->usage;
    struct usage_trial *trial = &usage->slots[0];

    if (!tells(record_kind_parse(event->kind)))
        return 0;
    if (event->number >= pass->from && pass->from != 0) {
        usage_count(usage, trial, -1);
        pass->from = 0;
    }
    return take_event(pass, trial, event, pass->from != 0, out_error);
}

static int read_missed(struct pass *pass, const struct jobs *jobs, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < pass->missed.count && code == 0; i++) {
        struct usage_trial *trial = &pass->usage->slots[0];
        const struct store_query query = {.trial = strtoull(pass->missed.entries[i].name, NULL, 10)};

        trial->number = query.trial;
        pass->from = pass->missed_from[i];
        code = jobs->backend->read(jobs->self, pass->job, &query, visit_again, pass, out_error);
        if (code == 0)
            shut(pass->usage, trial);
    }
    return code;
}

int usage_add_job(struct usage *usage, const struct jobs *jobs, const char *job, struct fly_error *out_error)
{
    static const struct store_query everything = {0};
    struct pass *pass = calloc(1, sizeof *pass);
    int code;

    if (pass == NULL)
        return error_no_memory(out_error);
    pass->usage = usage;
    pass->job = job;
    name_index_init(&pass->missed, USAGE_REVISITS_MAX);
    code = jobs->backend->read(jobs->self, job, &everything, visit, pass, out_error);
    for (size_t i = 0; i < usage->options.slots; i++)
        shut(usage, &usage->slots[i]);
    if (code == 0)
        code = read_missed(pass, jobs, out_error);
    usage_trial_deinit(&usage->slots[0]);
    usage_settle(usage, code == 0);
    name_index_deinit(&pass->missed);
    free(pass->missed_from);
    free(pass);
    return code;
}
