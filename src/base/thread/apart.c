/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/apart.h"

#include <stdlib.h>

#include "base/thread/left_threads.h"
#include "base/thread/mono_wait.h"
#include "base/thread/quiet_thread.h"

struct apart {
    void (*run)(void *state);
    void (*drop)(void *state);
    void *state;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, left; /* left: the thread frees this */
};

static void free_apart(struct apart *apart)
{
    pthread_cond_destroy(&apart->changed);
    pthread_mutex_destroy(&apart->lock);
    free(apart);
}

static void *call(void *of)
{
    struct apart *apart = of;
    bool left;

    apart->run(apart->state);
    pthread_mutex_lock(&apart->lock);
    apart->done = true;
    left = apart->left;
    pthread_cond_signal(&apart->changed);
    pthread_mutex_unlock(&apart->lock);
    if (left) {
        apart->drop(apart->state);
        free_apart(apart);
        left_threads_remove();
    }
    return NULL;
}

bool apart_run(void (*run)(void *state), void (*drop)(void *state), void *state, double patience_s)
{
    struct mono_time until = mono_after_s(mono_now(), patience_s);
    struct apart *apart = calloc(1, sizeof *apart);
    pthread_t thread;
    bool done;

    if (apart != NULL) {
        *apart = (struct apart){.run = run, .drop = drop, .state = state};
        pthread_mutex_init(&apart->lock, NULL);
        mono_cond_init(&apart->changed);
    }
    if (apart == NULL || !quiet_thread_start(&thread, call, apart)) {
        if (apart != NULL)
            free_apart(apart);
        run(state);
        return true;
    }
    pthread_mutex_lock(&apart->lock);
    while (!apart->done && mono_wait(&apart->changed, &apart->lock, until))
        ;
    done = apart->done;
    apart->left = !done;
    if (!done) {
        left_threads_add();
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&apart->lock);
    if (done) {
        pthread_join(thread, NULL);
        free_apart(apart);
    }
    return done;
}
