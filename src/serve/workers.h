/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_WORKERS_H
#define FLYBALL_SERVE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "serve/task.h"

/*
 * Threads that answer over a store, which may block for as long as another holds a
 * job's lock. Each has a handle of its own, opened when it is first needed and opened
 * anew after an answer that says that the store failed. One more looks whether the
 * store answers, apart from them, so that this is known while all of them wait.
 */
enum { WORKERS_MAX = 64 };

struct workers_options {
    const char *store;                          /* jobs_open; borrowed */
    double wait_s;                              /* for a lock, or an answer of the store */
    const struct clock *clock;                  /* dates events; NULL: the store's own; borrowed */
    unsigned count;                             /* 1 .. WORKERS_MAX */
    const struct serve_routes *const *families; /* ended by NULL; borrowed */
};

struct worker {
    struct workers *of;
    pthread_t thread;
    struct jobs jobs;
};

struct workers {
    struct workers_options options;
    struct task_line line;   /* to be answered by a family of routes */
    struct task_line health; /* to be told whether the store answers */
    struct worker worker[WORKERS_MAX];
    unsigned running;
    struct worker looker;
    bool looks;
};

/*
 * Opens the store once, to refuse an address that can never be served; one that
 * cannot be reached now may be later, and is said in `out_warning`, "" otherwise. Then
 * starts the threads.
 */
int workers_start(struct workers *workers, const struct workers_options *options,
                  struct fly_error *out_warning, struct fly_error *out_error);

/* Refuses what nobody took up in time. */
void workers_tick(struct workers *workers, struct mono_time now);

/* Finishes what is in the lines, and ends the threads; what is put there later is refused. */
void workers_stop(struct workers *workers);

/* Once they were stopped, and nobody puts anything into the lines any more. */
void workers_deinit(struct workers *workers);

#endif
