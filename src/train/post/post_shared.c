/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all threads do alike (the training's, the log's, and those of the disk): wait, and wake each other.
 */
#include "train/post/post_private.h"

#include <stdlib.h>

void post_wake(struct post *post)
{
    thread_group_wake(&post->group);
}

bool post_wait(struct post *post, struct mono_time until)
{
    return thread_group_wait(&post->group, until);
}

void post_free_ask(struct post_ask *ask)
{
    if (ask == NULL)
        return;
    arena_deinit(&ask->arena);
    free(ask);
}

void post_forget_kept(struct post *post)
{
    for (struct letter *letter = post->first; letter != post->unkept; letter = letter->next)
        letter->kept = false;
    post->unkept = post->first;
    post->kept = post->kept_all = 0;
}
