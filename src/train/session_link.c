/* SPDX-License-Identifier: Apache-2.0 */
#include "train/session_link.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

/* Of a call that may or may not have come through. */
enum { CALLS_MAX = 2 };

/* How long the log is left alone after it did not answer: as long at first, doubled each time up to that. */
static const double pause_least_s = 30.0, pause_most_s = 600.0;

void link_init(struct session_link *link, const struct clock *clock, const char *directory, const char *store)
{
    pthread_condattr_t attributes;

    *link = (struct session_link){.clock = clock};
    spool_init(&link->spool, directory, store);
    pthread_mutex_init(&link->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&link->ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

void link_borrow(struct session_link *link, const struct jobs *jobs)
{
    link->jobs = *jobs;
    link->open = link->borrowed = true;
}

void link_note(struct session_link *link, const char *text)
{
    snprintf(link->text, sizeof link->text, "%s", text);
}

int link_open(struct session_link *link, const char *address, double wait_s)
{
    const struct job_options options = {.wait_s = wait_s};
    struct fly_error error = {.text = ""};
    int code = jobs_open(address, &options, &link->jobs, &error);

    link->open = code == 0;
    link->code = code;
    if (code < 0)
        link_note(link, error.text);
    return code;
}

void link_deinit(struct session_link *link)
{
    link_beat_end(link);
    spool_deinit(&link->spool);
    if (link->open && !link->borrowed)
        jobs_close(&link->jobs);
    link->open = false;
    pthread_cond_destroy(&link->ended);
    pthread_mutex_destroy(&link->lock);
}

/* A change that may or may not be in the log is made again: the log knows what it has seen. */
static int propose(const struct jobs *jobs, const struct job_definition *definition,
                   const struct job_question *question, struct job_proposal *out_proposal,
                   struct fly_error *out_error)
{
    struct job_registered registered;
    int code = FLY_EUNSURE;

    for (int i = 0; definition != NULL && code == FLY_EUNSURE && i < CALLS_MAX; i++)
        code = jobs->backend->define(jobs->self, definition, &registered, out_error);
    if (definition != NULL && code < 0)
        return code;
    code = FLY_EUNSURE;
    for (int i = 0; code == FLY_EUNSURE && i < CALLS_MAX; i++)
        code = jobs->backend->propose(jobs->self, question, out_proposal, out_error);
    return code;
}

int link_propose(struct session_link *link, const struct job_definition *definition,
                 const struct job_question *question, struct job_proposal *out_proposal)
{
    struct fly_error error = {.text = ""};
    int code;

    if (!link->open)
        return link->code < 0 ? link->code : FLY_EUNREACHABLE;
    (void)spool_deliver(&link->spool, &link->jobs, NULL);
    (void)spool_deliver_left(&link->spool, &link->jobs, INFINITY);
    code = propose(&link->jobs, definition, question, out_proposal, &error);
    link->connected = code == 0;
    if (code < 0)
        link_note(link, error.text);
    else
        link->text[0] = '\0';
    return code;
}

/* Older reports first, so that the log has them in their order. */
static int deliver(struct session_link *link, const struct spool_entry *entry, union spool_answer *out_answer,
                   struct fly_error *out_error)
{
    int code;

    if (!link->open)
        return error_set(out_error, FLY_EUNREACHABLE, "the job's log is not open");
    code = spool_deliver(&link->spool, &link->jobs, out_error);
    if (code == 0)
        code = spool_call(&link->jobs, entry, out_answer, out_error);
    if (code == FLY_EUNSURE)
        code = spool_call(&link->jobs, entry, out_answer, out_error);
    return code;
}

void link_keep(struct session_link *link, const struct spool_entry *entry)
{
    struct fly_error error;
    size_t length = strlen(link->text);

    link->pause_s = fmin(fmax(2.0 * link->pause_s, pause_least_s), pause_most_s);
    link->again = mono_after_s(link->clock->now(link->clock->state), link->pause_s);
    link->connected = false;
    if (spool_add(&link->spool, entry, &error) < 0 && strstr(link->text, error.text) == NULL)
        snprintf(link->text + length, sizeof link->text - length, "; and %s", error.text);
}

int link_send(struct session_link *link, const struct spool_entry *entry, enum link_haste haste,
              union spool_answer *out_answer)
{
    struct fly_error error = {.text = ""};
    int code = FLY_EUNREACHABLE;
    bool asked;

    pthread_mutex_lock(&link->lock);
    asked = haste == LINK_NOW || link->pause_s == 0.0 ||
            link->clock->now(link->clock->state).ns >= link->again.ns;
    if (asked) {
        code = deliver(link, entry, out_answer, &error);
        if (code < 0)
            link_note(link, error.text);
    }
    if (spool_passing(code)) {
        link_keep(link, entry);
    } else {
        link->connected = true;
        link->pause_s = 0.0;
    }
    if (code == 0)
        link->text[0] = '\0';
    pthread_mutex_unlock(&link->lock);
    return code;
}

static void beat_once(struct session_link *link)
{
    struct fly_error error;

    (void)link->jobs.backend->heartbeat(link->jobs.self, &link->beat, &error);
}

static void *beat(void *state)
{
    struct session_link *link = state;
    struct timespec due;

    pthread_mutex_lock(&link->lock);
    while (!link->end_wanted) {
        struct mono_time next = mono_after_s(mono_now(), link->beat_s);
        int code = 0;

        due = (struct timespec){.tv_sec = (time_t)(next.ns / 1000000000), .tv_nsec = next.ns % 1000000000};
        while (!link->end_wanted && code != ETIMEDOUT)
            code = pthread_cond_timedwait(&link->ended, &link->lock, &due);
        if (!link->end_wanted)
            beat_once(link);
    }
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

void link_beat_begin(struct session_link *link, const struct job_beat *beat_of, double beat_s)
{
    sigset_t all, before;

    link->beat = *beat_of;
    link->beat_s = beat_s;
    link->end_wanted = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    link->beats = pthread_create(&link->thread, NULL, beat, link) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void link_beat_end(struct session_link *link)
{
    if (!link->beats)
        return;
    pthread_mutex_lock(&link->lock);
    link->end_wanted = true;
    pthread_cond_signal(&link->ended);
    pthread_mutex_unlock(&link->lock);
    pthread_join(link->thread, NULL);
    link->beats = false;
}
