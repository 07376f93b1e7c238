/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits until what was written to the spool is on the disk. A busy disk takes seconds for that, and other
 * letters must not wait behind it, so this is a thread of its own. Few trainings need it: it begins when
 * something was written, and what the log takes within `sync_s` is never synced.
 */
#include "train/post/post_private.h"

#include <string.h>

/* How long after a failure lines are written to a new file and synced again. */
static const double again_s = 30.0;

static struct mono_time now_of(const struct post *post)
{
    return post->clock->now(post->clock->state);
}

/* Whether no more letters will be written. */
static bool is_last(const struct post *post)
{
    return post->keep_all || (!post->threaded && post->group.closing);
}

bool post_is_synced(const struct post *post)
{
    return post->written == post->synced || post->sync_given_up;
}

void post_note_written(struct post *post)
{
    if (post->written == post->synced)
        post->sync_due = mono_after_s(now_of(post), post->sync_s);
    post->written++;
    post->unsynced_spool = post->spool;
    /* Without that thread, the one that writes does its work too. */
    if (post->threaded && !post->sync_runs && !post->group.left)
        post->sync_runs = thread_group_start(&post->group, post_sync_run, post);
}

void post_note_cleared(struct post *post)
{
    post->synced = post->written;
    post->unsure = false;
    post->sync_text[0] = '\0';
}

static void note_failure(struct post *post, const struct fly_error *error)
{
    memcpy(post->sync_text, error->text, sizeof post->sync_text);
    if (is_last(post)) {
        post->sync_given_up = true;
        return;
    }
    post->sync_due = mono_after_s(now_of(post), again_s);
    post->unsure = true;
    post_forget_kept(post);
}

/* Unlocks while it waits for the disk. */
static void sync_now(struct post *post)
{
    struct spool spool = post->unsynced_spool;
    uint64_t written = post->written;
    struct fly_error error = {.text = ""};
    int code;

    pthread_mutex_unlock(&post->group.lock);
    code = spool_sync(&spool, &error);
    pthread_mutex_lock(&post->group.lock);
    if (code < 0 && post->synced < written) {
        note_failure(post, &error);
    } else if (post->synced < written) {
        post->synced = written;
        post->sync_due = mono_after_s(now_of(post), post->sync_s);
        post->sync_text[0] = '\0';
    }
    post_wake(post);
}

static bool is_due(const struct post *post)
{
    return !post_is_synced(post) && (is_last(post) || now_of(post).ns >= post->sync_due.ns);
}

void post_sync_turn(struct post *post)
{
    while (is_due(post))
        sync_now(post);
}

void post_sync_run(void *state)
{
    struct post *post = state;

    pthread_mutex_lock(&post->group.lock);
    for (;;) {
        post_sync_turn(post);
        if (post->disk_ended && post_is_synced(post))
            break;
        if (post_is_synced(post))
            (void)post_wait(post, MONO_NEVER);
        else
            (void)post_wait(post, post->sync_due);
    }
    post->sync_ended = true;
    pthread_mutex_unlock(&post->group.lock);
}
