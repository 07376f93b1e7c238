/* SPDX-License-Identifier: Apache-2.0 */
#include "http/closer.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread/left_threads.h"
#include "base/thread/mono_wait.h"
#include "base/thread/quiet_thread.h"

static const double close_wait_s = 1.0;

struct closer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct closer_job *first, *last;
    size_t waiting;
    bool closing, ended, left;
    pthread_t thread;
};

static void closer_free(struct closer *closer)
{
    pthread_cond_destroy(&closer->changed);
    pthread_mutex_destroy(&closer->lock);
    free(closer);
}

static void do_job(struct closer_job *job)
{
    if (job->socket >= 0)
        close(job->socket);
    for (size_t i = 0; i < job->strangers.count; i++)
        close(job->strangers.fds[i]);
    atomic_store(&job->done, true);
}

/* Call it with the lock. NULL: it is to end. */
static struct closer_job *take(struct closer *closer)
{
    struct closer_job *job;

    while (closer->first == NULL && !closer->closing)
        pthread_cond_wait(&closer->changed, &closer->lock);
    job = closer->left ? NULL : closer->first;
    if (job == NULL)
        return NULL;
    closer->first = job->next;
    if (closer->first == NULL)
        closer->last = NULL;
    return job;
}

static void *run(void *state)
{
    struct closer *closer = state;
    struct closer_job *job;
    bool left;

    pthread_mutex_lock(&closer->lock);
    while ((job = take(closer)) != NULL) {
        pthread_mutex_unlock(&closer->lock);
        do_job(job);
        pthread_mutex_lock(&closer->lock);
        closer->waiting--;
    }
    closer->ended = true;
    left = closer->left;
    pthread_cond_broadcast(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
    if (left) {
        closer_free(closer);
        left_threads_remove();
    }
    return NULL;
}

int closer_open(struct closer **out_closer, struct fly_error *out_error)
{
    struct closer *closer = calloc(1, sizeof *closer);

    if (closer == NULL)
        return error_no_memory(out_error);
    pthread_mutex_init(&closer->lock, NULL);
    mono_cond_init(&closer->changed);
    if (!quiet_thread_start(&closer->thread, run, closer)) {
        closer_free(closer);
        return error_set(out_error, FLY_ENOMEM, "cannot start the thread that closes connections");
    }
    *out_closer = closer;
    return 0;
}

void closer_put(struct closer *closer, struct closer_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&closer->lock);
    if (closer->last != NULL)
        closer->last->next = job;
    else
        closer->first = job;
    closer->last = job;
    closer->waiting++;
    pthread_cond_broadcast(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
}

size_t closer_waiting(struct closer *closer)
{
    size_t waiting;

    pthread_mutex_lock(&closer->lock);
    waiting = closer->waiting;
    pthread_mutex_unlock(&closer->lock);
    return waiting;
}

bool closer_close(struct closer *closer)
{
    struct mono_time until = mono_after_s(mono_now(), close_wait_s);
    bool ended;

    pthread_mutex_lock(&closer->lock);
    closer->closing = true;
    pthread_cond_broadcast(&closer->changed);
    while (!closer->ended && mono_wait(&closer->changed, &closer->lock, until))
        ;
    ended = closer->ended;
    closer->left = !ended;
    if (!ended) {
        left_threads_add();
        pthread_detach(closer->thread);
    }
    pthread_mutex_unlock(&closer->lock);
    if (!ended)
        return false;
    pthread_join(closer->thread, NULL);
    closer_free(closer);
    return true;
}
