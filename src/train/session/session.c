/* SPDX-License-Identifier: Apache-2.0 */
/* What a training calls on its session, except reports (session_report.c) and ends (session_end.c). */
#include <math.h>
#include <stdio.h>

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
    return fly_learning_rate(default_rate, session->definition.default_batch_size,
                             session->proposal.batch_size, scaling);
}

void fly_session_resumed(struct fly_session *session, uint32_t epochs_done)
{
    if (!session->reported)
        session->epoch = session->epoch_newest = session->epoch_first = session->epoch_counted = epochs_done;
    session->resumed |= !session->reported;
}

void fly_session_epoch_begin(struct fly_session *session)
{
    if (session->disabled || session_is_copy(session))
        return;
    session_limit_epoch_begin(session);
}

enum fly_answer fly_session_step_begin(struct fly_session *session)
{
    if (session->disabled || session_is_copy(session))
        return FLY_GO_ON;
    if (!session->count.open)
        fly_session_epoch_begin(session);
    session_limit_step(session);
    if (!session->limit.refused && !session->limit.spent)
        return FLY_GO_ON;
    session->answer = FLY_STOP;
    session->stop = JOB_STOP_COST;
    return FLY_STOP;
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
    return limit->held_w;
}

int fly_session_status(const struct fly_session *session, struct fly_session_status *out_status)
{
    const struct job_proposal *proposal = &session->proposal;
    struct post_status post = {.text = ""};

    if (out_status->size < sizeof *out_status)
        return FLY_EUSAGE;
    if (session->post != NULL && !session_is_copy(session))
        post = post_look(session->post);
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
    snprintf(out_status->limit_text, sizeof out_status->limit_text, "%s", session->limit.text);
    return 0;
}
