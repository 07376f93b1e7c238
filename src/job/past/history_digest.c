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

/* The truths of a row, and which of its texts differ from those of the row before, as bits. */
enum {
    ROW_RUNNING = 1 << 0,
    ROW_LATE = 1 << 1,
    ROW_NOTHING_LEARNT = 1 << 2,
    ROW_PROFILED = 1 << 3,
    ROW_LEFT_ALONE = 1 << 4,
    ROW_WHOLE_PROFILE = 1 << 5,
    ROW_TEXT = 1 << 6, /* of the first text; the next bits are those of the others */
    ROW_BITS = ROW_TEXT << ROW_TEXTS,
};

/* ---- writing ---- */

static void put_i64(struct buffer *bytes, int64_t value)
{
    bytes_put_u64(bytes, (uint64_t)value);
}

static void put_machine(const struct job_machine *machine, struct buffer *bytes)
{
    bytes_put_text(bytes, machine->gpu_model);
    bytes_put_u64(bytes, machine->gpu_count);
    bytes_put_u64(bytes, machine->world_size);
    bytes_put_u64(bytes, machine->gpu_memory_bytes);
    bytes_put_double(bytes, machine->max_power_w);
    bytes_put_double(bytes, machine->highest_limit_w);
}

static void put_brought(const struct job_brought_past *past, struct buffer *bytes)
{
    bytes_put_u64(bytes, past->kind);
    bytes_put_u64(bytes, past->before);
    put_i64(bytes, past->time_us);
    bytes_put_text(bytes, past->source);
    bytes_put_text(bytes, past->revision);
    bytes_put_text(bytes, past->gpu_model);
    bytes_put_u64(bytes, past->runs);
    bytes_put_u64(bytes, past->batch_count);
}

void digest_put_head(const struct digest_mark *mark, const struct job_history *history, struct buffer *bytes)
{
    bytes_put_text(bytes, DIGEST_VERSION);
    bytes_put_u64(bytes, mark->number);
    put_i64(bytes, mark->time_us);
    bytes_put_u64(bytes, mark->trials);
    bytes_put_u64(bytes, history->objective.kind);
    bytes_put_double(bytes, history->objective.eta);
    bytes_put_double(bytes, history->objective.max_slowdown);
    bytes_put_text(bytes, history->policy);
    bytes_put_u64(bytes, history->pin_batch_size);
    bytes_put_double(bytes, history->pin_limit_w);
    put_i64(bytes, history->wanted_us);
    bytes_put_u64(bytes, history->wanted_from);
    bytes_put_double(bytes, history->reference_per_kwh);
    bytes_put_u64(bytes, history->machine_count);
    for (size_t i = 0; i < history->machine_count; i++)
        put_machine(&history->machines[i], bytes);
    bytes_put_u64(bytes, history->brought_count);
    for (size_t i = 0; i < history->brought_count; i++)
        put_brought(&history->brought[i], bytes);
}

static void texts_of(struct job_row *row, const char **texts[ROW_TEXTS])
{
    texts[0] = &row->user;
    texts[1] = &row->account;
    texts[2] = &row->host;
    texts[3] = &row->gpus;
    texts[4] = &row->text;
}

static uint64_t bits_of(const struct job_row *row)
{
    return (row->running ? ROW_RUNNING : 0) | (row->late ? ROW_LATE : 0) |
           (row->nothing_learnt ? ROW_NOTHING_LEARNT : 0) | (row->profiled ? ROW_PROFILED : 0) |
           (row->left_alone ? ROW_LEFT_ALONE : 0) | (row->whole_profile ? ROW_WHOLE_PROFILE : 0);
}

/* Trials of one user and machine follow each other: a text that stays is not repeated. */
static void put_row(const struct job_row *row, const struct job_row *before, struct buffer *bytes)
{
    struct job_row own = *row, other = before != NULL ? *before : (struct job_row){.user = ""};
    const char **texts[ROW_TEXTS], **others[ROW_TEXTS];
    uint64_t bits = bits_of(row);

    texts_of(&own, texts);
    texts_of(&other, others);
    for (size_t i = 0; i < ROW_TEXTS; i++) {
        if (strcmp(*texts[i], *others[i] != NULL ? *others[i] : "") != 0)
            bits |= (uint64_t)ROW_TEXT << i;
    }
    bytes_put_u64(bytes, bits);
    bytes_put_u64(bytes, row->attempts);
    bytes_put_u64(bytes, row->recurrence);
    bytes_put_u64(bytes, row->try_number);
    bytes_put_u64(bytes, row->outcome);
    bytes_put_u64(bytes, row->stop);
    bytes_put_u64(bytes, row->reason);
    bytes_put_u64(bytes, row->machine);
    bytes_put_u64(bytes, row->batch_size);
    bytes_put_double(bytes, row->limit_w);
    bytes_put_u64(bytes, row->epochs);
    bytes_put_double(bytes, row->metric);
    bytes_put_double(bytes, row->energy_j);
    bytes_put_double(bytes, row->time_s);
    bytes_put_double(bytes, row->startup_energy_j);
    bytes_put_double(bytes, row->startup_time_s);
    bytes_put_double(bytes, row->run_energy_j);
    bytes_put_double(bytes, row->run_time_s);
    bytes_put_double(bytes, row->reference_per_kwh);
    put_i64(bytes, row->proposed_us);
    put_i64(bytes, row->ended_us);
    for (size_t i = 0; i < ROW_TEXTS; i++) {
        if ((bits & (uint64_t)ROW_TEXT << i) != 0)
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

static uint32_t get_u32(struct loading *loading)
{
    return (uint32_t)bytes_up_to(&loading->bytes, UINT32_MAX);
}

static int64_t get_i64(struct loading *loading)
{
    return (int64_t)bytes_u64(&loading->bytes);
}

static struct digest_mark get_mark(struct loading *loading)
{
    char version[sizeof DIGEST_VERSION];
    struct digest_mark mark = {0};

    bytes_text(&loading->bytes, version, sizeof version);
    loading->unknown |= loading->bytes.failed || strcmp(version, DIGEST_VERSION) != 0;
    mark.number = bytes_u64(&loading->bytes);
    mark.time_us = get_i64(loading);
    mark.trials = bytes_up_to(&loading->bytes, TRIALS_MOST);
    if (loading->bytes.failed || loading->unknown)
        memset(&mark, 0, sizeof mark);
    return mark;
}

struct digest_mark digest_mark_of(const void *head, size_t length)
{
    struct loading loading = {.bytes = bytes_reader(head, length)};

    return get_mark(&loading);
}

static void get_machine(struct loading *loading, struct job_machine *machine)
{
    machine->gpu_model = get_text(loading);
    machine->gpu_count = get_u32(loading);
    machine->world_size = get_u32(loading);
    machine->gpu_memory_bytes = bytes_u64(&loading->bytes);
    machine->max_power_w = bytes_double(&loading->bytes);
    machine->highest_limit_w = bytes_double(&loading->bytes);
}

static struct job_brought_past get_brought(struct loading *loading)
{
    struct job_brought_past past = {.kind = (enum past_kind)bytes_up_to(&loading->bytes, PAST_KINDS - 1)};

    past.before = bytes_u64(&loading->bytes);
    past.time_us = get_i64(loading);
    past.source = get_text(loading);
    past.revision = get_text(loading);
    past.gpu_model = get_text(loading);
    past.runs = bytes_u64(&loading->bytes);
    past.batch_count = (size_t)bytes_u64(&loading->bytes);
    return past;
}

static void get_head(struct loading *loading, struct job_history *history, struct brought_list *brought)
{
    size_t count;

    history->objective.kind = (enum fly_objective_kind)bytes_up_to(&loading->bytes, FLY_OBJECTIVE_MONEY);
    history->objective.eta = bytes_double(&loading->bytes);
    history->objective.max_slowdown = bytes_double(&loading->bytes);
    history->policy = get_text(loading);
    history->pin_batch_size = get_u32(loading);
    history->pin_limit_w = bytes_double(&loading->bytes);
    history->wanted_us = get_i64(loading);
    history->wanted_from = bytes_u64(&loading->bytes);
    history->reference_per_kwh = bytes_double(&loading->bytes);
    history->machine_count = (size_t)bytes_up_to(&loading->bytes, JOB_HARDWARE_MAX);
    for (size_t i = 0; i < history->machine_count; i++)
        get_machine(loading, &history->machines[i]);
    count = (size_t)bytes_up_to(&loading->bytes, TRIALS_MOST);
    for (size_t i = 0; i < count && !loading->bytes.failed && !loading->memory; i++) {
        const struct job_brought_past past = get_brought(loading);

        loading->memory |= brought_list_put(brought, &past, loading->arena) < 0;
    }
}

static void get_row(struct loading *loading, const struct job_row *before, struct job_row *out_row)
{
    struct bytes_reader *bytes = &loading->bytes;
    uint64_t bits = bytes_up_to(bytes, ROW_BITS - 1);
    struct job_row row = {
        .running = (bits & ROW_RUNNING) != 0,
        .late = (bits & ROW_LATE) != 0,
        .nothing_learnt = (bits & ROW_NOTHING_LEARNT) != 0,
        .profiled = (bits & ROW_PROFILED) != 0,
        .left_alone = (bits & ROW_LEFT_ALONE) != 0,
        .whole_profile = (bits & ROW_WHOLE_PROFILE) != 0,
        .user = before != NULL ? before->user : "",
        .account = before != NULL ? before->account : "",
        .host = before != NULL ? before->host : "",
        .gpus = before != NULL ? before->gpus : "",
        .text = before != NULL ? before->text : "",
    };
    const char **texts[ROW_TEXTS];

    row.attempts = get_u32(loading);
    row.recurrence = bytes_u64(bytes);
    row.try_number = get_u32(loading);
    row.outcome = (enum trial_outcome)bytes_up_to(bytes, TRIAL_OUTCOME_COUNT - 1);
    row.stop = (enum job_stop)bytes_up_to(bytes, JOB_STOP_ENDED);
    row.reason = (enum reason)bytes_up_to(bytes, REASON_COUNT - 1);
    row.machine = (size_t)bytes_up_to(bytes, JOB_HARDWARE_MAX - 1);
    row.batch_size = get_u32(loading);
    row.limit_w = bytes_double(bytes);
    row.epochs = get_u32(loading);
    row.metric = bytes_double(bytes);
    row.energy_j = bytes_double(bytes);
    row.time_s = bytes_double(bytes);
    row.startup_energy_j = bytes_double(bytes);
    row.startup_time_s = bytes_double(bytes);
    row.run_energy_j = bytes_double(bytes);
    row.run_time_s = bytes_double(bytes);
    row.reference_per_kwh = bytes_double(bytes);
    row.proposed_us = get_i64(loading);
    row.ended_us = get_i64(loading);
    texts_of(&row, texts);
    for (size_t i = 0; i < ROW_TEXTS; i++) {
        if ((bits & (uint64_t)ROW_TEXT << i) != 0)
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
        rows[i].trial = first + i;
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
