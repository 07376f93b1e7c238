/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_JOB_BACKEND_H
#define FLYBALL_JOB_CORE_JOB_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "job/core/job.h"
#include "store/store.h"

/*
 * Recurring jobs: asks what to run next, and reports what became of it. struct job_backend is a table of
 * functions with plain structs as arguments and answers (job.h). Behind it is whatever keeps the job's log: a
 * store on this machine or a database (local), or a service (remote). Sessions, services and commands call
 * through the table and cannot tell the two apart.
 *
 *     jobs_open(NULL, NULL, &jobs, out_error);
 *     at = jobs.backend, self = jobs.self;
 *     at->define(self, &definition, &registered, out_error);
 *     at->propose(self, &question, &proposal, out_error);
 *     while (training) {
 *         at->heartbeat(...)                         now and then until the first epoch's report
 *         if (proposal.wants_profile)
 *             at->profile(...)                       once it is measured, with `partial` as far as it is
 *         at->report(self, &epoch, &answer, out_error);     after each epoch
 *         if (answer.answer == JOB_STOP || (answer.answer == JOB_REACHED && proposal.stops_at_target))
 *             break;
 *     }
 *     at->end(self, &end, &ended, out_error);        closing, out of memory, or a crash that was seen
 *     jobs_close(&jobs);
 *
 * Each call is one transaction under the job's lock: it answers from what it writes, and what it acknowledges
 * is on disk. You may repeat each call after a lost answer: it is recognized by `request`, or by (trial,
 * attempt, epoch), and answered like the first time.
 *
 * Errors besides the store's:
 *
 *     FLY_EUSAGE, FLY_EDATA   a field out of its range; the text names it
 *     FLY_ELIMIT              a text or list beyond the limits of job.h
 *     FLY_ENOTFOUND           no such job or trial
 *     FLY_ECONFLICT           the call contradicts the record: a changed definition, a
 *                             second report of an epoch with other content
 *     FLY_ESTATE              the trial has ended, or that attempt is not its newest
 *
 * A service passes on the errors of its store. FLY_EUNREACHABLE also means that no service is there,
 * FLY_EUNSURE that a service's answer was lost.
 *
 * One thread at a time may use a handle; after a fork the child's copy does nothing (FLY_ESTATE).
 */

/* How many trials were recorded as expired, by the GPU model that they ran on. */
enum { JOB_EXPIRIES_MAX = 8 };
struct job_expiries {
    struct job_expiries_of {
        char gpu_model[JOB_TEXT_MAX];
        uint64_t trials;
    } of[JOB_EXPIRIES_MAX];
    size_t count;
};

/* All zeros: the defaults. */
struct job_options {
    const struct clock *clock; /* dates events when the store is local; borrowed; NULL: the store's own */
    double wait_s;             /* for another's lock or an answer; 0: STORE_WAIT_DEFAULT_S */
    bool existing;             /* for reading: make no store when there is none (FLY_ENOTFOUND) */
    const struct batch_policy *const
        *plugins; /* beside the built-in ones, ended by NULL, or NULL; borrowed */
    /*
     * For a service. NULL: FLYBALL_TOKEN, FLYBALL_TOKEN_FILE (which goes before) and FLYBALL_CA_FILE; "":
     * none.
     */
    const char *token, *token_file;
    const char *authority_file; /* certificates of the authorities that vouch for the service */
};

/*
 * A way to keep the logs. Functions return 0 or a negative code, and then leave out-parameters alone; `self`
 * is what open made. No function but `digest` is NULL.
 */
struct job_backend {
    const char *name;                   /* "local", "remote" */
    bool (*takes)(const char *address); /* whether it is one of its own; NULL: all that no other takes */

    int (*open)(const char *address, const struct job_options *options, void **out_self,
                struct fly_error *out_error);
    void (*close)(void *self);

    /* Writes the definition, or compares it with the one on record. */
    int (*define)(void *self, const struct fly_job_definition *definition,
                  struct job_registered *out_registered, struct fly_error *out_error);

    int (*set)(void *self, const struct job_setting *setting, struct fly_error *out_error);

    /*
     * Proposes a new trial, or the next attempt at the open or expired trial of `run`. Never fails for lack
     * of a choice: then it proposes the best known one, or the default.
     */
    int (*propose)(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                   struct fly_error *out_error);

    /* Returns FLY_EUSAGE for a profile out of range; the job chooses by its objective. */
    int (*profile)(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                   struct fly_error *out_error);

    int (*heartbeat)(void *self, const struct job_beat *beat, struct fly_error *out_error);

    /*
     * Records a report even after the trial's end, and answers it with JOB_STOP; only the figures of an
     * expired trial still count.
     */
    int (*report)(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                  struct fly_error *out_error);

    int (*end)(void *self, const struct job_end *end, struct job_ended *out_ended,
               struct fly_error *out_error);

    /* Records which trials have expired; every other change does so first. */
    int (*expire)(void *self, const char *job, uint64_t *out_expired, struct fly_error *out_error);

    int (*list)(void *self, struct arena *arena, struct job_list *out_list, struct fly_error *out_error);
    int (*show)(void *self, const char *job, struct arena *arena, struct job_shown *out_shown,
                struct fly_error *out_error);

    /* Reads the log itself. history.h, savings.h and trace_export.h interpret it. */
    int (*read)(void *self, const char *job, const struct store_query *query, store_visit *visit, void *state,
                struct fly_error *out_error);

    /*
     * Appends the bytes in which the job's past is kept short (job/past/history_fold.h), with the newest
     * `trials` or more of them (0: all), to `out_bytes`; nothing if there are none. It is a cache: do without
     * after any failure, or where there is no such function.
     */
    int (*digest)(void *self, const char *job, uint64_t trials, struct buffer *out_bytes,
                  struct fly_error *out_error);

    /*
     * Makes `job` from exported lines (history.h). Returns FLY_ECONFLICT when there is one with that name,
     * FLY_EDATA with the line that does not fit.
     */
    int (*import)(void *self, const char *job, const char *text, size_t length, struct fly_error *out_error);

    /* Removes the job with all that was observed of it. Returns FLY_ENOTFOUND. */
    int (*remove)(void *self, const char *job, struct fly_error *out_error);

    /*
     * Stores what the calls of this handle have recorded as expired since the last call; those beyond
     * JOB_EXPIRIES_MAX models are added to the last entry. For metrics; a service has its own.
     */
    void (*take_expired)(void *self, struct job_expiries *out_expiries);
};

/* A handle of kept jobs. Call the table's functions as jobs.backend->propose(jobs.self, ...). */
struct jobs {
    const struct job_backend *backend;
    void *self;
};

#endif
