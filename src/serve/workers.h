/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_WORKERS_H
#define FLYBALL_SERVE_WORKERS_H

#include <stdbool.h>

#include <flyball/error.h>

#include "base/thread/pool.h"
#include "http/task.h"
#include "http/troubles.h"
#include "serve/route_family.h"
#include "serve/served_store.h"

/*
 * Threads that answer requests from a store. They may block for as long as somebody else holds a
 * job's lock. Each has its own handle of the store, opened at its start or when it is first
 * needed, and opened again after an answer that shows that the store failed. While the store is
 * away (served_store.h), every request is answered with 503.
 */
enum { WORKERS_MAX = 64, WORKERS_STACK_BYTES = 2 << 20 };

struct workers_options {
    struct served_store *store;                 /* borrowed */
    struct troubles *troubles;                  /* gets reports on what clients are not told; borrowed */
    double wait_s;                              /* how long to wait for a lock or an answer of the store */
    unsigned count;                             /* 1 .. WORKERS_MAX */
    const struct serve_routes *const *families; /* ended by NULL; borrowed */
    const char *operators;                      /* caller.h; or NULL; borrowed */
};

struct worker {
    struct workers *of;
    struct jobs jobs;
};

struct workers {
    struct workers_options options;
    struct task_line line; /* tasks for the families of routes */
    struct worker worker[WORKERS_MAX];
    struct pool pool;
};

/* Starts the threads. */
int workers_start(struct workers *workers, const struct workers_options *options,
                  struct fly_error *out_error);

/* Queues the task to be answered. Its note is a struct serve_note. */
void workers_put(struct workers *workers, struct task *task);

/* Refuses tasks that nobody took up in time. */
void workers_tick(struct workers *workers, struct mono_time now);

/* Finishes all queued tasks and ends the threads. Tasks put in later are refused. */
void workers_stop(struct workers *workers);

/* Call it after the stop, when nobody puts tasks in any more. */
void workers_deinit(struct workers *workers);

#endif
