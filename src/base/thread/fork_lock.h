/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_FORK_LOCK_H
#define FLYBALL_BASE_THREAD_FORK_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A lock of the whole process that is free in a forked child, with what it guards in order: fork() takes all
 * such locks before it copies the process, and gives them back in parent and child.
 *
 *     static struct fork_lock lock = FORK_LOCK_INIT;
 *
 *     fork_lock_take(&lock);
 *     ... look at memory, change memory ...
 *     fork_lock_give(&lock);
 *
 * So each fork of the program waits for whoever holds one. Between the two calls nothing may be called that
 * can wait: no system call on a file, no driver, no other lock. Do not nest them.
 */
struct fork_lock {
    pthread_mutex_t mutex;
    atomic_bool watched;    /* it is one of those that fork takes */
    struct fork_lock *next; /* of those */
};

#define FORK_LOCK_INIT                         \
    {                                          \
        PTHREAD_MUTEX_INITIALIZER, false, NULL \
    }

void fork_lock_take(struct fork_lock *lock);
void fork_lock_give(struct fork_lock *lock);

#endif
