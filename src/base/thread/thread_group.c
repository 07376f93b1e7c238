/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/thread_group.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread/fork_guard.h"
#include "base/thread/pool.h"

static atomic_int left_behind;

struct start {
    struct thread_group *group;
    void (*run)(void *state);
    void *state;
};

void thread_group_init(struct thread_group *group, void (*free)(void *object), void *object)
{
    *group = (struct thread_group){.forks = fork_generation(), .free = free, .object = object};
    pthread_mutex_init(&group->lock, NULL);
    mono_cond_init(&group->changed);
}

/* Gives the lock back, and frees the object if nobody uses it any more. */
static void let_go(struct thread_group *group)
{
    bool last = group->left && group->running == 0;

    pthread_mutex_unlock(&group->lock);
    if (!last)
        return;
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->lock);
    group->free(group->object);
}

static void *thread(void *of)
{
    struct start start = *(struct start *)of;
    bool left;

    free(of);
    start.run(start.state);
    pthread_mutex_lock(&start.group->lock);
    start.group->running--;
    left = start.group->left;
    pthread_cond_broadcast(&start.group->changed);
    let_go(start.group);
    if (left)
        atomic_fetch_sub(&left_behind, 1);
    return NULL;
}

bool thread_group_start(struct thread_group *group, void (*run)(void *state), void *state)
{
    struct start *start = malloc(sizeof *start);
    pthread_t started;

    if (start == NULL)
        return false;
    *start = (struct start){group, run, state};
    if (quiet_thread_start(&started, 0, thread, start) != 0) {
        free(start);
        return false;
    }
    pthread_detach(started);
    group->running++;
    return true;
}

bool thread_group_wait(struct thread_group *group, struct mono_time until)
{
    return mono_wait(&group->changed, &group->lock, until);
}

void thread_group_wake(struct thread_group *group)
{
    pthread_cond_broadcast(&group->changed);
}

bool thread_group_is_copy(const struct thread_group *group)
{
    return group->forks != fork_generation();
}

bool thread_group_end(struct thread_group *group, double most_s)
{
    struct mono_time until = mono_after_s(mono_now(), most_s);

    if (thread_group_is_copy(group))
        return false;
    pthread_mutex_lock(&group->lock);
    group->closing = true;
    thread_group_wake(group);
    while (group->running > 0 && thread_group_wait(group, until))
        ;
    return group->running == 0;
}

void thread_group_leave(struct thread_group *group)
{
    if (thread_group_is_copy(group))
        return;
    group->left = true;
    atomic_fetch_add(&left_behind, (int)group->running);
    let_go(group);
}

bool left_threads_any(void)
{
    return atomic_load(&left_behind) > 0;
}

/* ---- a single call ---- */

struct apart {
    struct thread_group group;
    void (*run)(void *state);
    void (*drop)(void *state);
    void *state;
    bool taken; /* the owner has `state` again */
};

static void free_apart(void *of)
{
    struct apart *apart = of;

    if (!apart->taken)
        apart->drop(apart->state);
    free(apart);
}

static void call(void *of)
{
    struct apart *apart = of;

    apart->run(apart->state);
}

struct apart *apart_begin(void (*run)(void *state), void (*drop)(void *state), void *state)
{
    struct apart *apart = malloc(sizeof *apart);
    bool started;

    if (apart == NULL)
        return NULL;
    *apart = (struct apart){.run = run, .drop = drop, .state = state};
    thread_group_init(&apart->group, free_apart, apart);
    pthread_mutex_lock(&apart->group.lock);
    started = thread_group_start(&apart->group, call, apart);
    if (started) {
        pthread_mutex_unlock(&apart->group.lock);
        return apart;
    }
    apart->taken = true;
    thread_group_leave(&apart->group);
    return NULL;
}

bool apart_finish(struct apart *apart, struct mono_time until)
{
    bool done;

    pthread_mutex_lock(&apart->group.lock);
    while (apart->group.running > 0 && thread_group_wait(&apart->group, until))
        ;
    done = apart->taken = apart->group.running == 0;
    thread_group_leave(&apart->group);
    return done;
}

bool apart_run(void (*run)(void *state), void (*drop)(void *state), void *state, double patience_s)
{
    struct mono_time until = mono_after_s(mono_now(), patience_s);
    struct apart *apart = apart_begin(run, drop, state);

    if (apart != NULL)
        return apart_finish(apart, until);
    run(state);
    return true;
}
