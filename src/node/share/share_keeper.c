/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing an account, and the thread that gives processes their names. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
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

void share_namer(void *state)
{
    struct share *share = state;

    pthread_mutex_lock(&share->group.lock);
    while (!share->group.closing) {
        struct share_process *process = next_nameless(share);
        struct owner owner;
        uint64_t number;

        if (process == NULL) {
            (void)thread_group_wait(&share->group, MONO_NEVER);
            continue;
        }
        owner = process->owner;
        number = process->number;
        pthread_mutex_unlock(&share->group.lock);
        owners_name(share->names, &owner);
        pthread_mutex_lock(&share->group.lock);
        process = people_of(share, number);
        if (process == NULL)
            continue;
        process->owner = owner;
        process->named = true;
    }
    pthread_mutex_unlock(&share->group.lock);
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

static void free_share(void *of)
{
    struct share *share = of;

    for (size_t i = 0; i < share->gpu_count; i++) {
        free(share->gpus[i]->rows);
        free(share->gpus[i]);
    }
    arena_deinit(&share->arena);
    free(share->saved);
    share_record_close(share->record);
    owners_free(share->look);
    owners_free(share->names);
    free(share->processes);
    free(share->series);
    free(share->state);
    free(share->root);
    pthread_mutex_destroy(&share->look_lock);
    free(share);
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
    thread_group_init(&made->group, free_share, made);
    pthread_mutex_init(&made->look_lock, NULL);
    whole = whole && made->processes != NULL && made->series != NULL;
    code = whole ? owners_new(made->root, &made->look, out_error) : error_no_memory(out_error);
    if (code == 0)
        code = owners_new(made->root, &made->names, out_error);
    if (code == 0 && made->state != NULL)
        code = share_record_open(made->state, &made->record, out_error);
    if (code < 0) {
        pthread_mutex_lock(&made->group.lock);
        thread_group_leave(&made->group);
        return code;
    }
    *out_share = made;
    return 0;
}

int share_open(const struct share_options *options, struct share **out_share, struct fly_error *out_error)
{
    struct share *made;
    int code = make(options, &made, out_error);
    bool whole;

    if (code < 0)
        return code;
    resume_read(made);
    pthread_mutex_lock(&made->group.lock);
    whole = thread_group_start(&made->group, share_namer, made);
    made->clerk_ended = !whole || !thread_group_start(&made->group, share_clerk, made);
    whole = !made->clerk_ended;
    whole = clerk_meet_gpus(made) && whole;
    pthread_mutex_unlock(&made->group.lock);
    if (!whole) {
        share_close(made);
        return error_no_memory(out_error);
    }
    *out_share = made;
    return 0;
}

void share_close(struct share *share)
{
    if (share == NULL)
        return;
    (void)thread_group_end(&share->group, close_most_s);
    if (share->clerk_ended) {
        clerk_write_ends(share);
        clerk_mark(share, true);
        clerk_save(share);
    }
    thread_group_leave(&share->group);
}

void share_keep(struct share *share, double keep_s)
{
    pthread_mutex_lock(&share->group.lock);
    share->options.keep_s = keep_s;
    pthread_mutex_unlock(&share->group.lock);
}
