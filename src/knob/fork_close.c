/* SPDX-License-Identifier: Apache-2.0 */
/* A table without a lock, because the child of a fork must not wait for a lock that another thread held. */
#include "knob/fork_close.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { NOTED_MAX = 512 };

/* Descriptors plus one; 0 marks a free place. */
static _Atomic int noted[NOTED_MAX];
static pthread_once_t registered = PTHREAD_ONCE_INIT;

static void close_all(void)
{
    for (int i = 0; i < NOTED_MAX; i++) {
        int fd = atomic_exchange(&noted[i], 0) - 1;

        if (fd >= 0)
            close(fd);
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, close_all);
}

int fork_close_add(int fd)
{
    pthread_once(&registered, watch_forks);
    for (int i = 0; i < NOTED_MAX && fd >= 0; i++) {
        int none = 0;

        if (atomic_compare_exchange_strong(&noted[i], &none, fd + 1))
            break;
    }
    return fd;
}

void fork_close_now(int fd)
{
    for (int i = 0; i < NOTED_MAX && fd >= 0; i++) {
        int expected = fd + 1;

        if (atomic_compare_exchange_strong(&noted[i], &expected, 0))
            break;
    }
    if (fd >= 0)
        close(fd);
}
