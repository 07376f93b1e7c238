/* SPDX-License-Identifier: Apache-2.0 */
/* What a training calls: steps, reports, and how a try ends. */
#include <flyball/session.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/number.h"
#include "train/program/memory_words.h"
#include "train/session/session_private.h"

/* Reads what a program says of a training in words: its target, its optimizer, its exceptions. */

int fly_target_parse(const char *text, enum fly_target *out_target, double *out_metric,
                     struct fly_error *out_error)
{
    bool at_most = strncmp(text, "<=", 2) == 0;
    const char *number = text + (at_most || strncmp(text, ">=", 2) == 0 ? 2 : 0);
    double metric;

    number += strspn(number, " ");
    if (!number_parse_double(number, &metric) || !isfinite(metric))
        return error_set(out_error, FLY_EUSAGE,
                         "target '%.60s': expected a number, as in '>=0.79' or '<=0.3'", text);
    *out_target = at_most ? FLY_TARGET_AT_MOST : FLY_TARGET_AT_LEAST;
    *out_metric = metric;
    return 0;
}

/* Pieces of optimizers' names in any case; the first row that a name contains decides. */
static const struct {
    const char *piece;
    enum fly_scaling scaling;
} scalings[] = {
    {"linear", FLY_SCALE_LINEAR},
    {"square-root", FLY_SCALE_SQUARE_ROOT},
    /* Steps divided by a running size of the gradient. */
    {"ada", FLY_SCALE_SQUARE_ROOT}, /* Adam, AdamW, NAdam, Adagrad, Adadelta, Adafactor, Adamax, ... */
    {"rmsprop", FLY_SCALE_SQUARE_ROOT},
    {"lamb", FLY_SCALE_SQUARE_ROOT},
    {"lion", FLY_SCALE_SQUARE_ROOT},
    {"novograd", FLY_SCALE_SQUARE_ROOT},
    /* Steps along the gradient itself. */
    {"sgd", FLY_SCALE_LINEAR},
    {"momentum", FLY_SCALE_LINEAR},
    {"nesterov", FLY_SCALE_LINEAR},
    {"lars", FLY_SCALE_LINEAR},
};

/* Whether `name` contains the piece, which is in small letters. */
static bool has_piece(const char *name, const char *piece)
{
    size_t length = strlen(piece);

    for (; *name != '\0'; name++) {
        if (strncasecmp(name, piece, length) == 0)
            return true;
    }
    return false;
}

int fly_scaling_parse(const char *optimizer, enum fly_scaling *out_scaling, struct fly_error *out_error)
{
    const char *dot = strrchr(optimizer, '.'), *name = dot != NULL ? dot + 1 : optimizer;

    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++) {
        if (has_piece(name, scalings[i].piece)) {
            *out_scaling = scalings[i].scaling;
            return 0;
        }
    }
    return error_set(out_error, FLY_EUSAGE,
                     "optimizer '%.60s': how its learning rate follows the batch size is not known; say "
                     "'linear' or 'square-root'",
                     optimizer);
}

/* As an interpreter writes it at the end of a traceback. */
bool fly_out_of_memory(const char *exception, const char *text)
{
    char line[MEMORY_LINE_MAX];
    const char *words;

    snprintf(line, sizeof line, "%.500s%s%s", exception, exception[0] != '\0' ? ": " : "", text);
    return memory_words_in(line, &words) != MEMORY_NONE;
}

/* ---- decides how a try ends, and whether another follows ---- */

void session_fail(struct fly_session *session, enum trial_outcome outcome, const char *text)
{
    if (session->disabled || session_is_copy(session) || session->failed || session->released)
        return;
    /* Without the log there is only one batch size: what did not fit once will not fit again. */
    session->failed = session->known || outcome != TRIAL_OUT_OF_MEMORY;
    if (session->known || session->run_kept)
        session_say_end(session, outcome, text);
}

void session_leave(struct fly_session *session, const char *text)
{
    session->nothing_learnt = true;
    session_fail(session, TRIAL_CRASHED, text);
}

void fly_session_out_of_memory(struct fly_session *session)
{
    session_fail(session, TRIAL_OUT_OF_MEMORY, "said by the program");
}

void fly_session_trains_with(struct fly_session *session, uint32_t batch_size)
{
    if (batch_size < session->proposal.batch_size)
        session_fail(session, TRIAL_OUT_OF_MEMORY, "the program went on with a smaller batch size");
}

bool fly_session_is_over(const struct fly_session *session)
{
    return session->failed || session_has_ended(session);
}

void fly_session_training_ended(struct fly_session *session)
{
    if (session_is_copy(session) || fly_session_is_over(session))
        return;
    session->answer = FLY_STOP;
    session->stop = JOB_STOP_EPOCHS;
}

void session_release(struct fly_session *session)
{
    if (session->disabled || session->released)
        return;
    session->released = true;
    post_beat_end(session->post);
    session_carbon_let_go(session, "the program has a session of its own");
    session_account_stands(session, NAN);
    session_limit_close(session);
    session->limit.turner = NULL;
}

/* Finds how the trial ended, as far as this side knows; false: it has not. */
static bool find_outcome(const struct fly_session *session, enum fly_session_end end,
                         enum trial_outcome *out_outcome)
{
    bool has_target = session->options.job.target != FLY_TARGET_NONE;
    enum trial_outcome all_done = has_target ? TRIAL_NOT_REACHED : TRIAL_REACHED;

    if (session->reached)
        *out_outcome = TRIAL_REACHED;
    else if (session->limit.refused)
        *out_outcome = TRIAL_REFUSED;
    else if (session->answer == FLY_STOP)
        *out_outcome = session->stop == JOB_STOP_EPOCHS ? all_done : TRIAL_STOPPED;
    else if (end == FLY_SESSION_CRASHED)
        *out_outcome = TRIAL_CRASHED;
    else
        *out_outcome = all_done;
    return end != FLY_SESSION_INTERRUPTED || session->answer == FLY_STOP || session->limit.refused ||
           (session->reached && session->proposal.stops_at_target);
}

void session_finish(struct fly_session *session, enum fly_session_end end)
{
    enum trial_outcome outcome;

    session_profile_end(session);
    if ((session->known || session->run_kept) && session->options.rank == 0 && !session->failed &&
        !session->released && find_outcome(session, end, &outcome)) {
        session->nothing_learnt = outcome == TRIAL_CRASHED && !session_has_begun(session);
        session_say_end(session, outcome, session->nothing_learnt ? JOB_END_WITHOUT_STEP : "");
    }
}

bool session_wants_again(const struct fly_session *session)
{
    if (session->reached)
        return false;
    if (session->nothing_learnt)
        return session->proposal.untried;
    if (session->failed || session->limit.refused)
        return true;
    return session->known && session->answer == FLY_STOP &&
           (session->stop != JOB_STOP_EPOCHS || session->options.job.target != FLY_TARGET_NONE);
}

bool session_tries_left(const struct fly_session *session)
{
    return session->options.tries == FLY_SESSION_ALWAYS ||
           (session->known
                ? !session->proposal.last_try && session->proposal.try_number + 1 < session->options.tries
                : session->asked < session->options.tries);
}

void session_next_try(struct fly_session *session)
{
    session_finish(session, FLY_SESSION_FINISHED);
    session_end_try(session);
    session_begin_try(session);
}

bool fly_session_try_again(struct fly_session *session)
{
    if (session->disabled || session_is_copy(session) || session->inside || !session_wants_again(session) ||
        !session_tries_left(session))
        return false;
    session_next_try(session);
    return true;
}

int fly_session_exit_status(const struct fly_session *session)
{
    return session_wants_again(session) && (session->inside || session_tries_left(session))
               ? FLY_SESSION_EXIT_AGAIN
               : 0;
}

/* Reports an epoch: measures it, tells the log, and answers by the log's answer or without it. */

/* How long a training is too young to have an energy, and how often the meter is asked in that time. */
static const double young_s = 2.0, look_s = 0.02;
enum { LOOKS = 15 };

/* How long to wait for answers that decide what becomes of a try whose program has ended. */
static const double settle_most_s = 0.3;

static const char no_energy[] =
    "the energy of the GPUs is not known: the score of this training is not learnt, its "
    "metric and time are; 'flyball doctor' says why";

/* Answers by the target and by what was known before, when the log gives no answer. */
static enum fly_answer answer_alone(struct fly_session *session, double metric)
{
    session->progress = target_progress_after(&session->options.job, session->progress, metric);
    session->reached |= target_reached(&session->options.job, &session->progress);
    if (session->reached && session->proposal.stops_at_target) {
        session->stop = JOB_STOP_TARGET;
        return FLY_REACHED;
    }
    if (session->epoch >= (session->reached ? session->options.job.max_epochs : session->epochs)) {
        session->stop = session->epoch >= session->options.job.max_epochs ? JOB_STOP_EPOCHS : JOB_STOP_COST;
        return FLY_STOP;
    }
    return session->reached ? FLY_REACHED : FLY_GO_ON;
}

/*
 * Returns the joules used so far. A training that just began may be too short for a figure. A report without
 * one is worth nothing, so this waits, as long as a board's counter takes.
 */
static double wait_for_energy_j(struct fly_session *session)
{
    double energy_j = session_energy_j(session);

    for (int i = 0; isnan(energy_j) && (session->known || session->unasked) &&
                    session_time_s(session) < young_s && i < LOOKS;
         i++) {
        session->clock->sleep_until(session->clock->state,
                                    mono_after_s(session->clock->now(session->clock->state), look_s));
        energy_j = session_energy_j(session);
    }
    return energy_j;
}

/*
 * Counts the steps since the report before; 0: not known. A later attempt may begin within an epoch. A
 * program that tells no steps may have told how many samples an epoch has.
 */
static uint32_t take_steps(struct fly_session *session)
{
    uint64_t begun = session->count.begun, before = session->steps_told;
    bool whole = session->reported || (session->proposal.attempt <= 1 && !session->resumed);
    uint64_t batch_size = session->proposal.batch_size;
    uint64_t told = (session->options.samples_per_epoch + batch_size - 1) / batch_size;

    session->steps_told = begun;
    /* Where an epoch is so many samples, it does not grow. */
    if (session->options.job.report_every_samples > 0)
        return 0;
    if (session->uncounted || !whole || begun < before || begun - before > UINT32_MAX)
        return 0;
    if (begun == 0)
        return told <= UINT32_MAX ? (uint32_t)told : 0;
    return (uint32_t)(begun - before);
}

/* Measures what the ranks took up to the newest epoch. */
static struct job_epoch measure(struct fly_session *session, double metric)
{
    double startup_s = session->startup.time_s;
    double time_s[] = {session_time_s(session), isnan(startup_s) ? 0.0 : startup_s},
           energy_j[] = {session->disabled ? NAN : wait_for_energy_j(session), session->startup.energy_j};

    session_join(session, energy_j, 2, time_s, 2);
    return (struct job_epoch){.job = session->options.job.name,
                              .trial = session->proposal.trial,
                              .attempt = session->proposal.attempt,
                              .epoch = session->epoch_newest,
                              .metric = isfinite(metric) ? metric : NAN,
                              .energy_j = energy_j[0],
                              .time_s = time_s[0],
                              .reference_per_kwh = session_account_reference_per_kwh(session),
                              .steps = take_steps(session),
                              .startup_energy_j = energy_j[1],
                              .startup_time_s = time_s[1] > 0.0 ? time_s[1] : NAN};
}

/* Replaces the session's own answer by the log's. */
static void take_end(struct fly_session *session, const struct job_answered *answered)
{
    static const enum fly_answer answers[] = {
        [JOB_GO_ON] = FLY_GO_ON, [JOB_REACHED] = FLY_REACHED, [JOB_STOP] = FLY_STOP};

    session->answer = session->reached && answered->answer == JOB_GO_ON && !session->proposal.stops_at_target
                          ? FLY_REACHED
                          : answers[answered->answer];
    session->stop = answered->stop;
    session->reached |= answered->answer == JOB_REACHED;
    session->epochs = answered->epochs;
    session->over = answered->answer == JOB_STOP ||
                    (answered->answer == JOB_REACHED && session->proposal.stops_at_target);
}

static void take(struct fly_session *session, const struct job_answered *answered)
{
    take_end(session, answered);
    session->energy_j = answered->energy_j;
    session->time_s = answered->time_s;
}

/*
 * Takes an answer that came late: the training has gone on, and may have ended by itself. Where it was
 * stopped without the log, what it reported before it heard of that may have reached the target: then it did.
 */
static void hear(struct fly_session *session, const struct job_answered *answered)
{
    if (session->reached || (session->answer == FLY_STOP && answered->answer != JOB_REACHED))
        return;
    if (answered->answer == JOB_GO_ON)
        session->epochs = answered->epochs;
    else
        take_end(session, answered);
}

void session_heed(struct fly_session *session)
{
    union spool_answer answer;

    if (session->post == NULL || session_is_copy(session) || session_ranks(session) > 1)
        return;
    if (post_news(session->post, SPOOL_PROFILE, &answer))
        session_profile_hear(session, &answer.choice);
    if (post_news(session->post, SPOOL_REPORT, &answer))
        hear(session, &answer.answered);
}

void session_settle(struct fly_session *session)
{
    if (session->post == NULL || session_is_copy(session))
        return;
    post_drain(session->post, settle_most_s);
    session_heed(session);
}

static void report_to_log(struct fly_session *session, const struct job_epoch *epoch)
{
    const struct spool_entry entry = {.kind = SPOOL_REPORT, .epoch = *epoch};
    union spool_answer answer;
    uint64_t number;

    post_beat_end(session->post);
    number = session_say(session, &entry, POST_RARELY);
    if (post_settle(session->post, number, SPOOL_REPORT, &answer) && session->known)
        take(session, &answer.answered);
    if (isnan(epoch->energy_j))
        session->note = no_energy;
    else if (session->note == no_energy)
        session->note = NULL;
}

static bool says(const struct fly_session *session)
{
    return (session->known || session->unasked) && session->options.rank == 0;
}

/*
 * Reports an epoch after the trial's end. The log records it, but neither the answer nor what the trial took
 * changes.
 */
static void report_beyond(struct fly_session *session, double metric)
{
    struct job_epoch epoch;

    session->epoch_newest++;
    epoch = measure(session, metric);
    if (says(session))
        (void)session_say(session, &(struct spool_entry){.kind = SPOOL_REPORT, .epoch = epoch}, POST_RARELY);
}

/*
 * Where an epoch is so many samples: finds which one the steps so far have ended, and whether it is a new
 * one. Of a program that tells no steps each report stands for those of the definition; if it has none, the
 * program is taken at its word.
 */
static bool count_samples(struct fly_session *session)
{
    uint64_t every = session->options.job.report_every_samples;
    uint64_t begun = session->count.begun;
    uint64_t steps = begun > 0 ? begun : session->reports * session->options.job.report_every_steps;
    uint64_t samples = steps * session->proposal.batch_size, ended;

    if (every == 0 || samples == 0)
        return true;
    ended = session->epoch_first + samples / every;
    if (ended <= session->epoch_counted || ended > UINT32_MAX)
        return false;
    session->epoch_newest = (uint32_t)ended - 1;
    session->epoch_counted = (uint32_t)ended;
    return true;
}

enum fly_answer fly_session_report(struct fly_session *session, double metric)
{
    double shared[5];
    struct job_epoch epoch;

    if (session_is_copy(session))
        return FLY_GO_ON;
    fly_session_evaluation_begin(session);
    /* A trial that has ended stays ended. */
    if (session_has_ended(session)) {
        if (session->heeds)
            report_beyond(session, metric);
        return session->answer;
    }
    session->limit.refused = session->limit.spent = false; /* from here on the report's answer counts */
    session->reports++;
    if (!count_samples(session))
        return session->answer;
    session->epoch = ++session->epoch_newest;
    if (!session->disabled) {
        session_limit_check(session);
        if (session->limit.tuner == NULL)
            session_account_stands(session, session->limit.held_w);
    }
    epoch = measure(session, metric);
    session->energy_j = session->proposal.energy_j + epoch.energy_j;
    session->time_s = session->proposal.time_s + epoch.time_s;
    if (!session->disabled)
        session_profile_tell_part(session);
    session->answer = answer_alone(session, metric);
    if (says(session))
        report_to_log(session, &epoch);
    session->reported = true;
    shared[0] = session->answer;
    shared[1] = session->stop;
    shared[2] = session->reached;
    shared[3] = session->epochs;
    shared[4] = session->over;
    session_share(session, shared, sizeof shared / sizeof shared[0]);
    session->answer = (enum fly_answer)shared[0];
    session->stop = (enum job_stop)shared[1];
    session->reached = shared[2] == 1.0;
    session->epochs = (uint32_t)shared[3];
    session->over = shared[4] == 1.0;
    return session->answer;
}

bool session_set_epoch(struct fly_session *session, uint32_t epoch)
{
    if (session->options.job.report_every_samples > 0 &&
        (session->count.begun > 0 || session->options.job.report_every_steps > 0))
        return true; /* samples count instead */
    if (epoch == 0 || (session->reported && epoch <= session->epoch_newest))
        return false;
    session->epoch_newest = epoch - 1;
    return true;
}

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
