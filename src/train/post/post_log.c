/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that talks to the log. A log that does not answer holds up only this thread. */
#include "train/post/post_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "job/jobs.h"

enum { CALLS_MAX = 2 }; /* for a call that may or may not have arrived */

/*
 * How long the log is left alone after it did not answer: the least time at first, doubled each time up to
 * the most.
 */
static const double pause_least_s = 30.0, pause_most_s = 600.0;
/* When an answer takes longer than this, the next call does not wait. */
static const double late_s = 0.2;
/*
 * How much time may go into delivering what others left: a share of that for a proposal, or seconds when
 * nobody waits.
 */
static const double left_share = 0.5, left_slice_s = 0.5;
/* How long to wait to learn whether others left anything. */
static const double look_most_s = 0.5;

/* ---- calls, without the lock ---- */

static int open_log(struct post *post, struct fly_error *out_error)
{
    const struct job_options options = {.wait_s = post->wait_s};
    int code;

    if (post->open)
        return 0;
    code = jobs_open(post->address, &options, &post->jobs, out_error);
    post->open = code == 0;
    return code;
}

/* Repeats a change that may or may not be in the log: the log recognizes what it has seen. */
static int call(struct post *post, struct spool_parsed *parsed, union spool_answer *out_answer,
                struct fly_error *out_error)
{
    int code = FLY_EUNSURE;

    spool_give_trial(&parsed->entry, &post->ran);
    for (int i = 0; i < CALLS_MAX && code == FLY_EUNSURE; i++)
        code = spool_call(&post->jobs, &parsed->entry, out_answer, out_error);
    if (parsed->entry.kind == SPOOL_RUN && !spool_passing(code))
        post->ran = code == 0 ? out_answer->proposal : (struct job_proposal){.trial = 0};
    return code;
}

static int tell(struct post *post, const struct letter *letter, bool afterwards,
                union spool_answer *out_answer, struct fly_error *out_error)
{
    struct spool_parsed *parsed = calloc(1, sizeof *parsed);
    int code = parsed != NULL ? open_log(post, out_error) : error_no_memory(out_error);

    /* What is wrong with a log that cannot be opened may be right later. */
    if (code < 0) {
        free(parsed);
        return spool_passing(code) ? code : FLY_EUNREACHABLE;
    }
    code = spool_parse(letter->line, letter->length - 1, parsed, out_error);
    if (code == 0) {
        if (letter->kind == SPOOL_REPORT)
            parsed->entry.epoch.afterwards = afterwards;
        code = call(post, parsed, out_answer, out_error);
        spool_parsed_free(parsed);
    }
    free(parsed);
    return code;
}

static int propose(const struct jobs *jobs, const struct post_ask *ask, struct job_proposal *out_proposal,
                   struct fly_error *out_error)
{
    struct job_registered registered;
    int code = FLY_EUNSURE;

    for (int i = 0; ask->defines && code == FLY_EUNSURE && i < CALLS_MAX; i++)
        code = jobs->backend->define(jobs->self, &ask->definition, &registered, out_error);
    if (ask->defines && code < 0)
        return code;
    code = FLY_EUNSURE;
    for (int i = 0; code == FLY_EUNSURE && i < CALLS_MAX; i++)
        code = jobs->backend->propose(jobs->self, &ask->question, out_proposal, out_error);
    return code;
}

/* ---- around a call, with the lock ---- */

static struct mono_time begin_call(struct post *post)
{
    post->busy = true;
    pthread_mutex_unlock(&post->group.lock);
    return post->clock->now(post->clock->state);
}

static void end_call(struct post *post, struct mono_time since, int code)
{
    bool passes = spool_passing(code);

    pthread_mutex_lock(&post->group.lock);
    post->busy = false;
    post->connected = !passes;
    post->late = passes || mono_elapsed_s(since, post->clock->now(post->clock->state)) > late_s;
    if (passes) {
        post->pause_s = fmin(fmax(2.0 * post->pause_s, pause_least_s), pause_most_s);
        post->again = mono_after_s(post->clock->now(post->clock->state), post->pause_s);
    } else {
        post->pause_s = 0.0;
    }
}

static void note(struct post *post, int code, const struct fly_error *error)
{
    if (code < 0)
        memcpy(post->text, error->text, sizeof post->text);
    else
        post->text[0] = '\0';
}

/* ---- letters ---- */

/* Whether the training had gone on by then, so that no answer could stop it after that epoch. */
static bool is_afterwards(const struct letter *letter)
{
    bool later = letter->failed;

    for (const struct letter *next = letter->next; next != NULL && !later; next = next->next)
        later = next->kind == SPOOL_REPORT && next->round == letter->round;
    return later;
}

/* Keeps an answer that ends the trial: later answers do not replace it. */
static void take_answer(struct post *post, const struct letter *letter, const union spool_answer *answer)
{
    struct post_answer *place = &post->answers[letter->kind];
    bool ends = letter->kind == SPOOL_REPORT && place->fresh && place->answer.answered.answer != JOB_GO_ON;

    if (letter->round != post->round || ends)
        return;
    place->answer = *answer;
    place->fresh = true;
    if (post->news >= 0)
        (void)eventfd_write(post->news, 1);
}

static void drop_first(struct post *post)
{
    struct letter *letter = post->first;

    post->first = letter->next;
    if (post->first == NULL)
        post->last = NULL;
    if (post->unkept == letter)
        post->unkept = letter->next;
    if (letter->kept) {
        post->kept_all--;
        post->kept -= letter->kind != SPOOL_RUN;
    }
    post->bytes -= letter->length;
    post->done = letter->number;
    free(letter);
}

/* Sends the oldest letter; returns whether the log dealt with it. Unlocks meanwhile. */
static bool send_first(struct post *post)
{
    struct letter *letter = post->first;
    bool afterwards = is_afterwards(letter);
    union spool_answer answer = {.choice = {.epochs = 0}};
    struct fly_error error = {.text = ""};
    struct mono_time since;
    int code;

    post->urgent = false;
    since = begin_call(post);
    code = tell(post, letter, afterwards, &answer, &error);
    end_call(post, since, code);
    note(post, code, &error);
    letter->failed = spool_passing(code);
    if (!letter->failed) {
        if (code == 0)
            take_answer(post, letter, &answer);
        post->refused |= code < 0 && letter->kept;
        drop_first(post);
    }
    post_wake(post);
    return !spool_passing(code);
}

static bool may_send(const struct post *post)
{
    return post->first != NULL &&
           (post->urgent || post->pause_s == 0.0 ||
            (!post->group.closing && post->clock->now(post->clock->state).ns >= post->again.ns));
}

/* ---- what to run ---- */

/*
 * Waits to learn what earlier sessions left. If the disk does not answer, this is not known, and nobody waits
 * for it.
 */
static bool wait_for_look(struct post *post)
{
    struct mono_time until = mono_after_s(mono_now(), fmin(look_most_s, left_share * post->wait_s));

    if (!post->threaded)
        return true;
    while (!post->looked && post_wait(post, until))
        ;
    return post->looked && post->left;
}

static void deliver_left(struct post *post, double most_s)
{
    post->more_left = false;
    if (spool_deliver_left(&post->spool, &post->jobs, most_s) == FLY_EEXHAUSTED)
        post->more_left = true;
}

static void answer_ask(struct post *post)
{
    struct fly_error error = {.text = ""};
    bool left = wait_for_look(post);
    struct post_ask *ask = post->ask;
    struct mono_time since;
    int code;

    if (ask == NULL) /* the training gave it up meanwhile */
        return;
    post->ask = NULL;
    since = begin_call(post);
    code = open_log(post, &error);
    if (code == 0 && left)
        deliver_left(post, post->threaded ? left_share * post->wait_s : INFINITY);
    if (code == 0)
        code = propose(&post->jobs, ask, &ask->proposal, &error);
    end_call(post, since, code);
    post->connected = code == 0;
    post->ran = (struct job_proposal){.trial = 0};
    note(post, code, &error);
    ask->code = code;
    ask->done = true;
    if (ask->given_up)
        post_free_ask(ask);
    post_wake(post);
}

/* ---- signs of life ---- */

static void beat_once(struct post *post)
{
    struct job_beat beat = post->beat;
    struct fly_error error;
    struct mono_time since;
    char job[sizeof post->beat_job];
    int code;

    memcpy(job, post->beat_job, sizeof job);
    beat.job = job;
    post->beat_due = mono_after_s(mono_now(), post->beat_s);
    since = begin_call(post);
    code = post->open ? post->jobs.backend->heartbeat(post->jobs.self, &beat, &error) : 0;
    pthread_mutex_lock(&post->group.lock);
    post->busy = false;
    post->late = spool_passing(code) || mono_elapsed_s(since, mono_now()) > late_s;
}

static bool is_beat_due(const struct post *post)
{
    return post->beat_s > 0.0 && mono_now().ns >= post->beat_due.ns;
}

/* ---- in turns ---- */

static void send_all(struct post *post)
{
    while (may_send(post) && send_first(post))
        ;
}

static void deliver_more(struct post *post)
{
    struct mono_time since = begin_call(post);

    deliver_left(post, left_slice_s);
    end_call(post, since, 0);
    post->late = false;
}

/* Does one thing; returns whether there was any. */
static bool do_next(struct post *post)
{
    if (may_send(post))
        send_all(post);
    else if (post->ask != NULL)
        answer_ask(post);
    else if (is_beat_due(post))
        beat_once(post);
    else if (post->more_left && !post->group.closing && post->pause_s == 0.0)
        deliver_more(post);
    else
        return false;
    return true;
}

static void close_log(struct post *post)
{
    pthread_mutex_unlock(&post->group.lock);
    if (post->open && !post->borrowed)
        jobs_close(&post->jobs);
    post->open = false;
    pthread_mutex_lock(&post->group.lock);
}

void post_log_turn(struct post *post)
{
    post->urgent |= post->ask != NULL && post->first != NULL;
    send_all(post);
    if (post->ask != NULL)
        answer_ask(post);
    if (!post->threaded && post->group.closing)
        close_log(post);
}

/* Waits until there may be something to do. */
static void rest(struct post *post)
{
    struct mono_time until = {INT64_MAX};

    if (post->first != NULL)
        until = post->again;
    if (post->beat_s > 0.0 && post->beat_due.ns < until.ns)
        until = post->beat_due;
    if (until.ns == INT64_MAX)
        (void)post_wait(post, MONO_NEVER);
    else
        (void)post_wait(post, until);
}

void post_log_run(void *state)
{
    struct post *post = state;

    pthread_mutex_lock(&post->group.lock);
    for (;;) {
        if (post->ask != NULL && post->first != NULL && !post->urgent && !post->ask->pressed)
            post->urgent = post->ask->pressed = true;
        if (do_next(post))
            continue;
        if (post->group.closing)
            break;
        rest(post);
    }
    close_log(post);
    post->log_ended = true;
    pthread_mutex_unlock(&post->group.lock);
}
