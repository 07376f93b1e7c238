/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_READINESS_H
#define FLYBALL_HTTP_READINESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "http/task.h"
#include "http/troubles.h"

/*
 * Whether a server could do its work now: the file of tokens can be read, and so on, part by part.
 * One thread of its own looks, so that nobody who lets in or answers requests waits for a disk or
 * another server that hangs: every few seconds, so that troubles are told of without anybody asking,
 * and whenever somebody does.
 *
 *     readiness_init(&readiness, &troubles);
 *     readiness_add(&readiness, &part);        for each, in the order in which they are looked at
 *     code = readiness_start(&readiness, out_error);
 */
enum { READINESS_PARTS_MAX = 8 };

/* Why a part is not ready, without a word of where things lie. */
struct readiness_reason {
    int code; /* of the error; 0: any other, and the end of the list */
    const char *text;
};

/* Something without which there is no work. Borrowed texts. */
struct readiness_part {
    const char *name; /* in the answer */
    const struct readiness_reason *reasons;
    struct trouble *trouble; /* that it is while it fails; borrowed */
    const char *too_slow;    /* answers who waits in vain where this part is to blame; NULL: it never is */

    /* How it is, which may take its time: 0, an error, or READINESS_ABSENT: there is nothing to look at. */
    int (*look)(void *self, struct fly_error *out_error);
    void *self;
};

enum { READINESS_ABSENT = 1 };

struct readiness {
    struct troubles *troubles; /* borrowed */
    struct readiness_part parts[READINESS_PARTS_MAX];
    size_t part_count;
    struct task_line line; /* to be told */
    struct task own;       /* by which the thread is woken though nobody asks */
    atomic_bool own_waits, doubted;
    struct mono_time next;         /* when it is */
    atomic_int_least64_t began_ns; /* the look that is under way; 0: none is */
    pthread_t thread;
    bool runs;
};

/* Borrows the troubles. */
void readiness_init(struct readiness *readiness, struct troubles *troubles);

/* Before the start; copies the part. */
void readiness_add(struct readiness *readiness, const struct readiness_part *part);

/* Starts the thread. FLY_ENOMEM. */
int readiness_start(struct readiness *readiness, struct fly_error *out_error);

/*
 * Has the task answered: 200 or 503 with {"status"} and a member for each part, which is "ok", null
 * where there is nothing to look at, or why not; 503 has "error" too. The answer never says where
 * things lie: that is told as a trouble.
 */
void readiness_ask(struct readiness *readiness, struct task *task);

/* Something failed that a look would find: one follows soon. Thread-safe. */
void readiness_doubt(struct readiness *readiness);

/* From one thread, a few times a second: answers those who wait too long, and looks now and then. */
void readiness_tick(struct readiness *readiness, struct mono_time now);

/* Ends the thread, if it was started; who asks later is refused. */
void readiness_stop(struct readiness *readiness);

/* Once it was stopped, and nobody asks any more. */
void readiness_deinit(struct readiness *readiness);

#endif
