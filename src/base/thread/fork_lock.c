/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/fork_lock.h"

static struct fork_lock *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* of `all`; taken before each of them */
static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;

static void take_all(void)
{
    pthread_mutex_lock(&all_lock);
    for (struct fork_lock *lock = all; lock != NULL; lock = lock->next)
        pthread_mutex_lock(&lock->mutex);
}

static void give_all(void)
{
    for (struct fork_lock *lock = all; lock != NULL; lock = lock->next)
        pthread_mutex_unlock(&lock->mutex);
    pthread_mutex_unlock(&all_lock);
}

static void watch_forks(void)
{
    pthread_atfork(take_all, give_all, give_all);
}

static void watch(struct fork_lock *lock)
{
    pthread_once(&forks_watched, watch_forks);
    pthread_mutex_lock(&all_lock);
    if (!atomic_load(&lock->watched)) {
        lock->next = all;
        all = lock;
        atomic_store(&lock->watched, true);
    }
    pthread_mutex_unlock(&all_lock);
}

void fork_lock_take(struct fork_lock *lock)
{
    if (!atomic_load(&lock->watched))
        watch(lock);
    pthread_mutex_lock(&lock->mutex);
}

void fork_lock_give(struct fork_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
