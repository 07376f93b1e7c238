/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_PARALLEL_H
#define FLYBALL_DEMO_PARALLEL_H

#include <stddef.h>

/*
 * Independent pieces of work on several threads, taken in order.
 *
 * Piece i calls work(context, i), which writes only what is piece i's own, so
 * that the number of threads changes nothing but the time. Meanwhile the
 * caller's thread calls `tick` ten times a second, unless it is NULL. Returns
 * when all are done. Threads have all signals blocked; where none can be
 * started, the caller's does the work.
 */
enum { PARALLEL_THREADS_MAX = 256 };

struct parallel {
    size_t count; /* pieces */
    void (*work)(void *context, size_t piece);
    void (*tick)(void *context);
    void *context;
};

/* `threads` from 1 to PARALLEL_THREADS_MAX. */
void parallel_run(const struct parallel *parallel, unsigned threads);

#endif
