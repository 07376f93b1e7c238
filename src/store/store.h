/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_H
#define FLYBALL_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "base/clock.h"

/*
 * The event logs of jobs: what was observed, in one total order per job, on disk once it is
 * acknowledged. A store does not know what events mean; job/ folds them. One contract, two back
 * ends: a file (SQLite) for one machine, a server (PostgreSQL) for many. docs/howto/store.md is the
 * manual for users.
 *
 *     struct store *store;
 *     struct store_change *change;
 *
 *     if (store_open(NULL, NULL, &store, out_error) < 0)
 *         ...
 *     code = store_change_begin(store, "digits", STORE_MAKE_JOB, &change, out_error);
 *     if (code == 0) {
 *         struct store_query after_snapshot = {.after = folded};
 *
 *         code = store_change_read(change, &after_snapshot, fold_one, &state, out_error);
 *         if (code == 0)
 *             code = store_change_append(change, &proposal, &number, out_error);
 *         if (code == 0)
 *             code = store_change_commit(change, out_error);
 *         else
 *             store_change_rollback(change);
 *     }
 *     store_close(store);
 *
 * A change is one transaction under the job's lock. What it reads stays true until it ends, so
 * deciding and appending are one step. What it appends is in the log whole or not at all, even
 * after `kill -9` or a power cut. Reads without a change see committed events only. No operation
 * costs more because the log is long.
 *
 * Several processes, and several threads with a handle each, may have a store open; a handle and
 * its change are single-threaded. After fork a handle is inert in the child: its calls return
 * FLY_ESTATE, and closing it there only frees memory. A child must open a handle of its own. On
 * SQLite it must exec first if its parent had the same file open at the fork (FLY_ESTATE says
 * so): locks are not inherited, and the library cannot forget that it held them.
 *
 * Errors, besides those of the arguments (FLY_EUSAGE, FLY_ELIMIT):
 *
 *     FLY_EBUSY         another holds the job's lock for longer than `wait_s`
 *     FLY_EUNREACHABLE  no server, or it went away; nothing of the change is written
 *     FLY_EUNSURE       it went away during the commit: whether the change is in the log
 *                       is not known; see store_change_commit
 *     FLY_EWRITE        the disk is full or failing
 *     FLY_EPERM         the file, or the file system, may not be written; wrong password
 *     FLY_EREAD         the file is damaged, or reading fails
 *     FLY_EUNSUPPORTED  a network file system, a newer schema, no libpq, an old server
 *     FLY_EDATA         not a store: another program's file or tables
 *     FLY_ENOTFOUND     no such job, directory or database; with `existing`, no such store
 *     FLY_ESTATE        a call that does not fit: after fork, or while a change is open
 *
 * Texts name the store and the next step, and never a password.
 */

enum {
    STORE_JOB_MAX = 200,           /* bytes of a job's name */
    STORE_KIND_MAX = 64,           /* bytes of an event's kind */
    STORE_KEY_MAX = 200,           /* bytes of an event's key */
    STORE_BODY_MAX = 1 << 20,      /* bytes of an event's body */
    STORE_VERSION_MAX = 64,        /* bytes of a snapshot's version */
    STORE_SNAPSHOT_MAX = 64 << 20, /* bytes of a snapshot */
    STORE_WAIT_DEFAULT_S = 10,     /* wait for another's lock */
};

/* All texts are UTF-8; names, kinds, keys and versions contain no control characters. */
struct store_event {
    uint64_t number;  /* from 1, without gaps within its job; assigned by the store */
    int64_t time_us;  /* since 1970, by the store's clock; it may jump: only numbers give the order */
    const char *kind; /* "proposed"; not empty */
    uint64_t trial;   /* 0: belongs to no trial */
    const char *key;  /* "": none; else unique within the job, to recognise a repeated report */
    const char *body; /* JSON by agreement; the store does not parse it */
};

struct store_job {
    const char *name;
    uint64_t id;        /* a job that is deleted and made again gets another id */
    uint64_t events;    /* number of events, so also the number of the last one; at least 1 */
    int64_t made_us;    /* of its first event */
    int64_t changed_us; /* of its last event */
};

struct store;        /* a handle */
struct store_change; /* a transaction on one job */
struct file_system_source;

/* All zero gives the defaults. */
struct store_options {
    double wait_s;             /* for another's lock, and for a server's answer; 0: STORE_WAIT_DEFAULT_S */
    const struct clock *clock; /* dates events; borrowed; NULL: the machine's (SQLite) or the server's */
    bool existing;             /* for reading only: make nothing; without a store, FLY_ENOTFOUND */
    const struct file_system_source
        *file_system; /* for tests: says on which file system a file lies; borrowed */
};

/*
 * Opens the store at an address, makes it if it is missing, and brings its schema up to date.
 *
 *     NULL or ""         store.sqlite in $XDG_STATE_HOME/flyball, else ~/.local/state/flyball;
 *                        the directory is made with mode 0700, the file with 0600
 *     a path             that file; its directory has to exist
 *     postgresql://...   a database, as libpq reads it; also postgres://
 *
 * Refuses other schemes: a service's address is for job/. Copies what it needs from `options`
 * (may be NULL), except for what is borrowed.
 */
int store_open(const char *address, const struct store_options *options, struct store **out_store,
               struct fly_error *out_error);

/* Rolls back an open change or group, and closes the store. Accepts NULL. */
void store_close(struct store *store);

/*
 * Returns where the store is, for people: a path, or the server's address without user and
 * password. The text belongs to the store.
 */
const char *store_shown(const struct store *store);

/*
 * Called with each event that is read; the event's pointers are valid until it returns. Anything
 * but 0 ends the reading: a negative code is passed on (fill `out_error`), a positive one counts
 * as success. It must not use the handle that is reading.
 */
typedef int store_visit(void *state, const struct store_event *event, struct fly_error *out_error);

/* Selects events of a job; all zero: every one. An event must meet all conditions. */
struct store_query {
    uint64_t after;  /* numbers above this one */
    uint64_t trial;  /* events of this trial; 0: all events */
    const char *key; /* the event with this key; NULL: any */
    uint64_t limit;  /* at most this many; 0: all */
};

/*
 * Reads committed events in the order of their numbers, without a lock. Events committed
 * meanwhile may be missing at the end, but never in between. FLY_ENOTFOUND: no such job.
 */
int store_read(struct store *store, const char *job, const struct store_query *query, store_visit *visit,
               void *state, struct fly_error *out_error);

/* Called like store_visit. */
typedef int store_visit_job(void *state, const struct store_job *job, struct fly_error *out_error);

/* Reads one job, or returns FLY_ENOTFOUND. */
int store_find_job(struct store *store, const char *job, store_visit_job *visit, void *state,
                   struct fly_error *out_error);

/* Reads all jobs in the order of their names' bytes. */
int store_list_jobs(struct store *store, store_visit_job *visit, void *state, struct fly_error *out_error);

/*
 * A snapshot caches what was folded from the events up to `number`. It never replaces the events:
 * if it is missing or of another version, they are folded again. There is one per job and
 * version, so that two versions of the software do not overwrite each other's.
 *
 * Appends the bytes to `out_bytes` (initialised by the caller, with its maximum) and sets
 * `out_number`; 0 means that there is none.
 */
int store_get_snapshot(struct store *store, const char *job, const char *version, uint64_t *out_number,
                       struct buffer *out_bytes, struct fly_error *out_error);

enum store_job_wish {
    STORE_EXISTING_JOB, /* FLY_ENOTFOUND if it is missing */
    STORE_MAKE_JOB,     /* made with the change's first event; not made without one, or after a rollback */
};

/*
 * Takes the job's lock, waiting for the current holder, and begins a change. One per handle at a
 * time. SQLite has one lock for all jobs of a file, so keep a change short: no training and no
 * network use between its begin and its end.
 */
int store_change_begin(struct store *store, const char *job, enum store_job_wish wish,
                       struct store_change **out_change, struct fly_error *out_error);

/* Returns the number of the last event, including those appended by this change; 0: none. */
uint64_t store_change_head(const struct store_change *change);

/* Returns the store's time once the lock was taken: the date of every event of this change. */
int64_t store_change_now_us(const struct store_change *change);

/* Returns the job's id (struct store_job). */
uint64_t store_change_job_id(const struct store_change *change);

/* Does what store_read does, under the lock and including the change's own events. */
int store_change_read(struct store_change *change, const struct store_query *query, store_visit *visit,
                      void *state, struct fly_error *out_error);

/*
 * Appends an event and gives its number (`out_number` may be NULL). It ignores `event->number`.
 * An `event->time_us` of 0 means the change's time; anything else is kept, for imported
 * histories. FLY_ESTATE for a key that the job already has (look for it first); the change goes
 * on as if you had not asked. After any other failure the change can only be rolled back; a
 * commit does that.
 */
int store_change_append(struct store_change *change, const struct store_event *event, uint64_t *out_number,
                        struct fly_error *out_error);

/* Does what store_get_snapshot does, under the lock. */
int store_change_get_snapshot(struct store_change *change, const char *version, uint64_t *out_number,
                              struct buffer *out_bytes, struct fly_error *out_error);

/* Replaces the job's snapshot of that version. `number` is 1 .. store_change_head. */
int store_change_put_snapshot(struct store_change *change, const char *version, uint64_t number,
                              const void *bytes, size_t byte_count, struct fly_error *out_error);

/* Removes the job with its events and snapshots. After that you may only commit or roll back. */
int store_change_delete_job(struct store_change *change, struct fly_error *out_error);

/*
 * Brings the change to the disk, releases the lock and frees the change, whatever it returns. 0:
 * the change is in the log and stays there. After any failure but FLY_EUNSURE nothing of it is in
 * the log. After FLY_EUNSURE begin a new change (which waits until the server has ended the lost
 * one) and look for the key of one of the change's events. If it is found, all of them are in the
 * log; if not, none is, and you can append them again. So a change whose loss matters needs an
 * event with a key.
 */
int store_change_commit(struct store_change *change, struct fly_error *out_error);

/* Undoes the change, releases the lock and frees the change. Accepts NULL. */
void store_change_rollback(struct store_change *change);

/*
 * A group: several changes, of one job or of several, that are brought to the disk together.
 *
 *     code = store_group_begin(store, jobs, count, out_error);
 *     ... changes, one after the other, each begun, and committed or rolled back, as ever ...
 *     code = store_group_end(store, out_error);
 *
 * Within a group a change sees those before it. Its commit only makes it part of the group, and
 * its rollback undoes it alone. Acknowledge nothing of the group before store_group_end has
 * returned 0: then all of it is in the log. After any failure but FLY_EUNSURE none of it is, and
 * what you read in it does not hold. Locks are held until then, so keep it short. Every group
 * that was begun must be ended.
 *
 * `jobs` names the jobs that will be changed, so that a server can lock them all at once. On a
 * server, a change of a job that another holds, or that is not named there, is FLY_EBUSY at once:
 * do it outside of the group. Do not delete a job in a group.
 */
int store_group_begin(struct store *store, const char *const *jobs, size_t count,
                      struct fly_error *out_error);
int store_group_end(struct store *store, struct fly_error *out_error);

/* Returns whether the group has a transaction: if a change could not even begin one, it has none. */
bool store_group_holds(const struct store *store);

#endif
