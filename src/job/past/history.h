/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_HISTORY_H
#define FLYBALL_JOB_PAST_HISTORY_H

#include <flyball/job.h>

#include "job/core/job_backend.h"
#include "job/core/trial_past.h"
#include "policy/past.h"

/*
 * Reads what a job's log tells, from any back end, for people and reports; decisions never call it. It takes
 * what the back end keeps in its digest (history_fold.h), and reads of the log what came after that, so the
 * length of the log matters little. Everything that is returned is in the arena.
 */

/* What was observed elsewhere, or before a revision, and came along to the job. */
struct job_brought_past {
    enum past_kind kind;
    uint64_t
        before; /* the next trial: from this one on it counts; one above the newest if none began since */
    int64_t time_us;
    const char *source;    /* the other job's name; the GPU there; the revision before; "": none was told */
    const char *revision;  /* with PAST_REVISION: that began; else "" */
    const char *gpu_model; /* with PAST_HARDWARE: for which it came; else "" */
    uint64_t runs;         /* that reached their target, or were stopped before */
    size_t batch_count;    /* batch sizes of which something is known; 0: none */
};

/* One trial: as programs read it, and what only this library needs. */
struct job_row {
    struct fly_job_trial trial; /* texts are in the arena */
    size_t revision;            /* how many revisions had begun before it */
    bool running;
    bool nothing_learnt;        /* it ended before its training showed anything, and counts for nothing */
    enum trial_outcome outcome; /* unless it is running */
    enum job_stop stop;         /* what the trial was stopped for; none: the end was reported */
    enum reason reason;
    size_t machine;          /* index into job_history.machines */
    bool left_alone;         /* it was to measure a profile, but ran at the limit that stood */
    bool whole_profile;      /* it reported a whole profile */
    double startup_energy_j; /* before the first step of each attempt; NAN: not known */
    double startup_time_s;
    double reference_per_kwh; /* frozen at its end; while it runs, the newest reported; NAN: not known */
    double grid_amount;       /* grams or money (job_counts_money) of its energy at that reference; NAN */
    double run_grid_amount;   /* of whole_energy_j */
    int64_t proposed_us;
    int64_t ended_us; /* 0 while it runs */
};

struct job_history {
    struct fly_job_definition definition;
    struct fly_objective objective; /* the current one */
    const char *policy;             /* likewise */
    uint32_t pin_batch_size;        /* 0: none */
    double pin_limit_w;             /* NAN: the profile's best */
    int64_t wanted_us;              /* when another objective or pin was set last; 0: never */
    uint64_t wanted_from;     /* trials from this number on were chosen by the current objective and pin */
    double reference_per_kwh; /* frozen last; NAN: none was */
    struct fly_job_hardware *machines; /* in the order of first use */
    size_t machine_count;
    struct job_row *rows; /* in the order of trials; the newest of them if not all were asked for */
    size_t count;
    const struct job_brought_past *brought; /* in the order of time */
    size_t brought_count;
    size_t revision; /* how many revisions have begun */
};

/* "running", "nothing_learnt", or the word of how the trial ended. */
const char *job_row_outcome(const struct job_row *row);

/* The same for people: a program that ended by itself without an epoch did not crash, but says "no epoch". */
const char *job_row_said(const struct job_row *row);

/* Whether it ended by itself without an epoch. */
bool job_row_without_epoch(const struct job_row *row);

/* Whether nobody knows yet what the trial takes: it runs, and has reported nothing. */
bool job_row_is_untold(const struct job_row *row);

/* Microseconds since 1970 in seconds; NAN for 0. */
double job_unix_s(int64_t time_us);

/* The newest revision of the first `number` ones; NULL for 0. */
const struct job_brought_past *job_history_revision(const struct job_history *history, size_t number);

/* "the revision 'two' began, and 8 runs of 2 batch sizes before it came along". */
enum { JOB_BROUGHT_TEXT_MAX = 512 };
char *job_brought_text(const struct job_brought_past *brought, char text[JOB_BROUGHT_TEXT_MAX]);

/*
 * The limit of each GPU under which a trial ran. When none was set, it is the highest; when limits cannot be
 * set, what the driver says. NAN when not known.
 */
double job_history_limit_w(const struct job_history *history, const struct job_row *trial);

int job_history_read(const struct jobs *jobs, const char *job, struct arena *arena,
                     struct job_history *out_history, struct fly_error *out_error);

/* The same with the newest `trials` alone; 0: all. What asks for rows by the number of a trial needs all. */
int job_history_read_newest(const struct jobs *jobs, const char *job, uint64_t trials, struct arena *arena,
                            struct job_history *out_history, struct fly_error *out_error);

/*
 * Reads all that the log has of one trial (0: the newest), whose number it gives, and how many epochs the job
 * allows. Call trial_past_deinit after success. FLY_ENOTFOUND names the job that may have been meant, or the
 * newest trial; FLY_EEXHAUSTED if the job has not run yet.
 */
int job_trial_read(const struct jobs *jobs, const char *job, uint64_t trial, uint64_t *out_trial,
                   uint32_t *out_max_epochs, struct trial_past *out_past, struct fly_error *out_error);

/* Why a trial was chosen (0: the newest one). Texts are in the arena. Errors as job_trial_read. */
int job_explain(const struct jobs *jobs, const char *job, uint64_t trial, struct arena *arena,
                struct fly_job_why *out_why, struct fly_error *out_error);

/* The sum over all trials that have ended, each by its own reference. */
struct job_grid_sum {
    double amount;           /* of the known trials; NAN when there is none */
    uint64_t known, unknown; /* numbers of trials; trials without an energy are in neither */
};
struct job_grid_sum job_history_grid_sum(const struct job_history *history);

/* Takes text; returns 0 or a negative code. */
typedef int job_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error);

/*
 * Writes the log, one JSON object per line, in the format that `import` reads:
 *
 *     {"number": 1, "time_us": 1700000000000000, "kind": "defined", "trial": 0, "key": "", "body": {...}}
 */
int job_export(const struct jobs *jobs, const char *job, job_sink *sink, void *context,
               struct fly_error *out_error);

/*
 * Explains an unknown job with the one that may have been meant; passes on any other code. `code` is what a
 * function of the table returned for the job of that name. `jobs` without a back end have no job.
 */
int job_unknown_explain(const struct jobs *jobs, const char *name, int code, struct fly_error *out_error);

#endif
