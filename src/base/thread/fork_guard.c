/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/fork_guard.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint64_t generation;
static pthread_once_t registered = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

uint64_t fork_generation(void)
{
    pthread_once(&registered, watch_forks);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
