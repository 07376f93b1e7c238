/* SPDX-License-Identifier: Apache-2.0 */
/* What a training calls. Every wait here for the log or the disk ends at a moment known beforehand. */
#include "train/post/post_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

/* How long what is written to the spool may wait for its sync. */
static const double sync_s = 5.0;

/* ---- the begin ---- */

static void free_post(void *of)
{
    struct post *post = of;

    while (post->first != NULL) {
        struct letter *next = post->first->next;

        free(post->first);
        post->first = next;
    }
    if (post->news >= 0)
        close(post->news);
    free(post->run_line);
    free(post->address);
    free(post);
}

int post_new(const struct post_options *options, struct post **out_post, struct fly_error *out_error)
{
    struct post *post = calloc(1, sizeof *post);

    if (post != NULL && options->store != NULL) {
        post->address = strdup(options->store);
        if (post->address == NULL) {
            free(post);
            post = NULL;
        }
    }
    if (post == NULL)
        return error_no_memory(out_error);
    post->clock = options->clock;
    post->wait_s = options->wait_s;
    post->answer_s = options->answer_s;
    post->threaded = options->clock == &clock_real;
    post->news = post->threaded ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    post->sync_s = sync_s;
    if (options->jobs != NULL) {
        post->jobs = *options->jobs;
        post->open = post->borrowed = true;
    }
    thread_group_init(&post->group, free_post, post);
    spool_init(&post->spool, options->directory, options->store);
    *out_post = post;
    return 0;
}

bool post_begin(struct post *post)
{
    if (!post->threaded || post->begun)
        return !post->unable;
    post->begun = true;
    post->disk_ended = !thread_group_start(&post->group, post_disk_run, post);
    post->log_ended = post->disk_ended || !thread_group_start(&post->group, post_log_run, post);
    post->unable = post->log_ended;
    if (post->unable)
        snprintf(post->text, sizeof post->text,
                 "no thread can be started that would speak to it; raise the limit of processes (ulimit -u)");
    return !post->unable;
}

/* ---- letters ---- */

static struct letter *new_letter(const struct spool_entry *entry)
{
    struct letter *letter = NULL;
    struct buffer line;

    buffer_init(&line, SPOOL_LINE_MAX);
    if (spool_write(entry, &line, NULL) == 0)
        letter = malloc(sizeof *letter + line.length);
    if (letter != NULL) {
        *letter = (struct letter){.kind = entry->kind, .length = line.length};
        memcpy(letter->line, line.data, line.length);
    }
    buffer_deinit(&line);
    return letter;
}

static void append(struct post *post, struct letter *letter)
{
    letter->number = ++post->numbers;
    letter->round = post->round;
    letter->since = mono_now();
    if (post->last != NULL)
        post->last->next = letter;
    else
        post->first = letter;
    if (post->unkept == NULL)
        post->unkept = letter;
    post->last = letter;
    post->bytes += letter->length;
}

/* Notes the run's line, which must come before the run's reports on the spool. */
static void note_run(struct post *post, const struct letter *letter)
{
    free(post->run_line);
    post->run_line = strndup(letter->line, letter->length);
}

uint64_t post_send(struct post *post, const struct spool_entry *entry, enum post_haste haste)
{
    struct letter *letter = new_letter(entry);
    uint64_t number = 0;

    pthread_mutex_lock(&post->group.lock);
    if (letter == NULL || !post_begin(post) ||
        (post->bytes + letter->length > POST_BYTES_MAX && entry->kind == SPOOL_REPORT)) {
        post->lost++;
        free(letter);
    } else {
        append(post, letter);
        number = letter->number;
        post->urgent |= haste == POST_NOW;
        if (entry->kind == SPOOL_RUN)
            note_run(post, letter);
        post_wake(post);
        if (!post->threaded) {
            post_log_turn(post);
            post_disk_turn(post);
        }
    }
    pthread_mutex_unlock(&post->group.lock);
    return number;
}

static bool take_answer(struct post *post, enum spool_kind kind, union spool_answer *out_answer)
{
    if (!post->answers[kind].fresh)
        return false;
    post->answers[kind].fresh = false;
    *out_answer = post->answers[kind].answer;
    return true;
}

static bool is_kept(const struct post *post, uint64_t number)
{
    return post->unkept == NULL || post->unkept->number > number;
}

bool post_settle(struct post *post, uint64_t number, enum spool_kind kind, union spool_answer *out_answer)
{
    bool answered;

    pthread_mutex_lock(&post->group.lock);
    if (post->threaded && post->answer_s > 0.0 && number > 0) {
        struct mono_time now = mono_now(), until = mono_after_s(now, post->answer_s);

        while (post->done < number && !post->late && post_wait(post, until))
            ;
        post->late |= post->done < number;
        post_wake(post);
        /* A log that failed at once leaves more time for the spool. */
        until = mono_after_s(now, 1.5 * post->answer_s);
        while (post->done < number && !is_kept(post, number) && !post->disk_late && post_wait(post, until))
            ;
        post->disk_late |= post->done < number && !is_kept(post, number);
    }
    answered = number > 0 && post->done >= number && take_answer(post, kind, out_answer);
    pthread_mutex_unlock(&post->group.lock);
    return answered;
}

bool post_news(struct post *post, enum spool_kind kind, union spool_answer *out_answer)
{
    eventfd_t count;
    bool any;

    if (post->news >= 0)
        (void)eventfd_read(post->news, &count);
    pthread_mutex_lock(&post->group.lock);
    any = take_answer(post, kind, out_answer);
    pthread_mutex_unlock(&post->group.lock);
    return any;
}

int post_fd(const struct post *post)
{
    return post->news;
}

void post_beat(struct post *post, const struct job_beat *beat, double beat_s)
{
    pthread_mutex_lock(&post->group.lock);
    post->beat = *beat;
    snprintf(post->beat_job, sizeof post->beat_job, "%s", beat->job);
    post->beat.job = post->beat_job;
    post->beat_s = beat_s;
    post->beat_due = mono_after_s(mono_now(), beat_s);
    post_wake(post);
    pthread_mutex_unlock(&post->group.lock);
}

void post_beat_end(struct post *post)
{
    if (post == NULL)
        return;
    pthread_mutex_lock(&post->group.lock);
    post->beat_s = 0.0;
    pthread_mutex_unlock(&post->group.lock);
}

/* ---- the end ---- */

/* Whether waiting for the log is pointless now. */
static bool is_late(const struct post *post)
{
    return post->late || (post->pause_s > 0.0 && !post->urgent && !post->busy);
}

void post_drain(struct post *post, double most_s)
{
    struct mono_time until = mono_after_s(mono_now(), most_s);

    pthread_mutex_lock(&post->group.lock);
    while (post->threaded && post->begun && post->first != NULL && !is_late(post) && post_wait(post, until))
        ;
    post->late |= post->first != NULL;
    post_wake(post);
    pthread_mutex_unlock(&post->group.lock);
}

static bool have_ended(const struct post *post)
{
    return post->log_ended && post->disk_ended && (!post->sync_runs || post->sync_ended);
}

/* Lets the threads end in time. Call it with the lock held. */
static void end_threads(struct post *post, double most_s)
{
    struct mono_time now = mono_now(), half = mono_after_s(now, most_s / 2.0),
                     until = mono_after_s(now, most_s);

    post->group.closing = true;
    post->disk_fails = false;
    post_wake(post);
    while (post->first != NULL && !post->log_ended && post_wait(post, half))
        ;
    post->keep_all = true;
    post_wake(post);
    while (!have_ended(post) && !(post->unkept == NULL && post_is_synced(post) && post->busy) &&
           post_wait(post, until))
        ;
    if (post->first != NULL && post->text[0] == '\0')
        snprintf(post->text, sizeof post->text, "it did not answer before the end");
}

static struct post_status look(const struct post *post)
{
    struct post_status status = {.connected = post->connected, .kept = post->kept, .lost = post->lost};
    const char *kept = post->disk_text[0] != '\0' ? post->disk_text : post->sync_text;
    const char *between = post->text[0] != '\0' && kept[0] != '\0' ? "; and " : "";

    if (post->unkept != NULL)
        status.waiting = post->last->number - post->unkept->number + 1;
    snprintf(status.text, sizeof status.text, "%.255s%s%.240s", post->text, between, kept);
    return status;
}

struct post_status post_look(struct post *post)
{
    struct post_status status;

    pthread_mutex_lock(&post->group.lock);
    status = look(post);
    pthread_mutex_unlock(&post->group.lock);
    return status;
}

void post_close(struct post *post, double most_s, struct post_status *out_status)
{
    if (post == NULL)
        return;
    pthread_mutex_lock(&post->group.lock);
    if (post->threaded && post->begun) {
        end_threads(post, most_s);
    } else if (!post->threaded) {
        post->group.closing = true;
        post_log_turn(post);
        post_disk_turn(post);
    }
    if (out_status != NULL)
        *out_status = look(post);
    thread_group_leave(&post->group);
}
