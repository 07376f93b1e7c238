/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_READINESS_H
#define FLYBALL_HTTP_READINESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "base/thread/pool.h"
#include "http/task.h"
#include "http/troubles.h"

/*
 * Whether a server can do its work now, part by part: the file of tokens can be read, and so on.
 * One thread checks all parts, so that the threads that accept and answer requests never wait for
 * a disk or another server that hangs. It checks whenever somebody asks, and every few seconds,
 * so that troubles are reported even if nobody asks.
 *
 *     readiness_init(&readiness, &troubles);
 *     readiness_add(&readiness, &part);        for each part, in the order in which they are checked
 *     code = readiness_start(&readiness, out_error);
 */
enum { READINESS_PARTS_MAX = 8 };

/* Why a part is not ready. The text never says where things lie. */
struct readiness_reason {
    int code; /* the error's code; 0: any other error, and the end of the list */
    const char *text;
};

/* One thing that the server cannot work without. Texts are borrowed. */
struct readiness_part {
    const char *name; /* in the answer */
    const struct readiness_reason *reasons;
    struct trouble *trouble; /* reported while the check fails; borrowed */
    const char *too_slow;    /* the answer if this part keeps a caller waiting in vain; NULL: never slow */

    /*
     * Checks the part, and may take its time. Returns 0, an error, or READINESS_ABSENT: there is
     * nothing to check.
     */
    int (*look)(void *self, struct fly_error *out_error);
    void *self;
};

enum { READINESS_ABSENT = 1 };

struct readiness {
    struct troubles *troubles; /* borrowed */
    struct readiness_part parts[READINESS_PARTS_MAX];
    size_t part_count;
    struct task_line line; /* tasks that wait for an answer */
    struct task own;       /* wakes the thread when nobody asks */
    atomic_bool own_waits, doubted;
    struct mono_time next;         /* time of the next check that nobody asks for */
    atomic_int_least64_t began_ns; /* when the check that is under way began; 0: none is */
    struct pool pool;              /* of its thread */
};

/* Borrows the troubles. */
void readiness_init(struct readiness *readiness, struct troubles *troubles);

/* Adds a copy of the part. Call it before the start. */
void readiness_add(struct readiness *readiness, const struct readiness_part *part);

/* Starts the thread. FLY_ENOMEM. */
int readiness_start(struct readiness *readiness, struct fly_error *out_error);

/*
 * Answers the task: 200 or 503 with {"status"} and a member for each part, which is "ok", null if
 * there is nothing to check, or the reason why not; 503 has "error" too. The answer never says
 * where things lie; the trouble does.
 */
void readiness_ask(struct readiness *readiness, struct task *task);

/* Tells it that something failed which a check would find, so that it checks soon. Thread-safe. */
void readiness_doubt(struct readiness *readiness);

/*
 * Answers tasks that wait too long, and starts a check now and then. Call it from one thread, a
 * few times a second.
 */
void readiness_tick(struct readiness *readiness, struct mono_time now);

/* Ends the thread, if it was started. Later tasks are refused. */
void readiness_stop(struct readiness *readiness);

/* Call it after the stop, when nobody asks any more. */
void readiness_deinit(struct readiness *readiness);

#endif
