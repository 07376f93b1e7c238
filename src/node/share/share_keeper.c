/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing an account, and the thread that gives processes their names. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/left_threads.h"
#include "base/thread/mono_wait.h"
#include "base/thread/quiet_thread.h"
#include "node/share/share_keep.h"

static const double poll_default_s = 0.5, save_default_s = 10.0, close_most_s = 2.0;

/* ---- names ---- */

static struct share_process *next_nameless(struct share *share)
{
    for (size_t i = 0; i < share->process_count; i++) {
        if (share->processes[i].number != 0 && !share->processes[i].named)
            return &share->processes[i];
    }
    return NULL;
}

void *share_namer(void *state)
{
    struct share *share = state;

    pthread_mutex_lock(&share->lock);
    while (!share->closing) {
        struct share_process *process = next_nameless(share);
        struct owner owner;
        uint64_t number;

        if (process == NULL) {
            pthread_cond_wait(&share->changed, &share->lock);
            continue;
        }
        owner = process->owner;
        number = process->number;
        pthread_mutex_unlock(&share->lock);
        owners_name(share->names, &owner);
        pthread_mutex_lock(&share->lock);
        process = people_of(share, number);
        if (process == NULL)
            continue;
        process->owner = owner;
        process->named = true;
    }
    share->namer_ended = true;
    if (share->given_up)
        left_threads_remove();
    share_let_go(share);
    return NULL;
}

/* ---- opening and closing ---- */

static char *copy_text(const char *text, bool *whole)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    *whole = *whole && (text == NULL || copy != NULL);
    return copy;
}

static void fill_options(struct share_options *options)
{
    options->poll_s = options->poll_s > 0.0 ? options->poll_s : poll_default_s;
    options->save_s = options->save_s > 0.0 ? options->save_s : save_default_s;
    if (options->series == 0 || options->series > SHARE_SERIES_MAX)
        options->series = SHARE_SERIES_MAX;
}

static int make(const struct share_options *options, struct share **out_share, struct fly_error *out_error)
{
    struct share *made = calloc(1, sizeof *made);
    bool whole = true;
    int code;

    if (made == NULL)
        return error_no_memory(out_error);
    made->options = *options;
    fill_options(&made->options);
    made->state = copy_text(options->state, &whole);
    made->root = copy_text(options->root, &whole);
    made->options.state = made->options.root = NULL;
    made->processes = calloc(SHARE_PROCESSES_MAX, sizeof *made->processes);
    made->series = calloc(SHARE_SERIES_MAX, sizeof *made->series);
    watch_boot_id(made->boot);
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->look_lock, NULL);
    mono_cond_init(&made->changed);
    made->holders = 1;
    whole = whole && made->processes != NULL && made->series != NULL;
    code = whole ? owners_new(made->root, &made->look, out_error) : error_no_memory(out_error);
    if (code == 0)
        code = owners_new(made->root, &made->names, out_error);
    if (code == 0 && made->state != NULL)
        code = share_record_open(made->state, &made->record, out_error);
    if (code < 0) {
        pthread_mutex_lock(&made->lock);
        share_let_go(made);
        return code;
    }
    *out_share = made;
    return 0;
}

static bool start(struct share *share, void *(*run)(void *))
{
    pthread_t thread;

    if (!quiet_thread_start(&thread, run, share))
        return false;
    pthread_detach(thread);
    share->holders++;
    return true;
}

int share_open(const struct share_options *options, struct share **out_share, struct fly_error *out_error)
{
    struct share *made;
    int code = make(options, &made, out_error);
    bool whole;

    if (code < 0)
        return code;
    resume_read(made);
    pthread_mutex_lock(&made->lock);
    whole = start(made, share_namer);
    made->namer_ended = !whole;
    whole = whole && start(made, share_clerk);
    made->clerk_ended = !whole;
    whole = clerk_meet_gpus(made) && whole;
    pthread_mutex_unlock(&made->lock);
    if (!whole) {
        share_close(made);
        return error_no_memory(out_error);
    }
    *out_share = made;
    return 0;
}

/* Counts the threads that still hang, so that the program ends without its exit handlers. */
static void leave_threads(struct share *share)
{
    share->given_up = true;
    for (unsigned i = 0; i < share->eyes; i++)
        left_threads_add();
    if (!share->namer_ended)
        left_threads_add();
    if (!share->clerk_ended)
        left_threads_add();
}

void share_close(struct share *share)
{
    struct mono_time until = mono_after_s(mono_now(), close_most_s);

    if (share == NULL)
        return;
    pthread_mutex_lock(&share->lock);
    share->closing = true;
    pthread_cond_broadcast(&share->changed);
    while (share->holders > 1 && mono_wait(&share->changed, &share->lock, until))
        ;
    if (share->clerk_ended) {
        clerk_write_ends(share);
        clerk_mark(share, true);
        clerk_save(share);
    }
    if (share->holders > 1)
        leave_threads(share);
    share_let_go(share);
}

void share_keep(struct share *share, double keep_s)
{
    pthread_mutex_lock(&share->lock);
    share->options.keep_s = keep_s;
    pthread_mutex_unlock(&share->lock);
}
