/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_LOCAL_JOB_LOCAL_H
#define FLYBALL_JOB_LOCAL_JOB_LOCAL_H

#include "job/core/call_check.h"
#include "job/core/job_backend.h"
#include "job/core/job_owner.h"
#include "job/core/job_record.h"
#include "job/core/policy_choice.h"
#include "job/core/trial_past.h"
#include "job/decide/decide.h"
#include "job/decide/state.h"

/*
 * Keeps jobs in a store: each call is a change (store.h). A handle remembers the states of the jobs that it
 * dealt with, and brings them up to date with what others appended; a new process begins with the job's
 * snapshot. So a call reads few events, however long the log is.
 */
enum {
    LOCAL_STATES = 64,         /* remembered by a handle */
    LOCAL_SNAPSHOT_EVERY = 64, /* events between two snapshots of a small state */
    LOCAL_UNSURE_RETRIES = 3,  /* retries after a commit whose result is not known */
};

struct job_local {
    struct store *store;
    const struct batch_policy *const *plugins;
    struct policy_plugins own; /* used when the caller brings none */
    struct local_state {
        char job[JOB_NAME_MAX + 1]; /* "": free */
        uint64_t job_id;
        uint64_t snapshot_due; /* from this number on a new one is worth writing */
        uint64_t digest_due;   /* likewise of the digest; 0: not known yet */
        struct job_state *state;
    } states[LOCAL_STATES];
    size_t next;                     /* of the states, the next to be replaced */
    uint64_t events_read;            /* by all calls: the cost of decisions */
    struct job_expiries expired;     /* since they were taken last */
    struct job_group *group;         /* handles whose calls share commits; NULL: none (job_group.h) */
    const struct job_caller *caller; /* whose calls these are; borrowed; NULL: nobody's in particular */
};

/*
 * Whose calls come next on a handle, until the next one of this: they get FLY_EPERM for changes of others'
 * jobs, and jobs that they make are theirs. NULL, as at first: whoever may open the store may do everything,
 * and makes jobs without owners. `self` is the handle's; borrows the caller.
 */
void local_act_for(void *self, const struct job_caller *caller);

/* Makes a handle that belongs to no group. */
int local_make(const char *address, const struct job_options *options, struct job_local **out_local,
               struct fly_error *out_error);
void local_free(struct job_local *local);

/* An event by which a change is recognized: nobody else writes that number at that time. */
struct local_mark {
    uint64_t job_id, number, trial;
    int64_t time_us;
    enum record_kind kind;
};

/* A change, with the job's state. */
struct local_change {
    struct job_local *local;
    struct store_change *change;
    struct local_state *kept;
    struct job_state *state;
    const char *job;
    const struct job_caller *caller; /* as in struct job_local */
    int64_t now_us;
    uint64_t first_head, first_trials; /* before the change did anything */
    struct job_expiries expired;
    struct local_mark last; /* the last event that it appended; number 0: none yet */
    struct local_mark lost; /* of the same call's earlier change, whose commit is unsure; number 0: none */
    uint64_t made;          /* the newest trial that the change has made; 0: none */
    struct trial_past made_past; /* what it has appended of that trial, which need not be read again */
};

/*
 * What a call does within its change; `call` has its question and answer. After an unsure commit it is called
 * again, and must first check whether the lost change was written: by the key of its event, or by
 * local_lost_is_there.
 */
typedef int local_within(struct local_change *change, void *call, struct fly_error *out_error);

/*
 * Does a call as one change, together with others' calls (job_group.h). With a trial it is about that one
 * alone; 0: about the job. Returns FLY_EPERM if the caller may not change that, FLY_EUNSURE when its commit
 * was lost and the store cannot be asked about it.
 */
int local_call(struct job_local *local, const char *job, uint64_t trial, bool make, local_within *within,
               void *call, struct fly_error *out_error);

/* Like local_call for a call that takes long: no other call waits for its commit. */
int local_call_alone(struct job_local *local, const char *job, bool make, local_within *within, void *call,
                     struct fly_error *out_error);

/*
 * Checks that the change's caller may change the job, or report what became of a trial: whoever began it may
 * do that, whoever owns the job by then. FLY_EPERM says whose the job is.
 */
int local_check_right(struct local_change *change, uint64_t trial, struct fly_error *out_error);

/* Adds expired trials to the handle's own. */
void local_add_expired(struct job_local *local, const struct job_expiries *expired);

/* The code of a failure after an earlier commit was lost: FLY_EUNSURE while the store cannot be asked. */
int local_unsure(int code, bool lost, struct fly_error *out_error);

/* Whether the lost change is in the log: 1, 0 or an error. */
int local_lost_is_there(struct local_change *change, struct fly_error *out_error);

/*
 * Takes the lock and brings the state up to date. Returns FLY_ENOTFOUND for an unknown job, unless `make`.
 * After 0 call exactly one of commit and rollback.
 */
int local_begin(struct job_local *local, const char *job, bool make, struct local_change *out_change,
                struct fly_error *out_error);
int local_commit(struct local_change *change, struct fly_error *out_error);
void local_rollback(struct local_change *change);

/* Ends the change by `code`: commits after 0, else rolls back. Returns the result. */
int local_finish(struct local_change *change, int code, struct fly_error *out_error);

/* Appends an event and folds it. Takes a body; NULL means that memory is exhausted or a text is not UTF-8. */
int local_append(struct local_change *change, enum record_kind kind, uint64_t trial, const char *key,
                 const void *record, struct fly_error *out_error);
int local_append_body(struct local_change *change, enum record_kind kind, uint64_t trial, const char *key,
                      json_t *body, struct fly_error *out_error);

/* Folds the events that the change sees and the state does not have yet. */
int local_catch_up(struct local_change *change, struct fly_error *out_error);

/*
 * Finds the event with that key: returns 1 and a new reference to its body, or 0 when there is none.
 * `out_trial` may be NULL.
 */
int local_find(struct local_change *change, const char *key, uint64_t *out_trial, json_t **out_body,
               struct fly_error *out_error);

/* Records the trials that have expired. */
int local_expire(struct local_change *change, uint64_t *out_expired, struct fly_error *out_error);

/* The state as committed, without a lock; valid until the next call on `local`. */
int local_look(struct job_local *local, const char *job, struct job_state **out_state,
               struct fly_error *out_error);

/* Writes the digest of the job's past if it is due. */
int local_put_digest(struct local_change *change, struct fly_error *out_error);

/* Reads it (struct job_backend). */
int local_digest(void *self, const char *job, uint64_t trials, struct buffer *out_bytes,
                 struct fly_error *out_error);

/* Forgets what the handle remembers of a job. */
void local_forget(struct job_local *local, const char *job);

/* Reads a trial from its events; FLY_ENOTFOUND. Call trial_past_deinit only after success. */
int local_past(struct local_change *change, uint64_t trial, uint32_t until_attempt,
               struct trial_past *out_past, struct fly_error *out_error);

/* The definition and what is set later (struct job_backend). */
int local_define(void *self, const struct fly_job_definition *definition,
                 struct job_registered *out_registered, struct fly_error *out_error);
int local_set(void *self, const struct job_setting *setting, struct fly_error *out_error);

/* On hardware that is new to the job, brings what it showed on other hardware. */
int local_bring_hardware(struct local_change *change, const struct job_hardware *hardware,
                         struct fly_error *out_error);

/* Fills in what a job learns from beside its own trials. */
int local_tell_past(const struct job_state *state, struct arena *arena, struct job_shown *out_shown,
                    struct fly_error *out_error);

/* The operations on trials (struct job_backend). */
int local_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                  struct fly_error *out_error);
int local_profile(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                  struct fly_error *out_error);
int local_heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error);
int local_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                 struct fly_error *out_error);
int local_end(void *self, const struct job_end *end, struct job_ended *out_ended,
              struct fly_error *out_error);

/* The back end over store/store.h. */
extern const struct job_backend job_backend_local;

#endif
