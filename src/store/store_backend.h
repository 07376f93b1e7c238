/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_BACKEND_H
#define FLYBALL_STORE_STORE_BACKEND_H

#include <stdbool.h>

#include "store/store.h"
#include "store/store_address.h"

/*
 * What a back end must do. store.c checks arguments, forks, and the order of calls, so a back end
 * gets only valid calls. Codes and texts are those of store.h. `state` belongs to the back end.
 */

/* A change as both sides see it: begin fills it, append updates it. */
struct store_change {
    struct store *store;
    char job[STORE_JOB_MAX + 1];
    uint64_t job_id;
    uint64_t head; /* including what this change appended */
    int64_t now_us;
    uint64_t appended;         /* how many events this change appended */
    int64_t first_us, last_us; /* dates of the first and last event, if there are any */
    bool open;                 /* between begin and its end */
    bool broken;               /* something failed: the change can only be rolled back */
    bool deleted;              /* the job was deleted: the change can only be ended */
};

/* Returned by `append` for a key that the job already has; nothing has changed then. */
enum { STORE_KEY_TAKEN = 1 };

struct store_backend {
    const char *name; /* "sqlite" */

    /* Opens or makes the store, migrates it, and sets `out_shown` to an owned text (malloc). */
    int (*open)(const struct store_address *address, const struct store_options *options, void **out_state,
                char **out_shown, struct fly_error *out_error);
    /* Closes the store. No change is open; undoes an open group. */
    void (*close)(void *state);
    /* In a child after fork: frees what can be freed without touching file or connection. */
    void (*abandon)(void *state);

    int (*find_job)(void *state, const char *job, store_visit_job *visit, void *visitor,
                    struct fly_error *out_error);
    int (*list_jobs)(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error);
    /* Reads events outside of a change, by the job's name. */
    int (*read)(void *state, const char *job, const struct store_query *query, store_visit *visit,
                void *visitor, struct fly_error *out_error);
    int (*get_snapshot)(void *state, const char *job, const char *version, uint64_t *out_number,
                        struct buffer *out_bytes, struct fly_error *out_error);

    /* Fills job_id, head and now_us; `job` is set. On failure nothing is open. */
    int (*begin)(void *state, enum store_job_wish wish, struct store_change *change,
                 struct fly_error *out_error);
    int (*change_read)(void *state, struct store_change *change, const struct store_query *query,
                       store_visit *visit, void *visitor, struct fly_error *out_error);
    /* `event` has its number, which is head + 1, and its time. `head` must stay as it is. */
    int (*append)(void *state, struct store_change *change, const struct store_event *event,
                  struct fly_error *out_error);
    int (*change_get_snapshot)(void *state, struct store_change *change, const char *version,
                               uint64_t *out_number, struct buffer *out_bytes, struct fly_error *out_error);
    int (*put_snapshot)(void *state, struct store_change *change, const char *version, uint64_t number,
                        const void *bytes, size_t byte_count, struct fly_error *out_error);
    int (*delete_job)(void *state, struct store_change *change, struct fly_error *out_error);
    /* Ends the transaction, whatever it returns. */
    int (*commit)(void *state, const struct store_change *change, struct fly_error *out_error);
    void (*rollback)(void *state);

    /*
     * See store_group_begin: between these two calls, `begin`, `commit` and `rollback` are parts of
     * one transaction.
     */
    int (*group_begin)(void *state, const char *const *jobs, size_t count, struct fly_error *out_error);
    int (*group_end)(void *state, struct fly_error *out_error);
    bool (*group_holds)(const void *state);
};

extern const struct store_backend sqlite_backend, postgres_backend;

#endif
