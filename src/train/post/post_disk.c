/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that writes the spool. A home directory that does not answer holds up only this thread. It never
 * waits for a sync, so that letters are written in microseconds while the disk is busy.
 */
#include "train/post/post_private.h"

#include <string.h>

#include "base/error.h"

enum { PIECE_MAX = 1 << 20 };

/*
 * A letter that the log has not taken after this time goes to the spool: while the training still waits for
 * the log's answer, so that it need not wait for the spool after that.
 */
static const double keep_after_s = 0.1;
/* How long until what the disk refused is tried again; and at the end. */
static const double again_s = 30.0, again_at_end_s = 0.1;

/* Whether letters must go to the spool now. */
static bool is_wanted(const struct post *post)
{
    const struct letter *letter = post->unsure ? post->first : post->unkept;

    if (letter == NULL || (post->disk_fails && mono_now().ns < post->disk_again.ns))
        return false;
    return !post->threaded || post->unsure || post->keep_all || post->late || post->pause_s > 0.0 ||
           letter->failed || mono_elapsed_s(letter->since, mono_now()) > keep_after_s;
}

/*
 * Appends lines from that letter on to `out`, at most `most` bytes; returns the number of the last. A file
 * begins with the run that its reports belong to.
 */
static uint64_t gather(const struct post *post, const struct letter *letter, size_t most, bool begins,
                       struct buffer *out)
{
    uint64_t last = 0;

    if (begins && post->run_line != NULL && letter->kind != SPOOL_RUN)
        buffer_puts(out, post->run_line);
    for (; letter != NULL && (last == 0 || out->length + letter->length <= most); letter = letter->next) {
        buffer_append(out, letter->line, letter->length);
        last = letter->number;
    }
    return last;
}

static void note_kept(struct post *post, uint64_t last)
{
    for (; post->unkept != NULL && post->unkept->number <= last; post->unkept = post->unkept->next) {
        post->unkept->kept = true;
        post->kept_all++;
        post->kept += post->unkept->kind != SPOOL_RUN;
    }
    post->disk_fails = post->disk_late = false;
    post->disk_text[0] = '\0';
}

static void note_failure(struct post *post, const struct fly_error *error)
{
    post->disk_fails = post->disk_late = true;
    post->disk_again = mono_after_s(mono_now(), post->keep_all ? again_at_end_s : again_s);
    memcpy(post->disk_text, error->text, sizeof post->disk_text);
}

/*
 * Writes the file anew: it is full of letters delivered long ago, or the disk failed to take it. The old one
 * stands until the new one is written.
 */
static int keep_anew(struct spool *spool, const struct buffer *lines, struct fly_error *out_error)
{
    struct spool before = *spool;
    int code;

    spool->file = -1;
    code = spool_add_lines(spool, lines->data, lines->length, out_error);
    if (code == 0) {
        spool_end(&before, SPOOL_DELIVERED);
        return 0;
    }
    spool_end(spool, SPOOL_DELIVERED);
    spool->file = before.file;
    memcpy(spool->path, before.path, sizeof spool->path);
    return code;
}

/* Unlocks while it writes; false when the disk did not take it. */
static bool keep(struct post *post)
{
    bool anew = post->unsure || spool_is_full(&post->spool);
    struct fly_error error = {.text = ""};
    struct buffer lines;
    uint64_t last;
    int code;

    buffer_init(&lines, POST_BYTES_MAX + 2 * SPOOL_LINE_MAX);
    last = gather(post, anew ? post->first : post->unkept, anew ? POST_BYTES_MAX : PIECE_MAX,
                  anew || post->spool.file < 0, &lines);
    pthread_mutex_unlock(&post->group.lock);
    if (lines.error < 0)
        code = error_no_memory(&error);
    else if (anew)
        code = keep_anew(&post->spool, &lines, &error);
    else
        code = spool_add_lines(&post->spool, lines.data, lines.length, &error);
    buffer_deinit(&lines);
    pthread_mutex_lock(&post->group.lock);
    if (code == 0 && anew) {
        post_forget_kept(post);
        post->unsure = false;
    }
    if (code == 0) {
        note_kept(post, last);
        post_note_written(post);
    } else {
        note_failure(post, &error);
    }
    post_wake(post);
    return code == 0;
}

/* Empties the file: none of its letters needs delivery any more. */
static void clear(struct post *post)
{
    enum spool_rest rest = post->refused ? SPOOL_REFUSED : SPOOL_DELIVERED;

    post->refused = false;
    post_note_cleared(post);
    pthread_mutex_unlock(&post->group.lock);
    spool_end(&post->spool, rest);
    pthread_mutex_lock(&post->group.lock);
}

void post_disk_turn(struct post *post)
{
    while (is_wanted(post) && keep(post))
        ;
    if (post->spool.file >= 0 && post->kept_all == 0 && (!post->unsure || post->first == NULL))
        clear(post);
    if (!post->sync_runs)
        post_sync_turn(post);
    if (!post->threaded && post->group.closing)
        spool_end(&post->spool, SPOOL_LEFT);
}

/* Waits until there may be something to do. */
static void rest(struct post *post)
{
    if (post->disk_fails && (post->unkept != NULL || post->unsure))
        (void)post_wait(post, post->disk_again);
    else if (post->unkept != NULL)
        (void)post_wait(post, mono_after_s(post->unkept->since, keep_after_s));
    else
        (void)post_wait(post, MONO_NEVER);
}

static void look_for_left(struct post *post)
{
    bool left;

    pthread_mutex_unlock(&post->group.lock);
    left = spool_any_left(&post->spool);
    pthread_mutex_lock(&post->group.lock);
    post->left = left;
    post->looked = true;
    post_wake(post);
}

/* Whether nobody will hand in or deliver anything more. */
static bool is_over(const struct post *post)
{
    return post->log_ended && ((post->unkept == NULL && !post->unsure) || post->disk_fails);
}

void post_disk_run(void *state)
{
    struct post *post = state;

    pthread_mutex_lock(&post->group.lock);
    look_for_left(post);
    for (;;) {
        post_disk_turn(post);
        if (is_over(post))
            break;
        if (!is_wanted(post))
            rest(post);
    }
    pthread_mutex_unlock(&post->group.lock);
    spool_end(&post->spool, SPOOL_LEFT);
    pthread_mutex_lock(&post->group.lock);
    post->disk_ended = true;
    pthread_mutex_unlock(&post->group.lock);
}
