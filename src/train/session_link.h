/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_SESSION_LINK_H
#define FLYBALL_TRAIN_SESSION_LINK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "job/job.h"
#include "train/spool.h"

/*
 * A training's way to its job's log, on which nothing fails: a call that the log does
 * not take for now goes to the spool, and the log is asked rarely until it answers.
 *
 *     link_init(&link, &clock_real, NULL, NULL);
 *     if (link_open(&link, address, wait_s, out_error) == 0 && link_propose(...) == 0)
 *         link_beat_begin(&link, &beat, 60);
 *     code = link_send(&link, &entry, LINK_RARELY, &answer);
 *     link_deinit(&link);
 *
 * One thread at a time, besides its own that beats.
 */
struct session_link {
    struct jobs jobs;
    bool open, borrowed;
    int code; /* why it is not open */
    const struct clock *clock;
    struct spool spool;
    bool connected;         /* the log answered when it was asked last */
    struct mono_time again; /* not asked before */
    double pause_s;
    char text[FLY_ERROR_TEXT_MAX]; /* why it is not used; "" for nothing */

    pthread_mutex_t lock; /* around the log, while the thread lives */
    pthread_cond_t ended;
    pthread_t thread;
    bool beats, end_wanted;
    double beat_s;
    struct job_beat beat;
};

enum link_haste {
    LINK_RARELY, /* not while it has not answered for a while */
    LINK_NOW,    /* this once, in any case */
};

/* `directory`: of the spool, NULL for the user's own; `store`: the log's address as files of the spool name
 * it. */
void link_init(struct session_link *link, const struct clock *clock, const char *directory,
               const char *store);

/* A log that is open already is borrowed. */
void link_borrow(struct session_link *link, const struct jobs *jobs);
int link_open(struct session_link *link, const char *address, double wait_s);

/* Ends the thread and closes what is open. */
void link_deinit(struct session_link *link);

/* Both at once; delivers what earlier sessions left as well. On failure `text` says why. `definition` NULL:
 * it is known. */
int link_propose(struct session_link *link, const struct job_definition *definition,
                 const struct job_question *question, struct job_proposal *out_proposal);

/* Keeps it without asking the log. */
void link_keep(struct session_link *link, const struct spool_entry *entry);

/* The log's answer and 0, or a negative code: then it is in the spool, or was refused, and `text` says so. */
int link_send(struct session_link *link, const struct spool_entry *entry, enum link_haste haste,
              union spool_answer *out_answer);

/* Why the log is of no use. */
void link_note(struct session_link *link, const char *text);

/* A thread says every `beat_s` that the trial lives; copies `beat`, but borrows its text. */
void link_beat_begin(struct session_link *link, const struct job_beat *beat, double beat_s);
void link_beat_end(struct session_link *link);

#endif
