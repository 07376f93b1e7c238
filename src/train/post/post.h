/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_POST_POST_H
#define FLYBALL_TRAIN_POST_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "job/core/job_backend.h"
#include "job/remote/spool.h"

/*
 * Carries a training's reports to its job's log, and brings the log's answers back. The post has threads for
 * what may take for ever: one talks to the log, another writes to the spool what the log did not take, and a
 * third waits until that is on the disk. The training thread hands in letters, and waits at most the times
 * below, whatever the log, the network or the disk do. No call here fails the training.
 *
 *     post_new(&options, &post, out_error);
 *     code = post_ask(post, &definition, &question, &proposal);       waits for wait_s
 *     post_beat(post, &beat, 60);
 *     number = post_send(post, &entry, POST_RARELY);
 *     if (post_settle(post, number, SPOOL_REPORT, &answer))           waits for answer_s, if at all
 *         ...
 *     post_close(post, 0.5, &summary);
 *
 * Letters go to the log in order. A letter that the log does not take for now is kept, goes to the spool as
 * well, and is sent again later, rarely while the log does not answer. A letter that the log refuses for good
 * is dropped. Letters that are neither delivered nor on the spool are kept in memory, up to POST_BYTES_MAX;
 * beyond that further reports are lost, and the status says so.
 *
 * A letter is on the spool once it is written to the spool's file (job/remote/spool.h): then it outlives this
 * program, also when a signal ends it. The crash of a machine loses what was written to the file within the
 * 5 s before, and what the disk was still held up with. What a killed program loses are the letters that the
 * status counts as `waiting`.
 *
 * An answer that comes too late to be waited for is not lost: post_fd becomes readable, and post_news returns
 * it.
 *
 * With a clock other than `clock_real` there are no threads: each call does its work itself. One thread makes
 * all calls, and none after a fork.
 */
enum { POST_BYTES_MAX = 12 << 20 };

struct post;

struct post_options {
    const struct clock *clock; /* borrowed */
    const char *directory;     /* of the spool; NULL: the user's own */
    const char *store;         /* the log's address, NULL: the usual; the spool's files name it */
    const struct jobs *jobs;   /* a log that is already open, borrowed for as long as a call runs; or NULL */
    double wait_s;             /* how long to wait for a proposal */
    double answer_s; /* for a letter's answer, and half as long again for the spool; 0: not at all */
};

int post_new(const struct post_options *options, struct post **out_post, struct fly_error *out_error);

/*
 * Asks the log what to run: delivers what earlier sessions left, as far as time allows, then defines and
 * proposes. Returns 0 or a negative code, and then the status says why: FLY_EBUSY when no answer came in
 * time. `definition` NULL: the log knows it.
 */
int post_ask(struct post *post, const struct fly_job_definition *definition,
             const struct job_question *question, struct job_proposal *out_proposal);

enum post_haste {
    POST_RARELY, /* not while the log has failed to answer for a while */
    POST_NOW,    /* asks the log once in any case */
};

/* Copies the entry into a letter; returns the letter's number. */
uint64_t post_send(struct post *post, const struct spool_entry *entry, enum post_haste haste);

/*
 * Whether that letter, which must be the newest of its kind, has its answer by now. Waits for the answer if
 * the log answered in time when it was asked last. When there is no answer, the letter is on the spool on
 * return, if writing to it does not take until one and a half answer_s after the call.
 */
bool post_settle(struct post *post, uint64_t number, enum spool_kind kind, union spool_answer *out_answer);

/*
 * Takes an answer to an earlier letter of that kind that no call has returned yet; false for none. The first
 * answer that ends a trial stays until it is taken. Cheap.
 */
bool post_news(struct post *post, enum spool_kind kind, union spool_answer *out_answer);

/*
 * A descriptor that is readable when post_news has something; -1 without threads or where the system has
 * none. The post owns it.
 */
int post_fd(const struct post *post);

/*
 * Waits until all letters are dealt with or on the spool, at most for `most_s`, and not for a log that is
 * late already.
 */
void post_drain(struct post *post, double most_s);

/* Tells the log every `beat_s` that the trial is alive, until post_beat_end. Copies `beat`. */
void post_beat(struct post *post, const struct job_beat *beat, double beat_s);
void post_beat_end(struct post *post); /* accepts NULL */

struct post_status {
    bool connected;                /* the log answered when it was asked last */
    uint64_t kept;                 /* letters on the spool that are not delivered, without those of a run */
    uint64_t waiting;              /* letters, the newest, that are neither delivered nor on the spool */
    uint64_t lost;                 /* letters for which there was no room */
    char text[FLY_ERROR_TEXT_MAX]; /* why the log is not used, and why nothing can be kept; "" for neither */
};
struct post_status post_look(struct post *post);

/*
 * Ends the post: delivers what it can within `most_s`, and leaves the rest on the disk, synced, if that
 * answers. A
 * thread that is held up longer is left running by itself (base/thread/thread_group.h). `out_status` may be
 * NULL. Accepts NULL.
 */
void post_close(struct post *post, double most_s, struct post_status *out_status);

#endif
