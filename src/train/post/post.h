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
 * What a training has to say to its job's log, and what the log answers. Two threads of the
 * post's own do what may take for ever: one speaks to the log, the other writes to the spool
 * what the log did not take. Whoever trains hands letters in, and is held up for the times
 * below at most, whatever the log, the network or the disk do. Nothing fails here.
 *
 *     post_new(&options, &post, out_error);
 *     code = post_ask(post, &definition, &question, &proposal);       waits for wait_s
 *     post_beat(post, &beat, 60);
 *     number = post_send(post, &entry, POST_RARELY);
 *     if (post_settle(post, number, SPOOL_REPORT, &answer))           waits for answer_s, if at all
 *         ...
 *     post_close(post, 0.5, &summary);
 *
 * Letters go to the log in their order. One that the log does not take for now stays, goes to the
 * spool as well, and is sent again when the log is asked again: rarely, while it does not
 * answer. A letter that the log refuses for good is gone. What is neither delivered nor
 * on the spool is in memory, up to POST_BYTES_MAX; beyond that further reports are lost, and
 * the status says so.
 *
 * An answer that comes later than it is waited for is not lost: post_news has it, and post_fd is
 * readable then.
 *
 * With a clock other than `clock_real` there are no threads: each call does its work itself.
 * All calls are for one thread, and for none after a fork.
 */
enum { POST_BYTES_MAX = 12 << 20 };

struct post;

struct post_options {
    const struct clock *clock; /* borrowed */
    const char *directory;     /* of the spool; NULL: the user's own */
    const char *store;         /* the log's address, NULL: the usual; so files of the spool name it */
    const struct jobs *jobs;   /* a log that is open already; borrowed while a call is under way; or NULL */
    double wait_s;             /* for a proposal */
    double answer_s; /* for the answer to a letter, and half as long again for the disk; 0: not at all */
};

int post_new(const struct post_options *options, struct post **out_post, struct fly_error *out_error);

/*
 * What to run: delivers what earlier sessions left, as far as time allows, then defines and proposes.
 * 0 or a negative code, and then the status says why. FLY_EBUSY when there was no answer in time.
 * `definition` NULL: the log knows it.
 */
int post_ask(struct post *post, const struct job_definition *definition, const struct job_question *question,
             struct job_proposal *out_proposal);

enum post_haste {
    POST_RARELY, /* not while the log has not answered for a while */
    POST_NOW,    /* asks it once in any case */
};

/* Takes a copy; its number. */
uint64_t post_send(struct post *post, const struct spool_entry *entry, enum post_haste haste);

/*
 * Whether that letter, the newest of its kind, has its answer by now: waits for it where the log answered
 * in time when it was asked last. Without an answer the letter is on the disk when this returns, where the
 * disk answers in time.
 */
bool post_settle(struct post *post, uint64_t number, enum spool_kind kind, union spool_answer *out_answer);

/* An answer to an earlier letter of that kind that nobody has been told yet; the first that ends a trial
 * stays until it is taken. Cheap. */
bool post_news(struct post *post, enum spool_kind kind, union spool_answer *out_answer);

/* Readable when there are news; -1 without threads, or where the system has none. Stays the post's. */
int post_fd(const struct post *post);

/* Waits until all letters are dealt with or on the disk: for so long at most, and not for a log that is late
 * already. */
void post_drain(struct post *post, double most_s);

/* Says every `beat_s` that the trial lives, until post_beat_end. Copies. */
void post_beat(struct post *post, const struct job_beat *beat, double beat_s);
void post_beat_end(struct post *post); /* accepts NULL */

struct post_status {
    bool connected; /* the log answered when it was asked last */
    uint64_t kept;  /* letters on the disk that are not delivered; that of a run does not count */
    uint64_t lost;  /* for which there was no room */
    char text[FLY_ERROR_TEXT_MAX]; /* why the log is not used, and why nothing can be kept; "" for nothing */
};
struct post_status post_look(struct post *post);

/*
 * Ends the post: within `most_s` what can be delivered is, the rest is on the disk where that answers. A
 * thread that is held up longer is left to itself (base/thread/left_threads.h). `out_status` may be NULL.
 * Accepts NULL.
 */
void post_close(struct post *post, double most_s, struct post_status *out_status);

#endif
