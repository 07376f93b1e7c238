/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all threads do alike (the training's, the log's, and those of the disk): begin, wait, wake each other,
 * and let go.
 */
#include "train/post/post_private.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/thread/quiet_thread.h"
#include "base/wait.h"

static void free_post(struct post *post)
{
    while (post->first != NULL) {
        struct letter *next = post->first->next;

        free(post->first);
        post->first = next;
    }
    if (post->news >= 0)
        close(post->news);
    pthread_cond_destroy(&post->changed);
    pthread_mutex_destroy(&post->lock);
    free(post->run_line);
    free(post->address);
    free(post);
}

void post_release(struct post *post)
{
    bool last = --post->holders == 0;

    pthread_mutex_unlock(&post->lock);
    if (last)
        free_post(post);
}

void post_wake(struct post *post)
{
    pthread_cond_broadcast(&post->changed);
}

bool post_wait(struct post *post, struct mono_time until)
{
    return mono_wait(&post->changed, &post->lock, until);
}

void post_free_ask(struct post_ask *ask)
{
    if (ask == NULL)
        return;
    arena_deinit(&ask->arena);
    free(ask);
}

bool post_start(struct post *post, void *(*run)(void *))
{
    pthread_t thread;

    if (!quiet_thread_start(&thread, run, post))
        return false;
    pthread_detach(thread);
    post->holders++;
    return true;
}

void post_forget_kept(struct post *post)
{
    for (struct letter *letter = post->first; letter != post->unkept; letter = letter->next)
        letter->kept = false;
    post->unkept = post->first;
    post->kept = post->kept_all = 0;
}
