/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_READINESS_H
#define FLYBALL_SERVE_READINESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "http/task.h"
#include "http/token_file.h"
#include "job/core/job_backend.h"
#include "serve/served_store.h"
#include "serve/troubles.h"

/*
 * Whether the service could do its work now: tokens can be read, the store answers, and its
 * disk takes data. One thread of its own looks, so that nobody who lets in or answers requests
 * waits for a disk or a server that hangs: every few seconds, so that troubles are told
 * of without anybody asking, and whenever somebody does.
 */
struct readiness_options {
    struct served_store *store; /* borrowed */
    struct token_file *tokens;  /* borrowed; NULL: none are wanted */
    struct troubles *troubles;  /* borrowed */
};

struct readiness {
    struct readiness_options options;
    struct jobs jobs;
    struct fly_error disk; /* what was found of it, which holds until then */
    struct mono_time disk_until;
    struct task_line line; /* to be told */
    struct task own;       /* by which the thread is woken though nobody asks */
    atomic_bool own_waits, doubted;
    struct mono_time next;         /* when it is */
    atomic_int_least64_t began_ns; /* the look that is under way; 0: none is */
    pthread_t thread;
    bool runs;
};

/*
 * Opens the store once, to refuse an address that can never be served; one that cannot be
 * reached now may be later, and is a trouble. Then starts the thread.
 */
int readiness_start(struct readiness *readiness, const struct readiness_options *options,
                    struct fly_error *out_error);

/*
 * Has the task answered: 200 or 503 with {"status", "tokens", "store", "disk"}, each "ok", null
 * where there is nothing to look at, or why not; 503 has "error" too. The answer never says where
 * things lie: that is told as a trouble.
 */
void readiness_ask(struct readiness *readiness, struct task *task);

/* Something failed that a look would find: one follows soon. Thread-safe. */
void readiness_doubt(struct readiness *readiness);

/* From one thread, a few times a second: answers those who wait too long, and looks now and then. */
void readiness_tick(struct readiness *readiness, struct mono_time now);

/* Ends the thread; who asks later is refused. */
void readiness_stop(struct readiness *readiness);

/* Once it was stopped, and nobody asks any more. */
void readiness_deinit(struct readiness *readiness);

#endif
