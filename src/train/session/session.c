/* SPDX-License-Identifier: Apache-2.0 */
/* What a training calls on its session, except reports (session_report.c) and ends (session_end.c). */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "train/session/session_private.h"

static const char *const answer_names[] = {"go on", "reached", "stop"};
_Static_assert(sizeof answer_names / sizeof answer_names[0] == FLY_STOP + 1, "a name for each");

const char *fly_answer_name(enum fly_answer answer)
{
    return (unsigned)answer <= FLY_STOP ? answer_names[answer] : "unknown";
}

uint32_t fly_session_batch_size(const struct fly_session *session)
{
    return session->proposal.batch_size;
}

uint32_t fly_session_local_batch_size(const struct fly_session *session)
{
    return session->proposal.local_batch_size;
}

double fly_learning_rate(double rate, uint32_t suited_batch_size, uint32_t batch_size,
                         enum fly_scaling scaling)
{
    double factor = (double)batch_size / (double)suited_batch_size;

    return rate * (scaling == FLY_SCALE_SQUARE_ROOT ? sqrt(factor) : factor);
}

double fly_session_learning_rate(const struct fly_session *session, double default_rate,
                                 enum fly_scaling scaling)
{
    return fly_learning_rate(default_rate, session->options.job.default_batch_size,
                             session->proposal.batch_size, scaling);
}

void fly_session_resumed(struct fly_session *session, uint32_t epochs_done)
{
    if (!session->reported)
        session->epoch = session->epoch_newest = session->epoch_first = session->epoch_counted = epochs_done;
    session->resumed |= !session->reported;
}

int fly_session_resumed_from(struct fly_session *session, uint32_t epochs_done, uint32_t batch_size,
                             struct fly_error *out_error)
{
    if (batch_size != session->proposal.batch_size)
        return error_set(out_error, FLY_ECONFLICT,
                         "session: the checkpoint was trained with batch size %u, and this try has %u; begin "
                         "anew, and keep each try's checkpoints in its own directory",
                         batch_size, session->proposal.batch_size);
    fly_session_resumed(session, epochs_done);
    return 0;
}

int fly_batch_split(uint32_t batch_size, uint32_t replicas, uint32_t max_micro_batch_size,
                    struct fly_batch_split *out_split, struct fly_error *out_error)
{
    uint32_t local, most, times = 1;

    if (replicas == 0 || batch_size == 0 || batch_size % replicas != 0)
        return error_set(out_error, FLY_EUSAGE,
                         "batch size %u for %u replicas: each has to get the same number of samples, from 1",
                         batch_size, replicas);
    local = batch_size / replicas;
    most = max_micro_batch_size > 0 ? max_micro_batch_size : local;
    while (local % times != 0 || local / times > most)
        times++;
    *out_split = (struct fly_batch_split){local, local / times, times};
    return 0;
}

void fly_session_epoch_begin(struct fly_session *session)
{
    if (session->disabled || session_is_copy(session))
        return;
    session_note_begin(session, false);
    session_limit_epoch_begin(session);
}

enum fly_answer fly_session_step_begin(struct fly_session *session)
{
    if (session->disabled || session_is_copy(session))
        return FLY_GO_ON;
    if (session->count.begun == 0)
        session_note_begin(session, true);
    if (!session->count.open)
        fly_session_epoch_begin(session);
    session_limit_step(session);
    if (!session->limit.refused && !session->limit.spent)
        return FLY_GO_ON;
    session->answer = FLY_STOP;
    session->stop = JOB_STOP_COST;
    return FLY_STOP;
}

bool fly_session_step_waits(const struct fly_session *session)
{
    return !session->disabled && !session_is_copy(session) &&
           (session->limit.tuner != NULL || (session->carbon.steers && session->carbon.countdown <= 1));
}

void session_step_missed(struct fly_session *session)
{
    if (session->limit.tuner == NULL) {
        (void)fly_session_step_begin(session);
        return;
    }
    if (session->count.begun == 0)
        session_note_begin(session, true);
    if (!session->count.open)
        fly_session_epoch_begin(session);
    step_count_step(&session->count);
}

void fly_session_give_back(struct fly_session *session)
{
    if (!session->disabled && !session_is_copy(session))
        idle_turner_give_back(&session->limit.idle);
}

void fly_session_evaluation_begin(struct fly_session *session)
{
    if (session->disabled || session_is_copy(session) || !session->count.open)
        return;
    session_limit_epoch_end(session);
}

/* Evaluation opens no window of its own: energy and time count on until the report. */
void fly_session_evaluation_end(struct fly_session *session)
{
    fly_session_evaluation_begin(session);
}

static double limit_standing_w(const struct session_limit *limit)
{
    struct fly_tuner_report report = {.size = sizeof report};

    if (limit->tuner != NULL && fly_tuner_report(limit->tuner, &report) == 0)
        return report.limit_w;
    return idle_turner_is_idle(&limit->idle) ? idle_turner_start(limit->data) : limit->held_w;
}

int fly_session_status(const struct fly_session *session, struct fly_session_status *out_status)
{
    const struct job_proposal *proposal = &session->proposal;
    struct fly_tuner_report tuning = {.size = sizeof tuning};
    struct post_status post = {.text = ""};

    if (out_status->size < sizeof *out_status)
        return FLY_EUSAGE;
    if (session->post != NULL && !session_is_copy(session))
        post = post_look(session->post);
    if (session->limit.tuner != NULL && !session_is_copy(session))
        (void)fly_tuner_report(session->limit.tuner, &tuning);
    *out_status = (struct fly_session_status){
        .size = out_status->size,
        .connected = session->known && post.connected,
        .disabled = session->disabled,
        .trial = proposal->trial,
        .attempt = proposal->attempt,
        .recurrence = proposal->recurrence,
        .try_number = proposal->try_number,
        .last_try = proposal->last_try,
        .batch_size = proposal->batch_size,
        .local_batch_size = proposal->local_batch_size,
        .epoch = session->epoch,
        .epochs_done = proposal->epochs_done,
        .epochs_max = session->epochs,
        .answer = session->answer,
        .limit_w = limit_standing_w(&session->limit),
        .energy_j = session->energy_j,
        .time_s = session->time_s,
        .kept = post.kept,
    };
    snprintf(out_status->why, sizeof out_status->why, "%s", proposal->why);
    snprintf(out_status->text, sizeof out_status->text, "%s",
             session->disabled       ? "FLYBALL_DISABLE is set"
             : post.text[0] != '\0'  ? post.text
             : session->note != NULL ? session->note
                                     : "");
    snprintf(out_status->limit_text, sizeof out_status->limit_text, "%s",
             tuning.reason == FLY_TUNER_NO_WORK ? tuning.text : session->limit.text);
    return 0;
}
