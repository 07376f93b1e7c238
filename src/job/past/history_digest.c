/* SPDX-License-Identifier: Apache-2.0 */
/* A job's history as bytes. */
#include "job/past/history_fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "job/core/job_words.h"

enum {
    TRIALS_MOST = 10000000,
    TEXT_MOST = 1 << 16, /* bytes of one text of a row */
    ROW_TEXTS = 5,
};

static const struct bytes_row mark_rows[] = {BYTES_AT(digest_mark, number), BYTES_AT(digest_mark, time_us),
                                             BYTES_UP_TO(digest_mark, trials, TRIALS_MOST)};

static const struct bytes_row head_rows[] = {
    BYTES_UP_TO(job_history, objective.kind, FLY_OBJECTIVE_MONEY),
    BYTES_AT(job_history, objective.eta),
    BYTES_AT(job_history, objective.max_slowdown),
    BYTES_AT(job_history, pin_batch_size),
    BYTES_AT(job_history, pin_limit_w),
    BYTES_AT(job_history, wanted_us),
    BYTES_AT(job_history, wanted_from),
    BYTES_AT(job_history, reference_per_kwh),
    BYTES_UP_TO(job_history, machine_count, JOB_HARDWARE_MAX),
    BYTES_UP_TO(job_history, brought_count, TRIALS_MOST),
};

static const struct bytes_row machine_rows[] = {
    BYTES_AT(fly_job_hardware, gpu_count), BYTES_AT(fly_job_hardware, world_size),
    BYTES_AT(fly_job_hardware, gpu_memory_bytes), BYTES_AT(fly_job_hardware, max_power_w),
    BYTES_AT(fly_job_hardware, highest_limit_w)};

static const struct bytes_row brought_rows[] = {
    BYTES_UP_TO(job_brought_past, kind, PAST_KINDS - 1), BYTES_AT(job_brought_past, before),
    BYTES_AT(job_brought_past, time_us), BYTES_AT(job_brought_past, runs),
    BYTES_AT(job_brought_past, batch_count)};

static const struct bytes_row row_rows[] = {
    BYTES_AT(job_row, running),
    BYTES_AT(job_row, trial.late),
    BYTES_AT(job_row, nothing_learnt),
    BYTES_AT(job_row, trial.profiled),
    BYTES_AT(job_row, left_alone),
    BYTES_AT(job_row, whole_profile),
    BYTES_AT(job_row, trial.attempts),
    BYTES_AT(job_row, trial.recurrence),
    BYTES_AT(job_row, trial.try_number),
    BYTES_UP_TO(job_row, outcome, TRIAL_OUTCOME_COUNT - 1),
    BYTES_UP_TO(job_row, stop, JOB_STOP_ENDED),
    BYTES_UP_TO(job_row, reason, REASON_COUNT - 1),
    BYTES_UP_TO(job_row, machine, JOB_HARDWARE_MAX - 1),
    BYTES_AT(job_row, trial.batch_size),
    BYTES_AT(job_row, trial.limit_w),
    BYTES_AT(job_row, trial.epochs),
    BYTES_AT(job_row, trial.metric),
    BYTES_AT(job_row, trial.energy_j),
    BYTES_AT(job_row, trial.time_s),
    BYTES_AT(job_row, startup_energy_j),
    BYTES_AT(job_row, startup_time_s),
    BYTES_AT(job_row, trial.whole_energy_j),
    BYTES_AT(job_row, trial.whole_time_s),
    BYTES_AT(job_row, reference_per_kwh),
    BYTES_AT(job_row, proposed_us),
    BYTES_AT(job_row, ended_us),
};

/* ---- writing ---- */

void digest_put_head(const struct digest_mark *mark, const struct job_history *history, struct buffer *bytes)
{
    bytes_put_text(bytes, DIGEST_VERSION);
    bytes_put_rows(bytes, BYTES_ROWS(mark_rows), mark);
    bytes_put_rows(bytes, BYTES_ROWS(head_rows), history);
    bytes_put_text(bytes, history->policy);
    for (size_t i = 0; i < history->machine_count; i++) {
        bytes_put_rows(bytes, BYTES_ROWS(machine_rows), &history->machines[i]);
        bytes_put_text(bytes, history->machines[i].gpu_model);
    }
    for (size_t i = 0; i < history->brought_count; i++) {
        const struct job_brought_past *past = &history->brought[i];

        bytes_put_rows(bytes, BYTES_ROWS(brought_rows), past);
        bytes_put_text(bytes, past->source);
        bytes_put_text(bytes, past->revision);
        bytes_put_text(bytes, past->gpu_model);
    }
}

static void texts_of(struct job_row *row, const char **texts[ROW_TEXTS])
{
    texts[0] = &row->trial.user;
    texts[1] = &row->trial.account;
    texts[2] = &row->trial.host;
    texts[3] = &row->trial.gpus;
    texts[4] = &row->trial.cause;
}

/* Trials of one user and machine follow each other: a text that stays is not repeated. */
static void put_row(const struct job_row *row, const struct job_row *before, struct buffer *bytes)
{
    struct job_row own = *row, other = before != NULL ? *before : (struct job_row){.running = false};
    const char **texts[ROW_TEXTS], **others[ROW_TEXTS];
    uint64_t bits = 0;

    texts_of(&own, texts);
    texts_of(&other, others);
    for (size_t i = 0; i < ROW_TEXTS; i++)
        bits |= (uint64_t)(strcmp(*texts[i], *others[i] != NULL ? *others[i] : "") != 0) << i;
    bytes_put_rows(bytes, BYTES_ROWS(row_rows), row);
    bytes_put_u64(bytes, bits);
    for (size_t i = 0; i < ROW_TEXTS; i++) {
        if ((bits >> i & 1) != 0)
            bytes_put_text(bytes, *texts[i]);
    }
}

void digest_put_rows(const struct job_row *rows, size_t count, struct buffer *bytes)
{
    for (size_t i = 0; i < count; i++)
        put_row(&rows[i], i > 0 ? &rows[i - 1] : NULL, bytes);
}

/* ---- reading ---- */

struct loading {
    struct bytes_reader bytes;
    struct arena *arena;
    char *text;   /* of TEXT_MOST bytes */
    bool memory;  /* it was exhausted */
    bool unknown; /* a value that no history has */
};

static const char *get_text(struct loading *loading)
{
    const char *copied;

    bytes_text(&loading->bytes, loading->text, TEXT_MOST);
    if (loading->bytes.failed || loading->text[0] == '\0')
        return "";
    copied = arena_strdup(loading->arena, loading->text);
    loading->memory |= copied == NULL;
    return copied != NULL ? copied : "";
}

static struct digest_mark get_mark(struct loading *loading)
{
    char version[sizeof DIGEST_VERSION];
    struct digest_mark mark = {0};

    bytes_text(&loading->bytes, version, sizeof version);
    loading->unknown |= loading->bytes.failed || strcmp(version, DIGEST_VERSION) != 0;
    bytes_rows(&loading->bytes, BYTES_ROWS(mark_rows), &mark);
    return loading->bytes.failed || loading->unknown ? (struct digest_mark){0} : mark;
}

struct digest_mark digest_mark_of(const void *head, size_t length)
{
    struct loading loading = {.bytes = bytes_reader(head, length)};

    return get_mark(&loading);
}

static void get_head(struct loading *loading, struct job_history *history, struct brought_list *brought)
{
    bytes_rows(&loading->bytes, BYTES_ROWS(head_rows), history);
    history->policy = get_text(loading);
    for (size_t i = 0; i < history->machine_count; i++) {
        bytes_rows(&loading->bytes, BYTES_ROWS(machine_rows), &history->machines[i]);
        history->machines[i].size = sizeof history->machines[i];
        history->machines[i].gpu_model = get_text(loading);
    }
    for (size_t i = 0; i < history->brought_count && !loading->bytes.failed && !loading->memory; i++) {
        struct job_brought_past past;

        bytes_rows(&loading->bytes, BYTES_ROWS(brought_rows), &past);
        past.source = get_text(loading);
        past.revision = get_text(loading);
        past.gpu_model = get_text(loading);
        loading->memory |= brought_list_put(brought, &past, loading->arena) < 0;
    }
}

static void get_row(struct loading *loading, const struct job_row *before, struct job_row *out_row)
{
    struct job_row row = {.trial = {.user = "", .account = "", .host = "", .gpus = "", .cause = ""}};
    const char **texts[ROW_TEXTS];
    uint64_t bits;

    if (before != NULL)
        row = *before;
    bytes_rows(&loading->bytes, BYTES_ROWS(row_rows), &row);
    bits = bytes_up_to(&loading->bytes, (1 << ROW_TEXTS) - 1);
    texts_of(&row, texts);
    for (size_t i = 0; i < ROW_TEXTS; i++) {
        if ((bits >> i & 1) != 0)
            *texts[i] = get_text(loading);
    }
    *out_row = row;
}

/* In each block, as it was written by itself, the first row has all of its texts. */
static void get_rows(struct loading *loading, uint64_t first, size_t count, struct job_row *rows)
{
    for (size_t i = 0; i < count && !loading->bytes.failed && !loading->memory; i++) {
        bool begins = i == 0 || (first + i - 1) % DIGEST_TRIALS == 0;

        get_row(loading, begins ? NULL : &rows[i - 1], &rows[i]);
        rows[i].trial.trial = first + i;
    }
}

static int end_loading(struct loading *loading, struct fly_error *out_error)
{
    free(loading->text);
    if (loading->memory)
        return error_no_memory(out_error);
    return bytes_whole(&loading->bytes) && !loading->unknown;
}

int digest_read(const void *data, size_t length, struct arena *arena, struct job_history *history,
                struct brought_list *brought, struct digest *out_digest, struct fly_error *out_error)
{
    struct loading loading = {.bytes = bytes_reader(data, length), .arena = arena, .text = malloc(TEXT_MOST)};
    struct digest digest = {0};

    if (loading.text == NULL)
        return error_no_memory(out_error);
    digest.first = bytes_u64(&loading.bytes);
    digest.mark = get_mark(&loading);
    if (digest.mark.number == 0 || digest.first == 0 || digest.first > digest.mark.trials + 1) {
        free(loading.text);
        return 0;
    }
    get_head(&loading, history, brought);
    digest.count = (size_t)(digest.mark.trials + 1 - digest.first);
    loading.bytes.failed |= digest.count > loading.bytes.left; /* as no row is so small */
    if (loading.bytes.failed)
        digest.count = 0;
    digest.rows = arena_alloc(arena, digest.count + 1, sizeof digest.rows[0]);
    if (digest.rows == NULL) {
        loading.memory = true;
        digest.count = 0;
    }
    get_rows(&loading, digest.first, digest.count, digest.rows);
    for (size_t i = 0; i < digest.count && !loading.bytes.failed && !loading.memory; i++)
        loading.unknown |= digest.rows[i].machine >= history->machine_count;
    *out_digest = digest;
    return end_loading(&loading, out_error);
}

int digest_read_rows(const void *data, size_t length, uint64_t first, size_t count, struct arena *arena,
                     struct job_row *rows, struct fly_error *out_error)
{
    struct loading loading = {.bytes = bytes_reader(data, length), .arena = arena, .text = malloc(TEXT_MOST)};

    if (loading.text == NULL)
        return error_no_memory(out_error);
    get_rows(&loading, first, count, rows);
    return end_loading(&loading, out_error);
}
