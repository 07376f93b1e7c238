/* SPDX-License-Identifier: Apache-2.0 */
/* The back end over a store: the job as a whole. */
#include "job/local/job_local.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/job_record.h"
#include "job/core/job_words.h"
#include "job/core/shapes.h"
#include "job/decide/decision_text.h"
#include "job/decide/state_fold.h"
#include "job/local/job_group.h"

static void local_close(void *self)
{
    struct job_local *local = self;

    job_group_leave(local->group);
    local_free(local);
}

static int local_open(const char *address, const struct job_options *options, void **out_self,
                      struct fly_error *out_error)
{
    struct job_local *local;
    int code = local_make(address, options, &local, out_error);

    if (code < 0)
        return code;
    local->group = job_group_join(address, local->store, options);
    *out_self = local;
    return 0;
}

static int expire_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    int code = local_lost_is_there(change, out_error);

    return code != 0 ? code : local_expire(change, call, out_error);
}

static int local_expire_all(void *self, const char *job, uint64_t *out_expired, struct fly_error *out_error)
{
    uint64_t expired = 0;
    int code = local_call(self, job, 0, false, expire_within, &expired, out_error);

    if (code == 0)
        *out_expired = expired;
    return code;
}

/* ---- looking ---- */

static uint64_t count_running(const struct job_state *state)
{
    uint64_t running = 0;

    for (size_t i = 0; i < state->open_count; i++)
        running += !state->open[i].silent;
    return running;
}

static int copy_definition(const struct fly_job_definition *from, struct arena *arena,
                           struct fly_job_definition *out_definition, struct fly_error *out_error)
{
    uint32_t *sizes = arena_alloc(arena, from->batch_count, sizeof sizes[0]);
    char *name = arena_strdup(arena, from->name), *policy = arena_strdup(arena, from->policy);
    char *client = arena_strdup(arena, from->client);
    char *grid = arena_strdup(arena, from->grid != NULL ? from->grid : "");
    char *content = arena_strdup(arena, from->policy_sha256 != NULL ? from->policy_sha256 : "");

    if (sizes == NULL || name == NULL || policy == NULL || client == NULL || grid == NULL || content == NULL)
        return error_no_memory(out_error);
    memcpy(sizes, from->batch_sizes, from->batch_count * sizeof sizes[0]);
    *out_definition = *from;
    out_definition->batch_sizes = sizes;
    out_definition->name = name;
    out_definition->policy = policy;
    out_definition->client = client;
    out_definition->grid = grid;
    out_definition->policy_sha256 = content;
    return 0;
}

/* What the guards of the searches do. */
static int tell_guards(const struct job_state *state, struct arena *arena, struct job_shown *out_shown,
                       struct fly_error *out_error)
{
    struct job_guard *guards = arena_alloc(arena, state->line_count + 1, sizeof guards[0]);
    char text[JOB_WHY_MAX];

    if (guards == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < state->line_count; i++) {
        const struct job_line *line = &state->lines[i];

        guard_text_now(state, line, text);
        guards[i] = (struct job_guard){.text = arena_strdup(arena, text),
                                       .anew_trial = line->anew_trial,
                                       .anew_us = line->anew_us,
                                       .anew_times = line->decider.begun_anew};
        if (guards[i].text == NULL)
            return error_no_memory(out_error);
    }
    out_shown->guards = guards;
    out_shown->guard_count = state->line_count;
    return 0;
}

static int local_show(void *self, const char *job, struct arena *arena, struct job_shown *out_shown,
                      struct fly_error *out_error)
{
    struct job_shown shown = {0};
    struct job_state *state;
    int code = local_look(self, job, &state, out_error);

    if (code == 0)
        code = copy_definition(&state->definition, arena, &shown.definition, out_error);
    if (code < 0)
        return code;
    shown.policy = arena_strdup(arena, state->policy->name);
    shown.owners = arena_strdup(arena, job_state_owners(state));
    if (shown.policy == NULL || shown.owners == NULL)
        return error_no_memory(out_error);
    shown.objective = state->objective;
    shown.control_every = state->control_every;
    shown.pin_batch_size = state->pin_batch_size;
    shown.pin_limit_w = state->pin_limit_w;
    shown.trials = state->trials;
    shown.recurrences = state->recurrences;
    shown.running = count_running(state);
    shown.events = state->number;
    if (!isnan(job_state_recurrences_left(state)))
        shown.recurrences_left = (uint64_t)job_state_recurrences_left(state);
    code = tell_guards(state, arena, &shown, out_error);
    if (code < 0)
        return code;
    *out_shown = shown;
    return local_tell_past(state, arena, out_shown, out_error);
}

/* A list that grows; its texts are in the arena. */
struct listing {
    struct arena *arena;
    struct job_summary *jobs;
    size_t count, capacity;
};

static int list_one(void *context, const struct store_job *job, struct fly_error *out_error)
{
    struct listing *listing = context;

    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity > 0 ? 2 * listing->capacity : 16;
        struct job_summary *jobs = arena_alloc(listing->arena, capacity, sizeof jobs[0]);

        if (jobs == NULL)
            return error_no_memory(out_error);
        if (listing->count > 0)
            memcpy(jobs, listing->jobs, listing->count * sizeof jobs[0]);
        listing->jobs = jobs;
        listing->capacity = capacity;
    }
    listing->jobs[listing->count] = (struct job_summary){.name = arena_strdup(listing->arena, job->name),
                                                         .events = job->events,
                                                         .made_us = job->made_us,
                                                         .changed_us = job->changed_us};
    return listing->jobs[listing->count++].name != NULL ? 0 : error_no_memory(out_error);
}

/*
 * Sums up a job. A job that cannot be understood here, because of a plug-in or a newer version, does not hide
 * the others.
 */
static int summarize(struct job_summary *summary, int code, const struct job_state *state,
                     const struct fly_error *trouble, struct arena *arena, struct fly_error *out_error)
{
    summary->policy = "";
    if (code == FLY_EUNSUPPORTED || code == FLY_EDATA) {
        summary->trouble = arena_strdup(arena, trouble->text);
        return summary->trouble != NULL ? 0 : error_no_memory(out_error);
    }
    if (code < 0)
        return error_set(out_error, code, "%s", trouble->text);
    summary->policy = arena_strdup(arena, state->policy->name);
    summary->owners = arena_strdup(arena, job_state_owners(state));
    summary->trials = state->trials;
    summary->recurrences = state->recurrences;
    summary->running = count_running(state);
    return summary->policy != NULL && summary->owners != NULL ? 0 : error_no_memory(out_error);
}

static int local_list(void *self, struct arena *arena, struct job_list *out_list, struct fly_error *out_error)
{
    struct job_local *local = self;
    struct listing listing = {.arena = arena};
    size_t kept = 0;
    int code = store_list_jobs(local->store, list_one, &listing, out_error);

    for (size_t i = 0; i < listing.count && code == 0; i++) {
        struct job_summary *summary = &listing.jobs[i];
        struct job_state *state = NULL;
        struct fly_error trouble = {.code = 0};

        code = local_look(local, summary->name, &state, &trouble);
        if (code == FLY_ENOTFOUND) { /* removed meanwhile */
            code = 0;
            continue;
        }
        code = summarize(summary, code, state, &trouble, arena, out_error);
        listing.jobs[kept++] = *summary;
    }
    if (code == 0)
        *out_list = (struct job_list){.jobs = listing.jobs, .count = kept};
    return code;
}

static int local_read(void *self, const char *job, const struct store_query *query, store_visit *visit,
                      void *state, struct fly_error *out_error)
{
    struct job_local *local = self;

    return store_read(local->store, job, query, visit, state, out_error);
}

/* ---- in and out ---- */

/* What a caller brings was recorded elsewhere, if at all: it must not name another user of this service. */
static int doubt_user(const struct job_caller *caller, json_t *body, struct fly_error *out_error)
{
    struct attempt_record record;
    char said[JOB_USER_MAX];

    if (caller == NULL || caller->operates || record_read(RECORD_ATTEMPT, body, NULL, &record, NULL) < 0 ||
        !job_owner_is_caller(record.user) || strcmp(record.user, caller->name) == 0)
        return 0;
    snprintf(said, sizeof said, JOB_USER_SAID "%s", record.user);
    return record_write_user(body, said, out_error);
}

/*
 * Appends and folds an event unchanged, except that the definition takes the new name, and names of users who
 * are not the caller are marked as said.
 */
static int import_event(struct local_change *change, const struct log_line *line, struct fly_error *out_error)
{
    const struct fly_job_definition named = {.name = change->job};
    struct store_event event = line->event;
    char *text;
    int code = 0;

    if (record_kind_parse(event.kind) == RECORD_DEFINED)
        code = shape_write_member(&shape_definition, "name", &named, line->body, out_error);
    else if (record_kind_parse(event.kind) == RECORD_ATTEMPT)
        code = doubt_user(change->caller, line->body, out_error);
    if (code < 0)
        return code;
    text = json_dumps(line->body, JSON_COMPACT);
    event.body = text;
    code = text != NULL ? store_change_append(change->change, &event, &event.number, out_error)
                        : error_no_memory(out_error);
    if (code == 0)
        code = job_state_fold(change->state, &event, change->local->plugins, out_error);
    if (code == JOB_FOLD_ANEW)
        code = local_catch_up(change, out_error);
    if (code == 0)
        change->last = (struct local_mark){store_change_job_id(change->change), event.number, event.trial,
                                           event.time_us, record_kind_parse(event.kind)};
    free(text);
    return code;
}

static int import_line(struct local_change *change, const char *text, size_t length, uint64_t number,
                       struct fly_error *out_error)
{
    struct fly_error why;
    struct log_line line;
    int code = log_line_read(text, length, number, &line, &why);

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (code < 0)
        return error_set(out_error, FLY_EDATA, "line %" PRIu64 "%s %.300s", number,
                         code == FLY_EUSAGE ? "" : ":", why.text);
    code = import_event(change, &line, out_error);
    log_line_deinit(&line);
    return code;
}

struct import_call {
    const char *text;
    size_t length;
};

/* A job belongs to whoever imports it. An operator restores jobs, whose owners stay. */
static int own_import(struct local_change *change, struct fly_error *out_error)
{
    const struct job_caller *caller = change->caller;
    struct job_setting setting = {.pin_limit_w = NAN};

    if (caller == NULL || caller->operates || strcmp(change->state->owners, caller->name) == 0)
        return 0;
    setting.owners = caller->name;
    return local_append(change, RECORD_SET, 0, "", &setting, out_error);
}

static int import_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    const struct import_call *import = call;
    const char *text = import->text, *end = text + import->length;
    uint64_t due = 0;
    int code = local_lost_is_there(change, out_error);

    if (code != 0)
        return code;
    if (change->state->defined)
        return error_set(out_error, FLY_ECONFLICT,
                         "job '%s' is there already; import it under another name, or remove that one",
                         change->job);
    for (uint64_t number = 1; text < end && code == 0; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline != NULL ? newline : end;

        if (line_end - text > LOG_LINE_MAX) /* parsed, a line takes up to eighty times its length */
            return error_set(out_error, FLY_ELIMIT, "line %" PRIu64 ": longer than %d bytes; no event is",
                             number, (int)LOG_LINE_MAX);
        code = import_line(change, text, (size_t)(line_end - text), number, out_error);
        text = newline != NULL ? newline + 1 : end;
    }
    if (code == 0 && !change->state->defined)
        code = error_set(out_error, FLY_EDATA, "import of job '%s': there are no events", change->job);
    if (code == 0)
        code = own_import(change, out_error);
    if (code == 0)
        code = local_put_digest(change, out_error);
    while (code == 0 && change->kept->digest_due > due && change->kept->digest_due <= change->state->number) {
        due = change->kept->digest_due;
        code = local_put_digest(change, out_error);
    }
    return code;
}

static int local_import(void *self, const char *job, const char *text, size_t length,
                        struct fly_error *out_error)
{
    struct import_call call = {text, length};

    return local_call_alone(self, job, true, import_within, &call, out_error);
}

/*
 * Takes the lock to remove a job. Its state says whose it is. An operator, and who opens the store himself,
 * needs none: the log may be one that is not understood here.
 */
static int begin_removal(struct job_local *local, const char *job, struct store_change **out_change,
                         struct fly_error *out_error)
{
    struct local_change change;
    struct fly_error trouble;
    int code;

    if (local->caller == NULL || local->caller->operates)
        return store_change_begin(local->store, job, STORE_EXISTING_JOB, out_change, out_error);
    code = local_begin(local, job, false, &change, &trouble);
    if (code == FLY_EUNSUPPORTED || code == FLY_EDATA)
        return error_set(out_error, FLY_EPERM,
                         "job '%s' cannot be understood here, nor whose it is (%.200s); ask the service's "
                         "operator to remove it",
                         job, trouble.text);
    if (code < 0)
        return error_set(out_error, code, "%s", trouble.text);
    change.caller = local->caller;
    code = local_check_right(&change, 0, out_error);
    if (code < 0) {
        local_rollback(&change);
        return code;
    }
    local_forget(local, job);
    *out_change = change.change;
    return 0;
}

/*
 * Removes the job. `lost_id`: the job that an unsure commit removed.
 */
static int remove_once(struct job_local *local, const char *job, uint64_t *lost_id,
                       struct fly_error *out_error)
{
    struct store_change *change = NULL;
    int code = begin_removal(local, job, &change, out_error);
    uint64_t id;

    if (code == FLY_ENOTFOUND && *lost_id != 0)
        return 0;
    if (code < 0)
        return local_unsure(code, *lost_id != 0, out_error);
    id = store_change_job_id(change);
    if (*lost_id != 0 && id != *lost_id) { /* made anew since */
        store_change_rollback(change);
        return 0;
    }
    *lost_id = id;
    code = store_change_delete_job(change, out_error);
    if (code == 0)
        return store_change_commit(change, out_error);
    store_change_rollback(change);
    return code;
}

static int local_remove(void *self, const char *job, struct fly_error *out_error)
{
    uint64_t lost_id = 0;
    int code = FLY_EUNSURE;

    local_forget(self, job);
    for (int i = 0; i < LOCAL_UNSURE_RETRIES && code == FLY_EUNSURE; i++)
        code = remove_once(self, job, &lost_id, out_error);
    return code;
}

static void local_take_expired(void *self, struct job_expiries *out_expiries)
{
    struct job_local *local = self;

    *out_expiries = local->expired;
    local->expired.count = 0;
}

const struct job_backend job_backend_local = {
    .name = "local",
    .open = local_open,
    .close = local_close,
    .define = local_define,
    .set = local_set,
    .propose = local_propose,
    .profile = local_profile,
    .heartbeat = local_heartbeat,
    .report = local_report,
    .end = local_end,
    .expire = local_expire_all,
    .list = local_list,
    .show = local_show,
    .read = local_read,
    .digest = local_digest,
    .import = local_import,
    .remove = local_remove,
    .take_expired = local_take_expired,
};
