/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

enum { TICK_NS = 100000000 };

struct gang {
    const struct parallel *parallel;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    size_t next;
    unsigned working;
};

static void *labour(void *context)
{
    struct gang *gang = context;

    pthread_mutex_lock(&gang->lock);
    while (gang->next < gang->parallel->count) {
        size_t piece = gang->next++;

        pthread_mutex_unlock(&gang->lock);
        gang->parallel->work(gang->parallel->context, piece);
        pthread_mutex_lock(&gang->lock);
    }
    gang->working--;
    pthread_cond_signal(&gang->changed);
    pthread_mutex_unlock(&gang->lock);
    return NULL;
}

static unsigned start(struct gang *gang, pthread_t *threads, unsigned wanted)
{
    sigset_t all, before;
    unsigned count = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&gang->lock);
    while (count < wanted && count < gang->parallel->count &&
           pthread_create(&threads[count], NULL, labour, gang) == 0)
        count++;
    gang->working = count;
    pthread_mutex_unlock(&gang->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count;
}

static void await(struct gang *gang)
{
    pthread_mutex_lock(&gang->lock);
    while (gang->working > 0) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&gang->changed, &gang->lock, &until);
        if (gang->parallel->tick == NULL)
            continue;
        pthread_mutex_unlock(&gang->lock);
        gang->parallel->tick(gang->parallel->context);
        pthread_mutex_lock(&gang->lock);
    }
    pthread_mutex_unlock(&gang->lock);
}

void parallel_run(const struct parallel *parallel, unsigned threads)
{
    struct gang gang = {
        .parallel = parallel, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t ids[PARALLEL_THREADS_MAX];
    unsigned count = start(&gang, ids, threads);

    if (count == 0) {
        gang.working = 1;
        labour(&gang);
    }
    await(&gang);
    for (unsigned i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
    pthread_cond_destroy(&gang.changed);
    pthread_mutex_destroy(&gang.lock);
}
