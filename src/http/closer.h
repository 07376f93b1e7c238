/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_CLOSER_H
#define FLYBALL_HTTP_CLOSER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "http/peer.h"

/*
 * Closes descriptors that come from strangers in a thread of its own, since closing such a one may
 * take as long as its owner likes: a socket that lingers, a file of the stranger's file system.
 * Even a socket that was not read counts, for descriptors may wait in it. Thread-safe.
 */
struct closer_job {
    int socket; /* -1: none */
    struct peer_strangers strangers;
    atomic_bool done; /* all are closed; the closer does not touch the job any more */
    struct closer_job *next;
};

struct closer;

/* FLY_ENOMEM. */
int closer_open(struct closer **out_closer, struct fly_error *out_error);

/* Closes what the job has; the job stays where it is until it is done. */
void closer_put(struct closer *closer, struct closer_job *job);

/* The number of jobs that are not done. */
size_t closer_waiting(struct closer *closer);

/*
 * Waits for all jobs, a second at most. Returns whether they are done. If not, the thread and the
 * jobs that are not done are left behind (left_threads.h), and must stay. The closer is gone.
 */
bool closer_close(struct closer *closer);

#endif
