/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_POOL_H
#define FLYBALL_BASE_THREAD_POOL_H

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread that blocks all signals but those of faults, since signals are for the program's own
 * threads: their handlers may not expect another thread. `stack_bytes` 0: as large as is usual. Returns 0 or
 * an errno.
 */
int quiet_thread_start(pthread_t *out_thread, size_t stack_bytes, void *(*run)(void *state), void *state);

/*
 * Threads that work until they are told to end, and are waited for then. Threads that may hang for longer
 * than anybody waits are of thread_group.h.
 *
 *     struct pool pool = {.count = 0};
 *
 *     for (size_t i = 0; i < count && cause == 0; i++)
 *         cause = pool_add(&pool, STACK_BYTES, take_work, queue);
 *     ... close the queue ...
 *     pool_join(&pool);
 */
struct pool {
    pthread_t *threads; /* owned */
    size_t count;
};

/* Returns 0, or an errno if memory is exhausted or the system allows no more threads. */
int pool_add(struct pool *pool, size_t stack_bytes, void *(*work)(void *self), void *self);

/* Waits for all; the pool is empty then. */
void pool_join(struct pool *pool);

#endif
