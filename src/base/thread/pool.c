/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

int quiet_thread_start(pthread_t *out_thread, size_t stack_bytes, void *(*run)(void *state), void *state)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int cause;

    pthread_attr_init(&attributes);
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    cause = pthread_create(out_thread, &attributes, run, state);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return cause;
}

int pool_add(struct pool *pool, size_t stack_bytes, void *(*work)(void *self), void *self)
{
    pthread_t *grown = realloc(pool->threads, (pool->count + 1) * sizeof *grown);
    int cause;

    if (grown == NULL)
        return ENOMEM;
    pool->threads = grown;
    cause = quiet_thread_start(&grown[pool->count], stack_bytes, work, self);
    pool->count += cause == 0;
    return cause;
}

void pool_join(struct pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    free(pool->threads);
    *pool = (struct pool){.count = 0};
}
