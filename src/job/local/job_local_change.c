/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/job_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/adler32.h"
#include "base/bytes.h"
#include "base/error.h"
#include "job/decide/state_fold.h"
#include "job/decide/state_snapshot.h"
#include "job/local/job_local.h"
#include "job/past/history_fold.h"

enum { SNAPSHOT_BYTES_PER_EVENT = 1024 }; /* larger states are written less often */

static const char snapshot_version[] = "job state 11";

/* ---- states that are remembered ---- */

static void state_free(struct job_state *state)
{
    if (state == NULL)
        return;
    job_state_deinit(state);
    free(state);
}

static struct job_state *state_new(void)
{
    struct job_state *state = malloc(sizeof *state);

    if (state != NULL)
        job_state_init(state);
    return state;
}

static void clear(struct local_state *kept)
{
    state_free(kept->state);
    *kept = (struct local_state){.state = NULL};
}

void local_forget(struct job_local *local, const char *job)
{
    for (size_t i = 0; i < LOCAL_STATES; i++) {
        if (strcmp(local->states[i].job, job) == 0)
            clear(&local->states[i]);
    }
}

/* The place for a job's state, with the state if it is remembered. */
static struct local_state *place_for(struct job_local *local, const char *job)
{
    struct local_state *place;

    for (size_t i = 0; i < LOCAL_STATES; i++) {
        if (strcmp(local->states[i].job, job) == 0)
            return &local->states[i];
    }
    place = &local->states[local->next];
    local->next = (local->next + 1) % LOCAL_STATES;
    clear(place);
    snprintf(place->job, sizeof place->job, "%s", job);
    return place;
}

/* ---- bringing a state up to date ---- */

/* Where events come from: a change, or the store without a lock. */
struct source {
    struct job_local *local;
    struct store_change *change; /* NULL: none */
    const char *job;
};

static int source_read(const struct source *source, const struct store_query *query, store_visit *visit,
                       void *state, struct fly_error *out_error)
{
    return source->change != NULL
               ? store_change_read(source->change, query, visit, state, out_error)
               : store_read(source->local->store, source->job, query, visit, state, out_error);
}

static int source_snapshot(const struct source *source, uint64_t *out_number, struct buffer *bytes,
                           struct fly_error *out_error)
{
    return source->change != NULL
               ? store_change_get_snapshot(source->change, snapshot_version, out_number, bytes, out_error)
               : store_get_snapshot(source->local->store, source->job, snapshot_version, out_number, bytes,
                                    out_error);
}

struct catching_up {
    struct job_local *local;
    struct job_state *state;
    bool anew;
};

static int fold_one(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct catching_up *catching_up = context;
    int code = job_state_fold(catching_up->state, event, catching_up->local->plugins, out_error);

    catching_up->local->events_read++;
    catching_up->anew = code == JOB_FOLD_ANEW;
    return code;
}

/* Folds the events after the state's last one. */
static int catch_up(const struct source *source, struct job_state *state, struct fly_error *out_error)
{
    struct catching_up catching_up = {.local = source->local, .state = state};
    int code = 0;

    do {
        const struct store_query query = {.after = state->number};

        catching_up.anew = false;
        code = source_read(source, &query, fold_one, &catching_up, out_error);
    } while (code >= 0 && catching_up.anew);
    return code < 0 ? code : 0;
}

/* When the next snapshot is due after one of that size. */
static uint64_t snapshot_due(uint64_t number, size_t bytes)
{
    size_t events = bytes / SNAPSHOT_BYTES_PER_EVENT;

    return number + (events > LOCAL_SNAPSHOT_EVERY ? events : LOCAL_SNAPSHOT_EVERY);
}

/* Loads the state from the snapshot, if there is a readable one. */
static int load_snapshot(const struct source *source, struct local_state *kept, struct fly_error *out_error)
{
    struct buffer bytes;
    uint64_t number = 0;
    int code;

    kept->state = state_new();
    if (kept->state == NULL)
        return error_no_memory(out_error);
    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    code = source_snapshot(source, &number, &bytes, out_error);
    if (code == 0 && number > 0) {
        code = job_state_load(kept->state, bytes.data, bytes.length, source->local->plugins, out_error);
        if (code == 0 && kept->state->number != number)
            code = 1;
        kept->snapshot_due = code == 0 ? snapshot_due(number, bytes.length) : 0;
        if (code == 1) {
            state_free(kept->state);
            kept->state = state_new();
            code = kept->state != NULL ? 0 : error_no_memory(out_error);
        }
    }
    buffer_deinit(&bytes);
    return code;
}

static int bring_up_to_date(const struct source *source, struct local_state *kept, uint64_t job_id,
                            uint64_t head, struct fly_error *out_error)
{
    int code = 0;

    /* Another job with that name, or a restored database. */
    if (kept->state != NULL && (kept->job_id != job_id || kept->state->number > head)) {
        state_free(kept->state);
        kept->state = NULL;
        kept->snapshot_due = kept->digest_due = 0;
    }
    kept->job_id = job_id;
    if (kept->state == NULL)
        code = load_snapshot(source, kept, out_error);
    if (code == 0 && kept->state->number < head)
        code = catch_up(source, kept->state, out_error);
    if (code < 0)
        clear(kept);
    return code;
}

static int note_job(void *context, const struct store_job *job, struct fly_error *out_error)
{
    uint64_t *facts = context;

    (void)out_error;
    facts[0] = job->id;
    facts[1] = job->events;
    return 0;
}

int local_look(struct job_local *local, const char *job, struct job_state **out_state,
               struct fly_error *out_error)
{
    const struct source source = {local, NULL, job};
    struct local_state *kept = place_for(local, job);
    uint64_t facts[2] = {0, 0};
    int code = store_find_job(local->store, job, note_job, facts, out_error);

    if (code == 0)
        code = bring_up_to_date(&source, kept, facts[0], facts[1], out_error);
    if (code == 0)
        *out_state = kept->state;
    return code;
}

/* ---- changes ---- */

int local_begin(struct job_local *local, const char *job, bool make, struct local_change *out_change,
                struct fly_error *out_error)
{
    struct local_change change = {.local = local, .job = job, .made_past = trial_past_empty};
    struct source source = {local, NULL, job};
    int code;

    if (job == NULL || job[0] == '\0' || strlen(job) > JOB_NAME_MAX)
        return error_set(out_error, FLY_ENOTFOUND, "no job '%.100s'; register it first",
                         job != NULL ? job : "");
    code = store_change_begin(local->store, job, make ? STORE_MAKE_JOB : STORE_EXISTING_JOB, &change.change,
                              out_error);
    if (code < 0)
        return code;
    source.change = change.change;
    change.kept = place_for(local, job);
    change.now_us = store_change_now_us(change.change);
    code = bring_up_to_date(&source, change.kept, store_change_job_id(change.change),
                            store_change_head(change.change), out_error);
    if (code < 0) {
        store_change_rollback(change.change);
        return code;
    }
    change.state = change.kept->state;
    change.first_head = store_change_head(change.change);
    change.first_trials = change.state->trials;
    *out_change = change;
    return 0;
}

static int put_snapshot(struct local_change *change, struct fly_error *out_error)
{
    const struct job_state *state = change->state;
    struct buffer bytes;
    int code = 0;

    if (!state->defined || !job_state_saves(state) || state->number < LOCAL_SNAPSHOT_EVERY ||
        state->number < change->kept->snapshot_due)
        return 0;
    buffer_init(&bytes, JOB_SNAPSHOT_MAX);
    job_state_save(state, &bytes);
    if (bytes.error == 0)
        code = store_change_put_snapshot(change->change, snapshot_version, state->number, bytes.data,
                                         bytes.length, out_error);
    change->kept->snapshot_due = snapshot_due(state->number, bytes.length);
    buffer_deinit(&bytes);
    return code;
}

static void count_expired(struct job_expiries *expiries, const char *gpu_model, uint64_t trials)
{
    size_t i = 0;

    while (i < expiries->count && strcmp(expiries->of[i].gpu_model, gpu_model) != 0)
        i++;
    if (i == JOB_EXPIRIES_MAX)
        i--;
    if (i == expiries->count) {
        expiries->of[i].trials = 0;
        snprintf(expiries->of[i].gpu_model, sizeof expiries->of[i].gpu_model, "%s", gpu_model);
        expiries->count++;
    }
    expiries->of[i].trials += trials;
}

void local_add_expired(struct job_local *local, const struct job_expiries *expired)
{
    for (size_t i = 0; i < expired->count; i++)
        count_expired(&local->expired, expired->of[i].gpu_model, expired->of[i].trials);
}

static void forget_made(struct local_change *change)
{
    trial_past_deinit(&change->made_past);
    change->made = 0;
}

int local_commit(struct local_change *change, struct fly_error *out_error)
{
    int code = put_snapshot(change, out_error);

    if (code == 0)
        code = local_put_digest(change, out_error);
    forget_made(change);
    if (code < 0) {
        local_rollback(change);
        return code;
    }
    code = store_change_commit(change->change, out_error);
    if (code < 0)
        clear(change->kept);
    if (code == 0)
        local_add_expired(change->local, &change->expired);
    return code;
}

void local_rollback(struct local_change *change)
{
    forget_made(change);
    store_change_rollback(change->change);
    clear(change->kept); /* it may contain what is undone now */
}

int local_finish(struct local_change *change, int code, struct fly_error *out_error)
{
    if (code >= 0)
        return local_commit(change, out_error);
    local_rollback(change);
    return code;
}

int local_catch_up(struct local_change *change, struct fly_error *out_error)
{
    const struct source source = {change->local, change->change, change->job};

    return catch_up(&source, change->state, out_error);
}

/* Notes a trial's past, which begins with its proposal. */
static int note_made(struct local_change *change, enum record_kind kind, const struct store_event *event,
                     json_t *body, struct fly_error *out_error)
{
    int code;

    if (kind == RECORD_PROPOSED) {
        forget_made(change);
        change->made = event->trial;
    }
    if (change->made == 0 || event->trial != change->made)
        return 0;
    code = trial_past_take(&change->made_past, event, body, out_error);
    return code < 0 ? code : 0;
}

int local_append_body(struct local_change *change, enum record_kind kind, uint64_t trial, const char *key,
                      json_t *body, struct fly_error *out_error)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct store_event event = {
        .kind = record_kind_name(kind), .trial = trial, .key = key, .body = text, .time_us = change->now_us};
    int code;

    if (text == NULL) {
        json_decref(body);
        return error_set(out_error, FLY_EDATA, "job '%s': a text is not UTF-8, or memory is exhausted",
                         change->job);
    }
    code = store_change_append(change->change, &event, &event.number, out_error);
    if (code == 0)
        code = note_made(change, kind, &event, body, out_error);
    if (code == 0)
        code = job_state_fold_body(change->state, &event, body, change->local->plugins, out_error);
    json_decref(body);
    if (code == JOB_FOLD_ANEW)
        code = local_catch_up(change, out_error);
    change->last =
        (struct local_mark){store_change_job_id(change->change), event.number, trial, change->now_us, kind};
    free(text);
    return code;
}

int local_append(struct local_change *change, enum record_kind kind, uint64_t trial, const char *key,
                 const void *record, struct fly_error *out_error)
{
    return local_append_body(change, kind, trial, key, record_write(kind, record), out_error);
}

struct finding {
    json_t *body;
    uint64_t trial;
};

static int note_found(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct finding *finding = context;
    int code;

    finding->trial = event->trial;
    code = record_parse(event, &finding->body, out_error);
    return code < 0 ? code : 1;
}

int local_find(struct local_change *change, const char *key, uint64_t *out_trial, json_t **out_body,
               struct fly_error *out_error)
{
    const struct store_query query = {.key = key, .limit = 1};
    struct finding finding = {0};
    int code = store_change_read(change->change, &query, note_found, &finding, out_error);

    if (code < 0 || finding.body == NULL)
        return code < 0 ? code : 0;
    if (out_trial != NULL)
        *out_trial = finding.trial;
    *out_body = finding.body;
    return 1;
}

int local_past(struct local_change *change, uint64_t trial, uint32_t until_attempt,
               struct trial_past *out_past, struct fly_error *out_error)
{
    /* A trial that this change made has no events older than the change. */
    const struct store_query query = {.trial = trial,
                                      .after = trial > change->first_trials ? change->first_head : 0};
    int code;

    if (trial != 0 && trial == change->made && until_attempt > 0 &&
        change->made_past.attempt == until_attempt) {
        *out_past = change->made_past;
        change->made_past = trial_past_empty;
        change->made = 0;
        return 0;
    }
    *out_past = trial_past_empty;
    out_past->until_attempt = until_attempt;
    if (trial == 0 || trial > change->state->trials)
        return error_set(out_error, FLY_ENOTFOUND, "job '%s' has no trial %" PRIu64, change->job, trial);
    code = store_change_read(change->change, &query, trial_past_visit, out_past, out_error);
    if (code < 0)
        trial_past_deinit(out_past);
    return code < 0 ? code : 0;
}

int local_expire(struct local_change *change, uint64_t *out_expired, struct fly_error *out_error)
{
    uint64_t expired = 0, after = 0;
    int code = 0;

    /* Trials leave the table while they expire, but stay ordered by number. */
    for (size_t i = 0; code == 0 && i < change->state->open_count; i++) {
        const struct job_trial *trial = &change->state->open[i];
        struct ended_record record = {.outcome = TRIAL_EXPIRED,
                                      .attempt = trial->attempt,
                                      .epochs = trial->epochs_done,
                                      .metric = trial->metric,
                                      .energy_j =
                                          trial->past_energy_j + trial_told_j(trial->energy_j, trial->time_s),
                                      .time_s = trial->past_time_s + trial->time_s,
                                      .reference_per_kwh = trial->reference_per_kwh};

        if (trial->number <= after || trial->silent || change->now_us < job_trial_expires_us(trial))
            continue;
        after = trial->number;
        expired++;
        count_expired(&change->expired, change->state->lines[trial->line].gpu_model, 1);
        code = local_append(change, RECORD_ENDED, after, "", &record, out_error);
        i = SIZE_MAX; /* from the start again: the table may have moved */
    }
    if (out_expired != NULL)
        *out_expired = expired;
    return code;
}

/* ---- a handle that belongs to no group ---- */

void local_free(struct job_local *local)
{
    for (size_t i = 0; i < LOCAL_STATES; i++) {
        if (local->states[i].job[0] != '\0')
            local_forget(local, local->states[i].job);
    }
    store_close(local->store);
    policy_plugins_close(&local->own);
    free(local);
}

int local_make(const char *address, const struct job_options *options, struct job_local **out_local,
               struct fly_error *out_error)
{
    const struct store_options store_options = {
        .wait_s = options->wait_s, .clock = options->clock, .existing = options->existing};
    struct job_local *local = calloc(1, sizeof *local);
    int code;

    if (local == NULL)
        return error_no_memory(out_error);
    local->plugins = options->plugins;
    code = options->plugins == NULL ? policy_plugins_open(&local->own, out_error) : 0;
    if (code < 0) {
        free(local);
        return code;
    }
    if (options->plugins == NULL)
        local->plugins = local->own.list;
    code = store_open(address, &store_options, &local->store, out_error);
    if (code < 0) {
        policy_plugins_close(&local->own);
        free(local);
        return code;
    }
    *out_local = local;
    return 0;
}

/*
 * The digest of a job's past, beside its log: a snapshot for the head, and one for each block of trials. A
 * change whose events fill a round writes it, as the log stands with them: the head, and the blocks of the
 * trials of which the events since the last digest tell.
 */

enum {
    DIGEST_EVERY = 256,      /* events between two of them */
    DIGEST_EVENTS = 1 << 14, /* that one change reads at most: of a long log the rest is for the next ones */
    MEMORY_MAX = 1 << 30,
    CHECK_BYTES = 8
};

static const char *block_version(uint64_t block, char text[STORE_VERSION_MAX + 1])
{
    snprintf(text, STORE_VERSION_MAX + 1, DIGEST_VERSION " block %" PRIu64, block);
    return text;
}

/* ---- in the store ---- */

/* Where snapshots come from: a change, or the store without a lock. */
struct place {
    struct store *store;
    struct store_change *change; /* NULL: none */
    const char *job;
};

/* Appends a snapshot without its check; whether there is one, and it is whole. */
static int get(const struct place *place, const char *version, struct buffer *bytes,
               struct fly_error *out_error)
{
    size_t before = bytes->length, length;
    struct bytes_reader check;
    uint64_t number = 0;
    int code = place->change != NULL
                   ? store_change_get_snapshot(place->change, version, &number, bytes, out_error)
                   : store_get_snapshot(place->store, place->job, version, &number, bytes, out_error);

    if (code < 0)
        return code;
    if (number == 0 || bytes->length < before + CHECK_BYTES)
        return 0;
    length = bytes->length - before - CHECK_BYTES;
    check = bytes_reader(bytes->data + before + length, CHECK_BYTES);
    if (bytes_u64(&check) != adler32_of(bytes->data + before, length))
        return 0;
    bytes->length = before + length;
    return 1;
}

static int put(struct local_change *change, const char *version, struct buffer *bytes,
               struct fly_error *out_error)
{
    bytes_put_u64(bytes, bytes->error == 0 ? adler32_of(bytes->data, bytes->length) : 0);
    if (bytes->error < 0)
        return error_no_memory(out_error);
    return store_change_put_snapshot(change->change, version, store_change_head(change->change), bytes->data,
                                     bytes->length, out_error);
}

/* ---- reading ---- */

static int append_blocks(const struct place *place, uint64_t from, uint64_t trials, struct buffer *bytes,
                         struct fly_error *out_error)
{
    char version[STORE_VERSION_MAX + 1];
    int code = 1;

    for (uint64_t i = from; i * DIGEST_TRIALS < trials && code == 1; i++)
        code = get(place, block_version(i, version), bytes, out_error);
    return code;
}

int local_digest(void *self, const char *job, uint64_t trials, struct buffer *out_bytes,
                 struct fly_error *out_error)
{
    struct job_local *local = self;
    const struct place place = {local->store, NULL, job};
    struct buffer head;
    int code;

    buffer_init(&head, DIGEST_BYTES_MAX);
    code = get(&place, DIGEST_VERSION, &head, out_error);
    if (code == 1) {
        uint64_t all = digest_mark_of(head.data, head.length).trials;
        uint64_t from = trials == 0 || trials >= all ? 0 : (all - trials) / DIGEST_TRIALS;

        bytes_put_u64(out_bytes, from * DIGEST_TRIALS + 1);
        buffer_append(out_bytes, head.data, head.length);
        code = append_blocks(&place, from, all, out_bytes, out_error);
    }
    buffer_deinit(&head);
    if (code >= 0 && out_bytes->error < 0)
        code = error_no_memory(out_error);
    if (code != 1)
        buffer_clear(out_bytes);
    return code < 0 ? code : 0;
}

/* ---- writing ---- */

/* A block while it is written anew. */
struct block {
    struct job_row rows[DIGEST_TRIALS];
    size_t count;
};

static int read_block(const struct place *place, uint64_t number, uint64_t known, struct arena *arena,
                      struct block *block, struct fly_error *out_error)
{
    uint64_t first = number * DIGEST_TRIALS;
    char version[STORE_VERSION_MAX + 1];
    struct buffer bytes;
    int code;

    block->count = 0;
    if (first >= known)
        return 1;
    block->count = known - first < DIGEST_TRIALS ? (size_t)(known - first) : DIGEST_TRIALS;
    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    code = get(place, block_version(number, version), &bytes, out_error);
    if (code == 1)
        code = digest_read_rows(bytes.data, bytes.length, first + 1, block->count, arena, block->rows,
                                out_error);
    buffer_deinit(&bytes);
    return code;
}

/* Puts the rows that are new, or differ now, into their block; `at`: of the next row that was read again. */
static void renew_block(const struct history_fold *fold, uint64_t number, size_t *at, struct block *block)
{
    uint64_t first = number * DIGEST_TRIALS + 1, end = first + DIGEST_TRIALS;

    for (; *at < fold->again_count && fold->again[*at].row.trial.trial < end; ++*at)
        block->rows[fold->again[*at].row.trial.trial - first] = fold->again[*at].row;
    for (uint64_t trial = first + block->count; trial <= fold->mark.trials && trial < end; trial++)
        block->rows[block->count++] = fold->history.rows[trial - fold->known - 1];
}

static int write_block(struct local_change *change, uint64_t number, const struct block *block,
                       struct fly_error *out_error)
{
    char version[STORE_VERSION_MAX + 1];
    struct buffer bytes;
    int code;

    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    digest_put_rows(block->rows, block->count, &bytes);
    code = put(change, block_version(number, version), &bytes, out_error);
    buffer_deinit(&bytes);
    return code < 0 ? code : 1;
}

/* Returns 1, or 0 if a block that the head knows is not there. */
static int write_blocks(struct local_change *change, const struct history_fold *fold, struct arena *arena,
                        struct fly_error *out_error)
{
    const struct place place = {change->local->store, change->change, change->job};
    struct block *block = arena_alloc(arena, 1, sizeof *block);
    uint64_t number = 0, grows_from = fold->known / DIGEST_TRIALS;
    size_t at = 0;
    int code = block != NULL ? 1 : error_no_memory(out_error);

    for (; number * DIGEST_TRIALS < fold->mark.trials && code == 1; number++) {
        if (number < grows_from && at < fold->again_count)
            number = (fold->again[at].row.trial.trial - 1) / DIGEST_TRIALS;
        else if (number < grows_from)
            number = grows_from;
        if (number * DIGEST_TRIALS >= fold->mark.trials)
            break;
        code = read_block(&place, number, fold->known, arena, block, out_error);
        if (code != 1)
            break;
        renew_block(fold, number, &at, block);
        code = write_block(change, number, block, out_error);
    }
    return code;
}

static int write_head(struct local_change *change, const struct history_fold *fold,
                      struct fly_error *out_error)
{
    struct buffer bytes;
    int code;

    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    digest_put_head(&fold->mark, &fold->history, &bytes);
    code = put(change, DIGEST_VERSION, &bytes, out_error);
    buffer_deinit(&bytes);
    return code < 0 ? code : 1;
}

static int read_change(void *self, const char *job, const struct store_query *query, store_visit *visit,
                       void *state, struct fly_error *out_error)
{
    (void)job;
    return store_change_read(self, query, visit, state, out_error);
}

/*
 * Writes what is new since the digest with that head, before which stands the number of the first trial.
 * Returns 0 if a block of it is not there.
 */
static int write_since(struct local_change *change, const struct buffer *head, uint64_t *out_number,
                       struct fly_error *out_error)
{
    const struct history_source source = {read_change, change->change, change->job, DIGEST_EVENTS};
    const struct history_digest digest = {head->data, head->length};
    struct history_fold fold;
    struct fly_error why;
    struct arena arena;
    int code;

    arena_init(&arena, MEMORY_MAX);
    /* A log that cannot be understood so has no digest; what is recorded in it does not depend on that. */
    if (history_fold(&source, &digest, &arena, &fold, &why) < 0) {
        *out_number = change->state->number;
        code = 1;
    } else {
        *out_number = fold.mark.number;
        code = write_blocks(change, &fold, &arena, out_error);
        if (code == 1)
            code = write_head(change, &fold, out_error);
    }
    arena_deinit(&arena);
    return code;
}

int local_put_digest(struct local_change *change, struct fly_error *out_error)
{
    const struct place place = {change->local->store, change->change, change->job};
    struct local_state *kept = change->kept;
    uint64_t number = change->state->number;
    struct digest_mark mark = {0};
    struct buffer bytes, head;
    int code;

    if (!change->state->defined || number < DIGEST_EVERY || number < kept->digest_due)
        return 0;
    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    buffer_init(&head, STORE_SNAPSHOT_MAX);
    code = get(&place, DIGEST_VERSION, &bytes, out_error);
    if (code == 1)
        mark = digest_mark_of(bytes.data, bytes.length);
    kept->digest_due = mark.number + DIGEST_EVERY;
    if (code >= 0 && number >= kept->digest_due) {
        if (mark.number > 0) {
            bytes_put_u64(&head, mark.trials + 1);
            buffer_append(&head, bytes.data, bytes.length);
        }
        code = write_since(change, &head, &number, out_error);
        if (code == 0) { /* without the old one */
            buffer_clear(&head);
            code = write_since(change, &head, &number, out_error);
        }
        kept->digest_due = number + DIGEST_EVERY;
    }
    buffer_deinit(&head);
    buffer_deinit(&bytes);
    return code < 0 ? code : 0;
}
