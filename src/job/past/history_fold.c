/* SPDX-License-Identifier: Apache-2.0 */
/* Folds the events of a log to rows, on top of what a digest tells of the earlier ones. */
#include "job/past/history_fold.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>

#include "base/array.h"
#include "base/bytes.h"
#include "job/core/definition.h"
#include "job/core/grid_amount.h"
#include "job/core/job_owner.h"
#include "job/core/job_words.h"
#include "job/core/trial_past.h"

/* ---- as bytes ---- */

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

enum { TRIALS_MAX = 10000000, LOG_CHANGED = 1 };

/* The log while it becomes rows. */
struct reading {
    struct arena *arena;
    struct job_history *history;
    struct brought_list brought;
    struct digest digest;    /* what was known before */
    struct digest_mark mark; /* of the last event */
    bool *told;              /* owned; trials of the digest of which an event came since; index: number - 1 */
    struct trial_past *pasts; /* owned; of the trials after those of the digest */
    size_t count, capacity;
    uint64_t *froze; /* owned; trials of the digest that ended or were closed since, in that order */
    size_t froze_count, froze_capacity;
    bool begun; /* the digest's own last event was found again */
};

static void reading_deinit(struct reading *reading)
{
    for (size_t i = 0; i < reading->count; i++)
        trial_past_deinit(&reading->pasts[i]);
    free(reading->pasts);
    free(reading->told);
    free(reading->froze);
}

/* The newest trial so far. */
static uint64_t newest(const struct reading *reading)
{
    return reading->digest.mark.trials + reading->count;
}

static int on_defined(void *fold, const struct log_event *at)
{
    struct reading *reading = fold;
    int code = definition_from_json(at->body, reading->arena, &reading->history->definition, at->error);

    if (code < 0)
        return code;
    if (reading->digest.mark.number > 0) /* which knows them */
        return 0;
    reading->history->objective = reading->history->definition.objective;
    reading->history->policy = reading->history->definition.policy;
    return 0;
}

static bool same_objective(const struct fly_objective *one, const struct fly_objective *other)
{
    return one->kind == other->kind && objective_eta(one) == objective_eta(other) &&
           one->max_slowdown == other->max_slowdown;
}

/* Setting a value to what it was is no change. */
static int on_set(void *fold, const struct log_event *at, const struct job_setting *setting)
{
    struct reading *reading = fold;
    struct job_history *history = reading->history;
    bool changed = setting->set_objective && !same_objective(&setting->objective, &history->objective);

    if (setting->set_objective)
        history->objective = setting->objective;
    if (setting->set_pin) {
        changed |= setting->pin_batch_size != history->pin_batch_size ||
                   (setting->pin_batch_size > 0 && setting->pin_limit_w != history->pin_limit_w &&
                    !(isnan(setting->pin_limit_w) && isnan(history->pin_limit_w)));
        history->pin_batch_size = setting->pin_batch_size;
        history->pin_limit_w = setting->pin_limit_w;
    }
    if (setting->policy != NULL && setting->policy[0] != '\0')
        history->policy = arena_strdup(reading->arena, setting->policy);
    if (history->policy == NULL)
        return error_no_memory(at->error);
    if (changed) {
        history->wanted_us = at->event->time_us;
        history->wanted_from = newest(reading) + 1;
    }
    return 0;
}

/* The first trial on a kind of hardware describes it. */
static void describe_machine(struct reading *reading, const struct job_hardware *hardware)
{
    struct job_history *history = reading->history;
    struct fly_job_hardware *machine = &history->machines[history->machine_count++];
    size_t limits = hardware->limit_count;

    *machine = (struct fly_job_hardware){
        .size = sizeof *machine,
        .gpu_model = arena_strdup(reading->arena, hardware->gpu_model),
        .gpu_count = hardware->gpu_count,
        .world_size = hardware->world_size,
        .gpu_memory_bytes = hardware->gpu_memory_bytes,
        .highest_limit_w = limits > 0 ? hardware->limits_w[limits - 1] : NAN,
    };
    machine->max_power_w =
        hardware->max_power_w > 0.0 ? hardware->max_power_w : machine->highest_limit_w * hardware->gpu_count;
}

static int on_proposed(void *fold, const struct log_event *at, const struct proposed_record *proposed)
{
    struct reading *reading = fold;
    const struct job_history *history = reading->history;

    if (proposed->new_line && history->machine_count < JOB_HARDWARE_MAX)
        describe_machine(reading, &proposed->hardware);
    return proposed->line < history->machine_count
               ? 0
               : error_set(at->error, FLY_EDATA, "a trial runs on hardware that is not described");
}

static int on_brought(void *fold, const struct log_event *at, const struct brought_record *brought)
{
    struct reading *reading = fold;
    struct arena *arena = reading->arena;
    struct job_brought_past past = {
        .kind = brought->kind,
        .before = newest(reading) + 1,
        .time_us = at->event->time_us,
        .source = arena_strdup(arena, brought->source),
        .revision = arena_strdup(arena, brought->revision),
        .gpu_model = arena_strdup(arena, brought->of_line ? brought->hardware.gpu_model : ""),
        .batch_count = brought->count};

    for (size_t i = 0; i < brought->count; i++)
        past.runs += brought->batches[i].reached + brought->batches[i].stopped;
    return past.source == NULL || past.revision == NULL || past.gpu_model == NULL ||
                   brought_list_put(&reading->brought, &past, arena) < 0
               ? error_no_memory(at->error)
               : 0;
}

/* Finds the place of a trial, NULL for one of the digest; trials begin in the order of their numbers. */
static int place(struct reading *reading, uint64_t trial, struct trial_past **out_past,
                 struct fly_error *out_error)
{
    uint64_t known = reading->digest.mark.trials;
    struct trial_past *pasts;

    if (trial > newest(reading) + 1 || trial > TRIALS_MAX)
        return error_set(out_error, FLY_EDATA, "trial %" PRIu64 " comes after trial %" PRIu64, trial,
                         newest(reading));
    if (trial <= known) {
        *out_past = NULL;
        reading->told[trial - 1] = true;
        return 0;
    }
    pasts = array_grow(reading->pasts, reading->count, &reading->capacity, sizeof pasts[0]);
    if (pasts == NULL)
        return error_no_memory(out_error);
    if (trial == newest(reading) + 1)
        pasts[reading->count++] = trial_past_empty;
    reading->pasts = pasts;
    *out_past = &pasts[trial - known - 1];
    return 0;
}

/* Notes the figure of the grid that an end froze; of a trial of the digest it is known when that is read. */
static int note_frozen(struct reading *reading, uint64_t trial, const struct trial_past *past,
                       struct fly_error *out_error)
{
    uint64_t *froze;

    if (past != NULL && !isnan(past->run_reference_per_kwh)) {
        reading->history->reference_per_kwh = past->run_reference_per_kwh;
        reading->froze_count = 0;
    }
    if (past != NULL)
        return 0;
    froze = array_grow(reading->froze, reading->froze_count, &reading->froze_capacity, sizeof froze[0]);
    if (froze == NULL)
        return error_no_memory(out_error);
    froze[reading->froze_count++] = trial;
    reading->froze = froze;
    return 0;
}

/* The first event that is read is the digest's last: with another time it is of another log. */
static int recognize(struct reading *reading, const struct store_event *event)
{
    const struct digest_mark *mark = &reading->digest.mark;

    reading->begun = event->number == mark->number && event->time_us == mark->time_us;
    return reading->begun ? 0 : LOG_CHANGED;
}

static int read_event(void *context, const struct store_event *event, struct fly_error *out_error)
{
    static const struct log_visitor job = {
        .on_defined = on_defined, .on_set = on_set, .on_proposed = on_proposed, .on_brought = on_brought};
    struct reading *reading = context;
    enum record_kind kind = record_kind_parse(event->kind);
    struct trial_past *past = NULL;
    int code;

    if (reading->digest.mark.number > 0 && !reading->begun)
        return recognize(reading, event);
    code = log_tell(&job, reading, event, NULL, out_error);
    reading->mark = (struct digest_mark){.number = event->number, .time_us = event->time_us};
    if (code < 0 || event->trial == 0)
        return code;
    code = place(reading, event->trial, &past, out_error);
    if (code == 0 && past != NULL)
        code = trial_past_visit(past, event, out_error);
    if (code == 0 && (kind == RECORD_ENDED || kind == RECORD_CLOSED))
        code = note_frozen(reading, event->trial, past, out_error);
    return code;
}

/* ---- rows ---- */

static const char *copy(struct reading *reading, const char *text, bool *fits)
{
    const char *copied = text != NULL && text[0] != '\0' ? arena_strdup(reading->arena, text) : "";

    *fits &= copied != NULL;
    return copied != NULL ? copied : "";
}

static struct job_row make_row(struct reading *reading, uint64_t trial, const struct trial_past *past,
                               bool *fits)
{
    bool over = past->ended || past->silent;
    double known_j =
               past->past_energy_j + (over ? trial_told_j(past->energy_j, past->time_s) : past->energy_j),
           known_s = past->past_time_s + past->time_s;
    char user[JOB_USER_MAX];
    struct job_row row = {
        .trial = {.size = sizeof row.trial,
                  .trial = trial,
                  .attempts = past->attempt,
                  .recurrence = past->record.recurrence,
                  .try_number = past->record.try_number,
                  .late = past->expired && past->ended,
                  .batch_size = past->record.batch_size,
                  .limit_w = past->limit_w,
                  .profiled = past->record.wants_profile && (past->profiled || past->parted),
                  .epochs = past->ended ? past->how.epochs : past->epochs_done,
                  .metric = trial_past_metric(past, &reading->history->definition),
                  .energy_j = past->ended ? past->how.energy_j : known_j,
                  .time_s = past->ended ? past->how.time_s : known_s,
                  .user =
                      copy(reading, past->attempt > 0 ? job_user_told(past->origin.user, user) : "", fits),
                  .account = copy(reading, past->origin.account, fits),
                  .host = copy(reading, past->origin.host, fits),
                  .gpus = copy(reading, past->origin.gpus, fits),
                  .cause = copy(reading, past->how.text, fits)},
        .running = !over,
        .nothing_learnt = past->ended && past->how.nothing_learnt,
        .outcome = past->how.outcome,
        .stop = past->how.stop,
        .reason = past->record.reason,
        .machine = past->record.line,
        .left_alone = past->record.wants_profile && !past->profiled && !past->parted,
        .whole_profile = past->profiled,
        .startup_energy_j =
            past->ended ? past->how.startup_energy_j : past->past_startup_energy_j + past->startup_energy_j,
        .startup_time_s =
            past->ended ? past->how.startup_time_s : past->past_startup_time_s + past->startup_time_s,
        .proposed_us = past->proposed_us,
        .ended_us = over ? past->ended_us : 0,
    };

    row.trial.whole_energy_j = past->closed ? past->run_energy_j : fmax(row.trial.energy_j, known_j);
    row.trial.whole_time_s = past->closed ? past->run_time_s : fmax(row.trial.time_s, known_s);
    row.reference_per_kwh = over ? past->run_reference_per_kwh : past->reference_per_kwh;
    return row;
}

/* What follows from the row, the revisions and what is wanted now. */
static void finish_row(const struct job_history *history, double eta, struct job_row *row)
{
    const struct job_brought_past *revision = job_history_revision(history, row->revision);
    struct fly_job_trial *trial = &row->trial;

    if (job_row_is_untold(row))
        trial->energy_j = trial->time_s = trial->whole_energy_j = trial->whole_time_s = NAN;
    row->grid_amount = job_grid_amount(trial->energy_j, row->reference_per_kwh);
    trial->size = sizeof *trial;
    trial->carbon_g = job_counts_money(&history->definition) ? NAN : row->grid_amount;
    trial->money = job_counts_money(&history->definition) ? row->grid_amount : NAN;
    trial->cost_j = eta == 1.0 ? trial->energy_j
                               : fly_cost(eta, history->machines[row->machine].max_power_w, trial->energy_j,
                                          trial->time_s);
    trial->reason = job_reason_name(row->reason);
    trial->outcome = job_row_outcome(row);
    trial->stop = job_stop_name(row->stop);
    trial->begun_unix_s = job_unix_s(row->proposed_us);
    trial->ended_unix_s = job_unix_s(row->ended_us);
    trial->hardware = row->machine + 1;
    trial->revision = revision != NULL ? revision->revision : "";
    row->run_grid_amount = job_grid_amount(trial->whole_energy_j, row->reference_per_kwh);
}

static void finish_rows(struct job_history *history)
{
    double eta = objective_eta(&history->objective);
    size_t revision = 0;

    for (size_t i = 0; i < history->count; i++) {
        const struct job_brought_past *began;

        while ((began = job_history_revision(history, revision + 1)) != NULL &&
               began->before <= history->rows[i].trial.trial)
            revision++;
        history->rows[i].revision = revision;
        finish_row(history, eta, &history->rows[i]);
    }
}

static int add_row(struct reading *reading, uint64_t trial, const struct trial_past *past,
                   struct job_row *out_row, struct fly_error *out_error)
{
    bool fits = true;

    if (past->proposed == NULL || past->record.recurrence >= trial ||
        past->record.line >= reading->history->machine_count)
        return error_set(out_error, FLY_EDATA,
                         "trial %" PRIu64 " was never proposed, or its recurrence never began", trial);
    *out_row = make_row(reading, trial, past, &fits);
    return fits ? 0 : error_no_memory(out_error);
}

/* Reads a trial of the digest anew, from its own events. */
static int read_again(struct reading *reading, const struct history_source *source, uint64_t trial,
                      struct told_again *out_told, struct fly_error *out_error)
{
    const struct store_query query = {.trial = trial};
    struct trial_past past = trial_past_empty;
    int code = source->read(source->self, source->job, &query, trial_past_visit, &past, out_error);

    if (code == 0)
        code = add_row(reading, trial, &past, &out_told->row, out_error);
    out_told->reference_per_kwh = past.run_reference_per_kwh;
    trial_past_deinit(&past);
    return code;
}

static int by_trial(const void *left, const void *right)
{
    uint64_t a = ((const struct told_again *)left)->row.trial.trial,
             b = ((const struct told_again *)right)->row.trial.trial;

    return (a > b) - (a < b);
}

/* The figure that was frozen last, if a trial of the digest did that. */
static void settle_reference(const struct reading *reading, const struct history_fold *fold)
{
    for (size_t i = reading->froze_count; i-- > 0;) {
        const struct told_again key = {.row = {.trial = {.trial = reading->froze[i]}}};
        const struct told_again *told = bsearch(&key, fold->again, fold->again_count, sizeof key, by_trial);

        if (told == NULL || isnan(told->reference_per_kwh))
            continue;
        reading->history->reference_per_kwh = told->reference_per_kwh;
        return;
    }
}

/* Reads anew what the digest knew, and of which something came since. */
static int make_again(struct reading *reading, const struct history_source *source, struct history_fold *fold,
                      struct fly_error *out_error)
{
    const struct digest *digest = &reading->digest;
    size_t count = 0;
    int code = 0;

    for (uint64_t i = 0; i < digest->mark.trials; i++)
        count += reading->told[i];
    fold->again = arena_alloc(reading->arena, count + 1, sizeof fold->again[0]);
    if (fold->again == NULL)
        return error_no_memory(out_error);
    for (uint64_t i = 0; i < digest->mark.trials && code == 0; i++) {
        struct told_again *told = &fold->again[fold->again_count];

        if (!reading->told[i])
            continue;
        code = read_again(reading, source, i + 1, told, out_error);
        fold->again_count++;
        if (code == 0 && i + 1 >= digest->first)
            digest->rows[i + 1 - digest->first] = told->row;
    }
    if (code == 0)
        settle_reference(reading, fold);
    return code;
}

/* The rows of the digest, and after them the new ones. */
static int make_rows(struct reading *reading, struct fly_error *out_error)
{
    const struct digest *digest = &reading->digest;
    struct job_history *history = reading->history;
    int code = 0;

    history->rows = arena_alloc(reading->arena, digest->count + reading->count + 1, sizeof history->rows[0]);
    if (history->rows == NULL)
        return error_no_memory(out_error);
    if (digest->count > 0)
        memcpy(history->rows, digest->rows, digest->count * sizeof history->rows[0]);
    history->count = digest->count;
    for (size_t i = 0; i < reading->count && code == 0; i++)
        code = add_row(reading, digest->mark.trials + 1 + i, &reading->pasts[i],
                       &history->rows[history->count++], out_error);
    return code;
}

/* Begins with what the digest tells. */
static int begin(struct reading *reading, const struct history_digest *digest, struct fly_error *out_error)
{
    const struct job_history empty = *reading->history;
    int code = digest->length > 0
                   ? digest_read(digest->bytes, digest->length, reading->arena, reading->history,
                                 &reading->brought, &reading->digest, out_error)
                   : 0;

    if (code <= 0) {
        *reading->history = empty;
        reading->digest = (struct digest){0};
        reading->brought = (struct brought_list){0};
        return code;
    }
    reading->told = calloc((size_t)reading->digest.mark.trials + 1, sizeof reading->told[0]);
    return reading->told != NULL ? 0 : error_no_memory(out_error);
}

static int read_all(struct reading *reading, const struct history_source *source, struct history_fold *fold,
                    struct fly_error *out_error)
{
    static const struct store_query definition = {.limit = 1};
    struct digest *digest = &reading->digest;
    struct store_query query = {.after = digest->mark.number > 0 ? digest->mark.number - 1 : 0,
                                .limit = source->limit > 0 ? source->limit + 1 : 0};
    int code = 0;

    if (digest->mark.number > 0) {
        reading->begun = true;
        code = source->read(source->self, source->job, &definition, read_event, reading, out_error);
        reading->begun = false;
        reading->mark = digest->mark;
    }
    if (code == 0)
        code = source->read(source->self, source->job, &query, read_event, reading, out_error);
    if (code == 0 && digest->mark.number > 0 && !reading->begun)
        code = LOG_CHANGED;
    if (code == 0)
        code = make_again(reading, source, fold, out_error);
    return code == 0 ? make_rows(reading, out_error) : code;
}

static int fold_once(const struct history_source *source, const struct history_digest *digest,
                     struct arena *arena, struct history_fold *out_fold, struct fly_error *out_error)
{
    struct history_fold fold = {
        .history = {.pin_limit_w = NAN,
                    .reference_per_kwh = NAN,
                    .machines = arena_alloc(arena, JOB_HARDWARE_MAX, sizeof fold.history.machines[0])}};
    struct reading reading = {.arena = arena, .history = &fold.history};
    int code =
        fold.history.machines != NULL ? begin(&reading, digest, out_error) : error_no_memory(out_error);

    if (code == 0)
        code = read_all(&reading, source, &fold, out_error);
    fold.history.brought = reading.brought.items;
    fold.history.brought_count = reading.brought.count;
    fold.history.revision = reading.brought.revisions;
    fold.known = reading.digest.mark.trials;
    fold.mark = reading.mark;
    fold.mark.trials = newest(&reading);
    reading_deinit(&reading);
    if (code == 0) {
        finish_rows(&fold.history);
        *out_fold = fold;
    }
    return code;
}

int history_fold(const struct history_source *source, const struct history_digest *digest,
                 struct arena *arena, struct history_fold *out_fold, struct fly_error *out_error)
{
    static const struct history_digest none = {NULL, 0};
    int code = fold_once(source, digest, arena, out_fold, out_error);

    return code == LOG_CHANGED ? fold_once(source, &none, arena, out_fold, out_error) : code;
}

int job_history_read_newest(const struct jobs *jobs, const char *job, uint64_t trials, struct arena *arena,
                            struct job_history *out_history, struct fly_error *out_error)
{
    const struct history_source source = {jobs->backend->read, jobs->self, job, 0};
    struct history_fold fold;
    struct buffer bytes;
    int code;

    buffer_init(&bytes, DIGEST_BYTES_MAX);
    if (jobs->backend->digest != NULL && jobs->backend->digest(jobs->self, job, trials, &bytes, NULL) < 0)
        buffer_clear(&bytes);
    code = history_fold(&source, &(struct history_digest){bytes.data, bytes.length}, arena, &fold, out_error);
    buffer_deinit(&bytes);
    if (code < 0)
        return code;
    if (trials > 0 && fold.history.count > trials) {
        fold.history.rows += fold.history.count - trials;
        fold.history.count = (size_t)trials;
    }
    *out_history = fold.history;
    return 0;
}

int job_history_read(const struct jobs *jobs, const char *job, struct arena *arena,
                     struct job_history *out_history, struct fly_error *out_error)
{
    return job_history_read_newest(jobs, job, 0, arena, out_history, out_error);
}
