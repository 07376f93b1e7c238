/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that keeps the record: it begins accounts of GPUs that appear, writes ends of rows, and
 * every now and then all that goes on. It builds texts with the lock, and writes them without.
 */
#include <math.h>
#include <stdlib.h>

#include "node/share/share_keep.h"

enum { ENDS_AT_ONCE = 64 };

static const double round_s = 0.25, tidy_most_s = 5.0;
static const int64_t mark_ms = 600000;

static int64_t now_unix_ms(void)
{
    return clock_real.date(clock_real.state).ns / 1000000;
}

/* ---- lines ---- */

static struct usage_line line_of(const struct share_gpu *gpu, const char *what)
{
    return (struct usage_line){.schema = USAGE_LINE_SCHEMA,
                               .what = what,
                               .unix_ms = now_unix_ms(),
                               .boot = gpu->share->boot,
                               .serial = gpu->share->serial,
                               .idle_w = NAN};
}

static int put_process(struct share_gpu *gpu, const struct ledger_row *row, const char *what,
                       struct buffer *text)
{
    const struct share_process *process = people_of(gpu->share, row->process);
    struct usage_line line = line_of(gpu, what);

    tell_process(gpu, row, &line.row);
    line.start_ticks = process != NULL && !process->over ? process->owner.start_ticks : 0;
    return share_record_put(&line, text, NULL);
}

static int put_sets(struct share_gpu *gpu, struct buffer *text)
{
    struct arena arena;
    int code = 0;

    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < gpu->ledger.set_count && code == 0; i++) {
        struct usage_line line = line_of(gpu, "row");

        if (gpu->ledger.sets[i].row.energy_uj == 0)
            continue;
        code = tell_set(gpu, &gpu->ledger.sets[i], &arena, &line.row);
        if (code == 0)
            code = share_record_put(&line, text, NULL);
    }
    arena_deinit(&arena);
    return code;
}

static int put_rest(struct share_gpu *gpu, enum usage_kind kind, const struct ledger_row *row,
                    struct buffer *text)
{
    struct usage_line line = line_of(gpu, "row");

    tell_rest(gpu, kind, row, &line.row);
    return share_record_put(&line, text, NULL);
}

/* The whole GPU; last, so that a file that is cut short has no sum without its rows. */
static int put_gpu(struct share_gpu *gpu, int64_t ended_uj, struct buffer *text)
{
    struct usage_line line = line_of(gpu, "gpu");
    const struct ledger_row all = {
        .energy_uj = gpu->ledger.energy_uj, .power_w = NAN, .memory_bytes = UINT64_MAX};

    tell_rest(gpu, USAGE_PROCESS, &all, &line.row);
    line.source = usage_source_word(gpu->info.emulated, gpu->info.estimated);
    line.idle_w = gpu->ledger.floor_w;
    line.ended_uj = ended_uj;
    line.left_out_uj = gpu->left_out_uj;
    if (gpu->counted_unix_ms != 0)
        line.unix_ms = gpu->counted_unix_ms;
    return share_record_put(&line, text, NULL);
}

static int put_series(struct share *share, struct buffer *text)
{
    int code = 0;

    for (size_t i = 0; i < share->series_count && code == 0; i++) {
        const struct share_series *series = &share->series[i];
        struct usage_line line;

        if (series->rows == 0)
            continue;
        line = line_of(share->gpus[series->gpu], "series");
        line.row = (struct usage_row){.kind = series->kind,
                                      .gpu = share->gpus[series->gpu]->info.index,
                                      .uuid = share->gpus[series->gpu]->info.uuid,
                                      .uid = -1,
                                      .memory_bytes = -1,
                                      .user = series->user,
                                      .training_job = series->training_job,
                                      .slurm_job = series->slurm_job,
                                      .pod = series->pod,
                                      .pod_namespace = series->pod_namespace,
                                      .container = series->container,
                                      .energy_j = (double)series->energy_uj / 1e6,
                                      .energy_uj = series->energy_uj,
                                      .half_width_j = NAN,
                                      .time_s = NAN,
                                      .shared_s = NAN,
                                      .power_w = NAN};
        code = share_record_put(&line, text, NULL);
    }
    return code;
}

static int put_all_of(struct share_gpu *gpu, struct buffer *text)
{
    const struct ledger *ledger = &gpu->ledger;
    int64_t ended_uj = 0;
    int code = 0;

    series_settle(gpu, false);
    for (size_t i = 0; i < ledger->count && code == 0; i++) {
        if (ledger->rows[i].ended_unix_ms != 0 && ledger->rows[i].logged)
            ended_uj += ledger->rows[i].energy_uj;
        else
            code = put_process(gpu, &ledger->rows[i], "row", text);
    }
    if (code == 0)
        code = put_sets(gpu, text);
    if (code == 0)
        code = put_rest(gpu, USAGE_PROCESS, &ledger->others, text);
    if (code == 0)
        code = put_rest(gpu, USAGE_IDLE, &ledger->idle, text);
    if (code == 0)
        code = put_rest(gpu, USAGE_UNOBSERVED, &ledger->unobserved, text);
    return code < 0 ? code : put_gpu(gpu, ended_uj, text);
}

static int put_all(struct share *share, struct buffer *text)
{
    int code = 0;

    for (size_t i = 0; i < share->gpu_count && code == 0; i++)
        code = put_all_of(share->gpus[i], text);
    if (code == 0)
        code = put_series(share, text);
    for (size_t i = 0; i < share->saved_count && code == 0; i++) {
        const struct saved_line *saved = &share->saved[i];

        if (saved->taken || saved->is_end)
            continue;
        buffer_append(text, saved->text, saved->length);
        buffer_puts(text, "\n");
        code = text->error;
    }
    return code;
}

/* ---- writing; with the lock, which it releases meanwhile ---- */

static void note_written(struct share *share, int code, const struct fly_error *error)
{
    bool news = (code < 0) != share->unwritten;

    share->unwritten = code < 0;
    if (!news)
        return;
    pthread_mutex_unlock(&share->group.lock);
    if (code < 0)
        share_say(share, true, "who used the GPUs is not recorded: %s", error->text);
    else
        share_say(share, false, "who used the GPUs is recorded again");
    pthread_mutex_lock(&share->group.lock);
}

void clerk_save(struct share *share)
{
    struct fly_error error = {.text = "out of memory"};
    struct buffer text;
    int code;

    if (share->record == NULL)
        return;
    buffer_init(&text, RECORD_NOW_MAX);
    code = put_all(share, &text);
    pthread_mutex_unlock(&share->group.lock);
    if (code == 0)
        code = share_record_replace(share->record, text.data, text.length, &error);
    buffer_deinit(&text);
    pthread_mutex_lock(&share->group.lock);
    note_written(share, code, &error);
}

/* What was resumed may still be there: that shows at the first look. */
static bool has_ended(const struct share_gpu *gpu, const struct ledger_row *row)
{
    return row->ended_unix_ms != 0 && !row->logged && gpu->ledger.at.ns != 0;
}

static size_t collect_ends(struct share *share, struct share_gpu *gpu, uint64_t ends[ENDS_AT_ONCE],
                           struct buffer *text)
{
    size_t count = 0;

    for (size_t i = 0; i < gpu->ledger.count && count < ENDS_AT_ONCE; i++) {
        struct ledger_row *row = &gpu->ledger.rows[i];

        if (!has_ended(gpu, row))
            continue;
        share->serial++;
        if (put_process(gpu, row, "end", text) == 0)
            ends[count++] = row->process;
    }
    return count;
}

static void write_ends_of(struct share *share, struct share_gpu *gpu)
{
    uint64_t ends[ENDS_AT_ONCE];
    struct fly_error error = {.text = "out of memory"};
    struct buffer text;
    size_t count;
    int code = 0;

    buffer_init(&text, ENDS_AT_ONCE * RECORD_LINE_MAX);
    count = collect_ends(share, gpu, ends, &text);
    if (count > 0) {
        pthread_mutex_unlock(&share->group.lock);
        code = share_record_append(share->record, text.data, text.length, &error);
        pthread_mutex_lock(&share->group.lock);
        note_written(share, code, &error);
    }
    for (size_t i = 0; i < count && code == 0; i++) {
        struct ledger_row *row = ledger_find(&gpu->ledger, ends[i]);

        if (row != NULL && row->ended_unix_ms != 0)
            row->logged = true;
    }
    buffer_deinit(&text);
}

void clerk_write_ends(struct share *share)
{
    for (size_t i = 0; share->record != NULL && i < share->gpu_count; i++)
        write_ends_of(share, share->gpus[i]);
}

/* ---- marks ---- */

/* A mark is a GPU's total at a moment, so that a reader can tell what was drawn between two. */
static bool is_due(const struct share_gpu *gpu, bool last)
{
    int64_t since_ms = gpu->counted_unix_ms - gpu->marked_unix_ms;

    return gpu->ledger.at.ns != 0 && gpu->counted_unix_ms != 0 && since_ms != 0 &&
           (last || gpu->marked_unix_ms == 0 || since_ms < 0 || since_ms >= mark_ms);
}

void clerk_mark(struct share *share, bool last)
{
    struct fly_error error = {.text = "out of memory"};
    struct buffer text;
    int code = 0;

    if (share->record == NULL)
        return;
    buffer_init(&text, WATCH_GPUS_MAX * RECORD_LINE_MAX);
    for (size_t i = 0; i < share->gpu_count && code == 0; i++) {
        struct share_gpu *gpu = share->gpus[i];

        if (!is_due(gpu, last))
            continue;
        gpu->marked_unix_ms = gpu->counted_unix_ms;
        code = put_gpu(gpu, 0, &text);
    }
    if (text.length > 0) {
        pthread_mutex_unlock(&share->group.lock);
        code = share_record_append(share->record, text.data, text.length, &error);
        pthread_mutex_lock(&share->group.lock);
        note_written(share, code, &error);
    }
    buffer_deinit(&text);
}

/* ---- the thread ---- */

/* Begins the account of each GPU that the watch knows. Returns false if memory or threads are exhausted. */
bool clerk_meet_gpus(struct share *share)
{
    size_t count = watch_gpu_count(share->options.watch);

    while (share->gpu_count < count && share->gpu_count < WATCH_GPUS_MAX) {
        struct share_gpu *made = calloc(1, sizeof *made);
        struct ledger_row *rows = calloc(LEDGER_ROWS_MAX, sizeof *rows);

        if (made == NULL || rows == NULL) {
            free(made);
            free(rows);
            return false;
        }
        made->share = share;
        made->gpu = share->gpu_count;
        made->rows = rows;
        watch_gpu_info(share->options.watch, made->gpu, &made->info);
        ledger_init(&made->ledger, rows, LEDGER_ROWS_MAX);
        share->gpus[share->gpu_count++] = made;
        resume_gpu(made);
        if (!thread_group_start(&share->group, share_eye, made))
            return false;
    }
    return true;
}

void share_clerk(void *state)
{
    struct share *share = state;
    struct mono_time save_due = mono_after_s(mono_now(), share->options.save_s);
    double tidy_s = fmin(tidy_most_s, share->options.save_s);
    struct mono_time tidy_due = mono_after_s(mono_now(), tidy_s);

    pthread_mutex_lock(&share->group.lock);
    while (!share->group.closing) {
        struct mono_time until = mono_after_s(mono_now(), round_s);

        (void)clerk_meet_gpus(share);
        clerk_write_ends(share);
        clerk_mark(share, false);
        if (mono_now().ns >= tidy_due.ns) {
            people_tidy(share);
            tidy_due = mono_after_s(mono_now(), tidy_s);
        }
        if (mono_now().ns >= save_due.ns) {
            clerk_save(share);
            save_due = mono_after_s(mono_now(), share->options.save_s);
        }
        while (!share->group.closing && thread_group_wait(&share->group, until))
            ;
    }
    share->clerk_ended = true;
    pthread_mutex_unlock(&share->group.lock);
}
