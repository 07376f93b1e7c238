/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all three threads do alike (the training's, the log's and the disk's): wait, wake each other, and let
 * go.
 */
#include "train/post/post_private.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/thread/mono_wait.h"

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
