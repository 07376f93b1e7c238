/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both back ends share: it checks arguments, makes a handle inert after fork, and takes a
 * change through its states. The back ends do the rest.
 */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "store/store_backend.h"
#include "store/store_text.h"

struct store {
    const struct store_backend *backend;
    void *state;
    char *shown;
    const struct clock *clock; /* NULL: the back end's */
    uint64_t generation;       /* value of fork_generation when the store was opened */
    bool reading;              /* a visitor is running */
    bool grouped;              /* a group is open */
    struct store_change change;
};

static const struct store_backend *backend_of(enum store_place place)
{
    return place == STORE_ON_SERVER ? &postgres_backend : &sqlite_backend;
}

int store_open(const char *address, const struct store_options *options, struct store **out_store,
               struct fly_error *out_error)
{
    struct store_options used = options != NULL ? *options : (struct store_options){0};
    struct store_address parsed;
    struct store *store;
    int code = store_address_parse(address, &parsed, out_error);

    if (code < 0)
        return code;
    if (!(used.wait_s > 0.0))
        used.wait_s = STORE_WAIT_DEFAULT_S;
    store = calloc(1, sizeof *store);
    if (store == NULL)
        return error_no_memory(out_error);
    store->backend = backend_of(parsed.place);
    store->clock = used.clock;
    store->generation = fork_generation();
    code = store->backend->open(&parsed, &used, &store->state, &store->shown, out_error);
    if (code < 0) {
        free(store);
        return code;
    }
    store->change.store = store;
    *out_store = store;
    return 0;
}

static bool is_forked(const struct store *store)
{
    return store->generation != fork_generation();
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    if (is_forked(store)) {
        store->backend->abandon(store->state);
    } else {
        if (store->change.open)
            store->backend->rollback(store->state);
        store->backend->close(store->state);
    }
    free(store->shown);
    free(store);
}

const char *store_shown(const struct store *store)
{
    return store->shown;
}

static int check_usable(const struct store *store, struct fly_error *out_error)
{
    if (is_forked(store))
        return error_set(out_error, FLY_ESTATE,
                         "the store '%.200s' was opened before a fork and is the parent's; open it anew here",
                         store->shown);
    if (store->reading)
        return error_set(out_error, FLY_ESTATE,
                         "the store '%.200s' is being read by the caller of this; read first, then act",
                         store->shown);
    return 0;
}

/* Checks before something is done to a job outside of a change. */
static int check_idle(const struct store *store, const char *job, struct fly_error *out_error)
{
    int code = check_usable(store, out_error);

    if (code < 0)
        return code;
    if (store->change.open)
        return error_set(out_error, FLY_ESTATE,
                         "a change of the job '%s' is open in the store '%.200s'; end it first",
                         store->change.job, store->shown);
    return job == NULL ? 0 : store_text_check(job, "name of a job", STORE_JOB_MAX, false, out_error);
}

int store_read(struct store *store, const char *job, const struct store_query *query, store_visit *visit,
               void *state, struct fly_error *out_error)
{
    int code = check_idle(store, job, out_error);

    if (code < 0)
        return code;
    store->reading = true;
    code = store->backend->read(store->state, job, query, visit, state, out_error);
    store->reading = false;
    return code;
}

int store_find_job(struct store *store, const char *job, store_visit_job *visit, void *state,
                   struct fly_error *out_error)
{
    int code = check_idle(store, job, out_error);

    if (code < 0)
        return code;
    store->reading = true;
    code = store->backend->find_job(store->state, job, visit, state, out_error);
    store->reading = false;
    return code;
}

int store_list_jobs(struct store *store, store_visit_job *visit, void *state, struct fly_error *out_error)
{
    int code = check_idle(store, NULL, out_error);

    if (code < 0)
        return code;
    store->reading = true;
    code = store->backend->list_jobs(store->state, visit, state, out_error);
    store->reading = false;
    return code;
}

static int check_version(const char *version, struct fly_error *out_error)
{
    return store_text_check(version, "version of a snapshot", STORE_VERSION_MAX, false, out_error);
}

int store_get_snapshot(struct store *store, const char *job, const char *version, uint64_t *out_number,
                       struct buffer *out_bytes, struct fly_error *out_error)
{
    int code = check_idle(store, job, out_error);

    if (code == 0)
        code = check_version(version, out_error);
    return code < 0
               ? code
               : store->backend->get_snapshot(store->state, job, version, out_number, out_bytes, out_error);
}

int store_change_begin(struct store *store, const char *job, enum store_job_wish wish,
                       struct store_change **out_change, struct fly_error *out_error)
{
    struct store_change *change = &store->change;
    int code = check_idle(store, job, out_error);

    if (code < 0)
        return code;
    *change = (struct store_change){.store = store};
    memcpy(change->job, job, strlen(job) + 1);
    code = store->backend->begin(store->state, wish, change, out_error);
    if (code < 0)
        return code;
    if (store->clock != NULL)
        change->now_us = store->clock->date(store->clock->state).ns / 1000;
    change->open = true;
    *out_change = change;
    return 0;
}

uint64_t store_change_head(const struct store_change *change)
{
    return change->head;
}

int64_t store_change_now_us(const struct store_change *change)
{
    return change->now_us;
}

uint64_t store_change_job_id(const struct store_change *change)
{
    return change->job_id;
}

static int check_open(const struct store_change *change, struct fly_error *out_error)
{
    int code = check_usable(change->store, out_error);

    if (code < 0)
        return code;
    if (!change->open || change->broken || change->deleted)
        return error_set(out_error, FLY_ESTATE, "the change of the job '%s' %s", change->job,
                         !change->open     ? "has ended; begin another"
                         : change->deleted ? "has deleted it; commit or roll back"
                                           : "has failed; roll it back and begin another");
    return 0;
}

/* A failure here leaves the transaction in doubt, so nothing more is done in it. */
static int ended_badly(struct store_change *change, int code)
{
    if (code < 0)
        change->broken = true;
    return code;
}

struct visiting {
    store_visit *visit;
    void *state;
    bool refused; /* the visitor itself failed, which does not harm the transaction */
};

static int visit_guarded(void *state, const struct store_event *event, struct fly_error *out_error)
{
    struct visiting *visiting = state;
    int code = visiting->visit(visiting->state, event, out_error);

    visiting->refused = code < 0;
    return code;
}

int store_change_read(struct store_change *change, const struct store_query *query, store_visit *visit,
                      void *state, struct fly_error *out_error)
{
    struct store *store = change->store;
    struct visiting visiting = {.visit = visit, .state = state};
    int code = check_open(change, out_error);

    if (code < 0)
        return code;
    store->reading = true;
    code = store->backend->change_read(store->state, change, query, visit_guarded, &visiting, out_error);
    store->reading = false;
    return visiting.refused ? code : ended_badly(change, code);
}

int store_change_append(struct store_change *change, const struct store_event *event, uint64_t *out_number,
                        struct fly_error *out_error)
{
    struct store *store = change->store;
    struct store_event numbered = *event;
    int code = check_open(change, out_error);

    if (code == 0)
        code = store_event_check(event, out_error);
    if (code < 0)
        return code;
    numbered.number = change->head + 1;
    if (numbered.time_us == 0)
        numbered.time_us = change->now_us;
    code = store->backend->append(store->state, change, &numbered, out_error);
    if (code == STORE_KEY_TAKEN)
        return error_set(out_error, FLY_ESTATE,
                         "the job '%s' has an event with the key '%.100s' already; look for a key before "
                         "appending it",
                         change->job, event->key);
    if (code < 0)
        return ended_badly(change, code);
    change->head = numbered.number;
    if (change->appended++ == 0)
        change->first_us = numbered.time_us;
    change->last_us = numbered.time_us;
    if (out_number != NULL)
        *out_number = numbered.number;
    return 0;
}

int store_change_get_snapshot(struct store_change *change, const char *version, uint64_t *out_number,
                              struct buffer *out_bytes, struct fly_error *out_error)
{
    struct store *store = change->store;
    int code = check_open(change, out_error);

    if (code == 0)
        code = check_version(version, out_error);
    if (code < 0)
        return code;
    return ended_badly(change, store->backend->change_get_snapshot(store->state, change, version, out_number,
                                                                   out_bytes, out_error));
}

int store_change_put_snapshot(struct store_change *change, const char *version, uint64_t number,
                              const void *bytes, size_t byte_count, struct fly_error *out_error)
{
    struct store *store = change->store;
    int code = check_open(change, out_error);

    if (code == 0)
        code = check_version(version, out_error);
    if (code < 0)
        return code;
    if (number == 0 || number > change->head)
        return error_set(out_error, FLY_EUSAGE, "a snapshot of the job '%s' names no event of its log",
                         change->job);
    if (byte_count > STORE_SNAPSHOT_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "a snapshot of the job '%s' has %zu bytes; at most %d are allowed", change->job,
                         byte_count, STORE_SNAPSHOT_MAX);
    return ended_badly(change, store->backend->put_snapshot(store->state, change, version, number, bytes,
                                                            byte_count, out_error));
}

int store_change_delete_job(struct store_change *change, struct fly_error *out_error)
{
    int code = check_open(change, out_error);

    if (code == 0 && change->store->grouped)
        code = error_set(out_error, FLY_ESTATE, "the job '%s' cannot be deleted within a group; end it first",
                         change->job);
    if (code < 0)
        return code;
    code = change->store->backend->delete_job(change->store->state, change, out_error);
    change->deleted = code == 0;
    return ended_badly(change, code);
}

int store_change_commit(struct store_change *change, struct fly_error *out_error)
{
    struct store *store = change->store;
    bool failed = change->broken, forked = is_forked(store);
    int code = 0;

    if (!change->open || forked || store->reading) {
        code = check_usable(store, out_error);
        return code < 0 ? code : check_open(change, out_error);
    }
    change->open = false;
    /* A job without events does not exist. */
    if (failed || (change->head == 0 && !change->deleted))
        store->backend->rollback(store->state);
    else
        code = store->backend->commit(store->state, change, out_error);
    if (failed)
        code =
            error_set(out_error, FLY_ESTATE,
                      "the change of the job '%s' has failed before; nothing of it is written", change->job);
    return code;
}

void store_change_rollback(struct store_change *change)
{
    if (change == NULL || !change->open || is_forked(change->store))
        return;
    change->open = false;
    change->store->backend->rollback(change->store->state);
}

int store_group_begin(struct store *store, const char *const *jobs, size_t count, struct fly_error *out_error)
{
    int code = check_idle(store, NULL, out_error);

    if (code < 0)
        return code;
    if (store->grouped)
        return error_set(out_error, FLY_ESTATE, "a group is open in the store '%.200s'; end it first",
                         store->shown);
    code = store->backend->group_begin(store->state, jobs, count, out_error);
    store->grouped = code == 0;
    return code;
}

int store_group_end(struct store *store, struct fly_error *out_error)
{
    int code = check_idle(store, NULL, out_error);

    if (code < 0)
        return code;
    if (!store->grouped)
        return error_set(out_error, FLY_ESTATE, "no group is open in the store '%.200s'", store->shown);
    store->grouped = false;
    return store->backend->group_end(store->state, out_error);
}

bool store_group_holds(const struct store *store)
{
    return store->grouped && store->backend->group_holds(store->state);
}
