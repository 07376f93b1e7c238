/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of the public batch-size server's clients: what to run, and what came of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compat/zeus/serve/zeus_call.h"
#include "job/core/job_record.h"
#include "shapes/shape_rows.h"

/* A trial's number and what a report says of it. */
struct zeus_trial {
    const char *job_id;
    int64_t batch_size;
    int64_t trial_number;
    double time_s; /* since the trial's start, as is the energy */
    double energy_j;
    double metric; /* NAN: not a number */
    int64_t current_epoch;
};

#define AT(member) offsetof(struct zeus_trial, member)
#define AMOUNT_MOST 1e15 /* J, s: 30 million years */

static const struct zeus_field trial_fields[] = {
    {"job_id", ZEUS_TEXT, .needed = true, .most = INFINITY, .offset = AT(job_id)},
    {"batch_size", ZEUS_WHOLE, .needed = true, .most = UINT32_MAX, .offset = AT(batch_size)},
    {"trial_number", ZEUS_WHOLE, .needed = true, .most = 0x1p53, .offset = AT(trial_number)},
    {"time", ZEUS_NUMBER, .needed = true, .most = AMOUNT_MOST, .offset = AT(time_s)},
    {"energy", ZEUS_NUMBER, .needed = true, .most = AMOUNT_MOST, .offset = AT(energy_j)},
    {"metric", ZEUS_METRIC, .needed = true, .offset = AT(metric)},
    {"current_epoch", ZEUS_WHOLE, .needed = true, .least = 1, .most = JOB_EPOCHS_MAX,
     .offset = AT(current_epoch)},
};
enum { TRIAL_ID_FIELDS = 3, TRIAL_FIELDS = sizeof trial_fields / sizeof trial_fields[0] };

/* The fields of a proposal that are used here. */
struct sized {
    uint32_t batch_size;
};

static const struct shape_field sized_rows[] = {{SHAPE_AT(sized, batch_size), SHAPE_IS_U32(1, UINT32_MAX)}};
static const struct shape shape_sized = {SHAPE_OF(sized, sized_rows)};

static int take_batch_size(void *state, const struct store_event *event, struct fly_error *out_error)
{
    struct sized sized;
    json_t *body = NULL;

    (void)out_error;
    if (record_parse(event, &body, NULL) == 0 &&
        shape_read(&shape_sized, body, SHAPE_LENIENT, NULL, &sized, NULL) == 0)
        *(uint64_t *)state = sized.batch_size;
    json_decref(body);
    return 1; /* its first event is enough */
}

/* Checks that the trial belongs to the job and has that batch size. FLY_ENOTFOUND. */
static int find_trial(struct zeus_call *call, const char *name, const struct zeus_trial *trial)
{
    const struct store_query query = {.trial = (uint64_t)trial->trial_number, .limit = 1};
    uint64_t batch_size = 0;
    int code = trial->trial_number == 0
                   ? 0
                   : call->jobs->backend->read(call->jobs->self, name, &query, take_batch_size, &batch_size,
                                               &call->error);

    if (code >= 0 && (batch_size == 0 || batch_size != (uint64_t)trial->batch_size))
        code = error_set(&call->error, FLY_ENOTFOUND,
                         "job '%.300s' has no trial %" PRId64 " with the batch size %" PRId64, call->job_id,
                         trial->trial_number, trial->batch_size);
    return code < 0 ? code : 0;
}

static int propose(struct zeus_call *call, struct job_proposal *out_proposal)
{
    const char *caller = call->request->caller_name;
    char name[JOB_NAME_MAX + 1], request[ZEUS_RANDOM_TEXT];
    struct job_question question = {.job = name, .request = request};
    struct zeus_job job;
    int code = zeus_find_job(call, name, &job);

    /* The request's own key lets the store repeat it after a commit whose outcome is unknown. */
    if (code == 0)
        code = zeus_random_text(request, &call->error);
    if (code < 0)
        return code;
    question.hardware = (struct job_hardware){.gpu_model = job.gpu_model,
                                              .gpu_count = (uint32_t)job.number_of_gpus,
                                              .world_size = 1,
                                              .max_power_w = job.max_power};
    if (caller != NULL && strlen(caller) < JOB_TEXT_MAX)
        question.origin.user = caller;
    return call->jobs->backend->propose(call->jobs->self, &question, out_proposal, &call->error);
}

struct predicted {
    const char *job_id;
    uint32_t batch_size;
    uint64_t trial;
};

static const struct shape_field predicted_rows[] = {
    {SHAPE_AT(predicted, job_id), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(predicted, batch_size), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT_AS("trial_number", predicted, trial), SHAPE_IS_U64(0, INT64_MAX)},
};
static const struct shape shape_predicted = {SHAPE_OF(predicted, predicted_rows)};

void zeus_predict(struct zeus_call *call)
{
    struct job_proposal proposal;
    int code;

    if (!zeus_named_in_query(call))
        return;
    code = propose(call, &proposal);
    if (code < 0) {
        zeus_fail(call, code, ZEUS_BAD_REQUEST);
        return;
    }
    call->note->decided = !proposal.repeated;
    serve_answer_struct(call->answer, ZEUS_OK, &shape_predicted,
                        &(struct predicted){call->job_id, proposal.batch_size, proposal.trial});
}

/*
 * Reads the trial in the body, by its first `count` fields, and its job's name. FLY_ENOTFOUND; 1:
 * wrong fields were complained of.
 */
static int read_trial(struct zeus_call *call, size_t count, struct zeus_trial *out_trial,
                      char name[JOB_NAME_MAX + 1], struct zeus_job *out_job)
{
    int code;

    zeus_read(call->body, trial_fields, count, out_trial, &call->detail);
    if (call->detail.count > 0) {
        zeus_complained(call);
        return 1;
    }
    call->job_id = out_trial->job_id;
    code = zeus_find_job(call, name, out_job);
    return code < 0 ? code : find_trial(call, name, out_trial);
}

/*
 * Says why a client must stop or may go on: the answer to the epoch says so, unless its trial has
 * ended since.
 */
static void tell_answer(const struct job_answered *answered, bool stops, const struct zeus_trial *trial,
                        const struct zeus_job *job, char message[ZEUS_MESSAGE_MAX])
{
    static const char *const words[] = {
        [JOB_STOP_NONE] = "train on",
        [JOB_STOP_TARGET] = "the target is reached",
        [JOB_STOP_EPOCHS] = "the target was not reached in max_epochs",
        [JOB_STOP_COST] = "its score is worse than beta_knob allows",
        [JOB_STOP_DEADLINE] = "another run has to be done by its time",
        [JOB_STOP_ENDED] = "it has ended before",
    };
    enum job_stop stop = answered->stop;

    if (stops && stop == JOB_STOP_NONE)
        stop = JOB_STOP_ENDED;
    snprintf(message, ZEUS_MESSAGE_MAX,
             "trial %" PRId64 " with batch size %" PRId64 ", epoch %" PRId64 " of %" PRId64 ": %s.",
             trial->trial_number, trial->batch_size, trial->current_epoch, job->max_epochs,
             words[stops ? stop : JOB_STOP_NONE]);
}

static void note_report(struct serve_note *note, const struct job_answered *answered)
{
    note->ended = answered->ends;
    note->outcome = answered->outcome;
    if (answered->ends)
        note->energy_j = answered->energy_j;
}

static void note_end(struct serve_note *note, const struct job_ended *ended)
{
    note->ended = ended->ends;
    /*
     * Clients report their exit whether it was good or not. An exit before the first epoch is not the
     * end of a training.
     */
    note->left = ended->ends && !(ended->time_s > 0.0);
    note->outcome = ended->outcome;
    if (ended->ends)
        note->energy_j = ended->energy_j;
}

/* ---- several ranks of one training ---- */

/*
 * Clients do not say which rank they are, and each rank of a data-parallel training reports its
 * own joules, seconds and metric for every epoch. The first report of an epoch counts, and every
 * rank is told what was decided from it.
 */

/* The newest epoch that a trial has on record, or the one with a key. */
struct epoch_found {
    struct epoch_record record;
    bool found;
};

static int take_epoch(void *state, const struct store_event *event, struct fly_error *out_error)
{
    struct epoch_found *found = state;
    struct epoch_record record;
    json_t *body = NULL;

    (void)out_error;
    if (strncmp(event->key, "epoch/", strlen("epoch/")) == 0 && record_parse(event, &body, NULL) == 0 &&
        record_read(RECORD_EPOCH, body, NULL, &record, NULL) == 0 &&
        (!found->found || record.epoch > found->record.epoch))
        *found = (struct epoch_found){record, true};
    json_decref(body);
    return 0;
}

static int find_epoch(struct zeus_call *call, const struct job_epoch *epoch, const char *key,
                      struct epoch_found *out_found)
{
    const struct store_query query = {.trial = epoch->trial, .key = key};
    int code;

    *out_found = (struct epoch_found){.found = false};
    code =
        call->jobs->backend->read(call->jobs->self, epoch->job, &query, take_epoch, out_found, &call->error);
    return code < 0 ? code : 0;
}

/* Another report of that epoch is on record: gives the same answer. */
static int report_as_recorded(struct zeus_call *call, struct job_epoch *epoch,
                              struct job_answered *out_answered)
{
    struct epoch_found found;
    char key[STORE_KEY_MAX + 1];
    int code;

    snprintf(key, sizeof key, "epoch/%" PRIu64 "/%u/%u", epoch->trial, epoch->attempt, epoch->epoch);
    code = find_epoch(call, epoch, key, &found);
    if (code == 0 && !found.found)
        code = error_set(&call->error, FLY_ECONFLICT, "the report on record cannot be read");
    if (code < 0)
        return code;
    epoch->metric = found.record.metric;
    epoch->energy_j = found.record.energy_j;
    epoch->time_s = found.record.time_s;
    return call->jobs->backend->report(call->jobs->self, epoch, out_answered, &call->error);
}

/*
 * Its sums are below those of the last epoch, which another rank reported. What was spent cannot
 * shrink, so the larger sums count.
 */
static int report_no_less(struct zeus_call *call, struct job_epoch *epoch, struct job_answered *out_answered)
{
    struct fly_error why = call->error;
    struct epoch_found last;
    int code = find_epoch(call, epoch, NULL, &last);

    if (code < 0)
        return code;
    if (!last.found || epoch->epoch <= last.record.epoch ||
        !(epoch->energy_j < last.record.energy_j || epoch->time_s < last.record.time_s)) {
        call->error = why;
        return FLY_EDATA;
    }
    epoch->energy_j = fmax(epoch->energy_j, last.record.energy_j);
    epoch->time_s = fmax(epoch->time_s, last.record.time_s);
    return call->jobs->backend->report(call->jobs->self, epoch, out_answered, &call->error);
}

static int report(struct zeus_call *call, struct job_epoch *epoch, struct job_answered *out_answered)
{
    int code = call->jobs->backend->report(call->jobs->self, epoch, out_answered, &call->error);

    if (code == FLY_EDATA)
        code = report_no_less(call, epoch, out_answered);
    /* Also if another rank was faster in the meantime. */
    return code == FLY_ECONFLICT ? report_as_recorded(call, epoch, out_answered) : code;
}

struct reported {
    bool stop_train, converged;
    const char *message;
};

static const struct shape_field reported_rows[] = {
    {SHAPE_AT(reported, stop_train), SHAPE_IS_BOOL},
    {SHAPE_AT(reported, converged), SHAPE_IS_BOOL},
    {SHAPE_AT(reported, message), SHAPE_IS_TEXT(UINT32_MAX)},
};
static const struct shape shape_reported = {SHAPE_OF(reported, reported_rows)};

void zeus_report(struct zeus_call *call)
{
    char name[JOB_NAME_MAX + 1], message[ZEUS_MESSAGE_MAX];
    struct zeus_trial trial = {0};
    struct job_answered answered;
    struct zeus_job job;
    bool stop;
    int code = read_trial(call, TRIAL_FIELDS, &trial, name, &job);

    if (code == 1)
        return;
    if (code == 0) {
        struct job_epoch epoch = {.job = name,
                                  .trial = (uint64_t)trial.trial_number,
                                  .attempt = 1,
                                  .epoch = (uint32_t)trial.current_epoch,
                                  .metric = trial.metric,
                                  .energy_j = trial.energy_j,
                                  .time_s = trial.time_s,
                                  .reference_per_kwh = NAN,
                                  .startup_energy_j = NAN,
                                  .startup_time_s = NAN};

        code = report(call, &epoch, &answered);
    }
    if (code < 0) {
        zeus_fail(call, code, ZEUS_BAD_REQUEST);
        return;
    }
    note_report(call->note, &answered);
    stop = answered.ended || answered.answer == JOB_STOP;
    tell_answer(&answered, stop, &trial, &job, message);
    serve_answer_struct(
        call->answer, ZEUS_OK, &shape_reported,
        &(struct reported){stop, answered.ended && answered.outcome == TRIAL_REACHED, message});
}

void zeus_end(struct zeus_call *call)
{
    char name[JOB_NAME_MAX + 1];
    struct zeus_trial trial = {0};
    struct job_ended ended;
    struct zeus_job job;
    int code = read_trial(call, TRIAL_ID_FIELDS, &trial, name, &job);

    if (code == 1)
        return;
    if (code == 0) {
        /*
         * Clients report their exit whatever came of the trial. A trial that has already ended stays as
         * it is.
         */
        const struct job_end end = {.job = name,
                                    .trial = (uint64_t)trial.trial_number,
                                    .attempt = 1,
                                    .outcome = TRIAL_CRASHED,
                                    .energy_j = NAN,
                                    .time_s = NAN,
                                    .reference_per_kwh = NAN,
                                    .startup_energy_j = NAN,
                                    .startup_time_s = NAN};

        code = call->jobs->backend->end(call->jobs->self, &end, &ended, &call->error);
    }
    if (code < 0) {
        zeus_fail(call, code, ZEUS_NOT_FOUND);
        return;
    }
    note_end(call->note, &ended);
    serve_answer_json(call->answer, ZEUS_OK, json_null());
}
