/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_H
#define FLYBALL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>
#include <flyball/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the logs of recurring jobs tell: which jobs there are, what each of their trials ran and took, why it
 * was chosen, what a job saves, and the frontier of its choices. The figures are those of `flyball job list`,
 * `history`, `why`, `show` and `pareto`. Nothing here writes to a log.
 *
 *     struct fly_jobs *jobs;
 *     struct fly_job *job;
 *     struct fly_job_saving saving = {.size = sizeof saving};
 *
 *     if (fly_jobs_open(NULL, 0, &jobs, &error) < 0)
 *         ...
 *     if (fly_job_read(jobs, "digits", &job, &error) == 0) {
 *         fly_job_saving(job, 0, &saving, &error);
 *         if (saving.known)
 *             printf("%.1f %% less energy\n", 100 * saving.energy.value);
 *         fly_job_free(job);
 *     }
 *     fly_jobs_close(jobs);
 *
 * An unknown figure is NAN, an unknown text "". Moments are seconds since 1970. Recurrences and tries count
 * from 0, trials and kinds of hardware from 1. The caller sets `size` of each struct that has one; FLY_EUSAGE
 * without it, or for a place or number out of range. A call that can fail with a sentence takes a struct
 * fly_error, or NULL.
 */

/*
 * Access to the logs at one address. For one thread at a time; after fork the child's copy does nothing
 * (FLY_ESTATE), and closing it only frees memory.
 */
struct fly_jobs;

/* A copy of what one job's log told when it was read. Read-only, so any number of threads may use it. */
struct fly_job;

/*
 * Opens the logs at `store`: a file, postgresql://..., or a service's address; NULL: FLYBALL_STORE, else the
 * user's own file, without which there are no jobs. Waits at most `wait_s` for each answer; 0: 10. The caller
 * owns the handle.
 *
 * FLY_ENOTFOUND for a store that does not exist, FLY_EUNREACHABLE for a service that is not there; else as
 * the store has it.
 */
FLY_API int fly_jobs_open(const char *store, double wait_s, struct fly_jobs **out_jobs,
                          struct fly_error *out_error);

/* Accepts NULL. */
FLY_API void fly_jobs_close(struct fly_jobs *jobs);

/* A job in the list. */
struct fly_job_summary {
    size_t size;
    const char *name;
    const char *policy;  /* that chooses what to run */
    const char *trouble; /* why this library does not understand the log, so that policy and counts are not
                            known; "": it does */
    uint64_t recurrences, trials;
    uint64_t running; /* trials that have not ended */
    uint64_t events;
    double made_unix_s, changed_unix_s;
};

/* Reads the list, sorted by the bytes of names. */
FLY_API int fly_jobs_list(struct fly_jobs *jobs, size_t *out_count, struct fly_error *out_error);

/* A job of the list that was read last. Texts are the handle's, until it reads another list or is closed. */
FLY_API int fly_jobs_summary(const struct fly_jobs *jobs, size_t place, struct fly_job_summary *out_summary);

/* Why a trial was chosen, as it was written down then. */
struct fly_job_why {
    size_t size;
    uint64_t trial, recurrence;
    uint32_t try_number, batch_size;
    double limit_w; /* NAN: none was set, or a profile that the trial measures decides */
    double proposed_unix_s;
    const char *policy;   /* that chose */
    const char *reason;   /* a word: "explore" */
    const char *sentence; /* for people */
    const char *numbers;  /* what was known then, as a JSON object (docs/explanation/decisions.md) */
    bool capped;          /* it may be stopped for its cost */
    bool last_try;        /* of its recurrence: the best known choice */
};

/*
 * Tells of one trial; 0: the newest. Texts are the handle's, until the next call of this function or its
 * close. FLY_ENOTFOUND for an unknown job (the nearest name is told) or trial, FLY_EEXHAUSTED before the
 * first trial.
 */
FLY_API int fly_job_why(struct fly_jobs *jobs, const char *job, uint64_t trial, struct fly_job_why *out_why,
                        struct fly_error *out_error);

/*
 * Reads a job's whole log. The caller owns the copy, which outlives the handle. FLY_ENOTFOUND for an unknown
 * job; the nearest name is told.
 */
FLY_API int fly_job_read(struct fly_jobs *jobs, const char *name, struct fly_job **out_job,
                         struct fly_error *out_error);

/* Accepts NULL. */
FLY_API void fly_job_free(struct fly_job *job);

/* The job as it is now. Texts are the copy's, here and below. */
struct fly_job_facts {
    size_t size;
    const char *name;
    const char *policy;
    const char *objective; /* a word: "energy" (objective.h) */
    double eta;            /* of the objective */
    double max_slowdown;   /* its bound, a factor; infinity: none */
    const char *revision;  /* that holds; "": none was told */
    uint32_t default_batch_size;
    uint32_t pin_batch_size; /* 0: none */
    double pin_limit_w;      /* NAN: the profile's best */
    uint64_t recurrences, trials, running;
    size_t hardware_count; /* kinds of hardware that it ran on */
};

/* Tells of the job itself. */
FLY_API int fly_job_facts(const struct fly_job *job, struct fly_job_facts *out_facts);

/* A kind of hardware; they count from 1 in the order of first use. */
struct fly_job_hardware {
    size_t size;
    const char *gpu_model;
    uint32_t gpu_count;        /* of a trial */
    uint32_t world_size;       /* ranks of a trial */
    uint64_t gpu_memory_bytes; /* 0: not known */
    double highest_limit_w;    /* of one GPU; NAN: limits cannot be set */
    double max_power_w;        /* sum of all GPUs' highest limits */
};

/* Tells of one kind of hardware. */
FLY_API int fly_job_hardware(const struct fly_job *job, size_t hardware,
                             struct fly_job_hardware *out_hardware);

/* One trial. Up to the target or the end is what decisions use; a whole run may go on after the target. */
struct fly_job_trial {
    size_t size;
    uint64_t trial, recurrence;
    uint32_t try_number, attempts, batch_size, epochs;
    double limit_w;          /* of each GPU; NAN: none was set, or it is not known */
    const char *reason;      /* why it was chosen, a word: "explore" */
    const char *outcome;     /* "running", or how it ended: "reached" */
    const char *stop;        /* what it was told to stop for: "cost"; "none" */
    double metric;           /* of the last epoch, or the best with that setting */
    double energy_j, time_s; /* up to the target or the end */
    double cost_j;           /* of these two, by the objective that holds now */
    double whole_energy_j, whole_time_s;
    double carbon_g, money; /* of energy_j, by the grid's mean that was frozen at its end; a job has one */
    double begun_unix_s;    /* when it was proposed */
    double ended_unix_s;    /* NAN while it runs */
    bool late;              /* it had expired, and ended after all */
    bool profiled;          /* it measured a power profile, so it ran under several limits */
    size_t hardware;        /* from 1 */
    const char *revision;   /* under which it ran */
    const char *user; /* "uid:1000", of a service also "token:NAME"; "said:NAME": only a program said so */
    const char *account, *host;
    const char *gpus;  /* UUIDs, separated by commas */
    const char *cause; /* a word on the cause of its end */
};

/* In the order of their numbers. */
FLY_API size_t fly_job_trial_count(const struct fly_job *job);
FLY_API int fly_job_trial(const struct fly_job *job, size_t place, struct fly_job_trial *out_trial);

/* A figure and its 95 % interval. A value type: its layout never changes within a major version. */
struct fly_job_range {
    double value, low, high;
};

/* Recurrences of one kind. A value type. */
struct fly_job_runs {
    uint64_t runs;
    uint64_t failed;       /* of them, without a model */
    double model_energy_j; /* of all of them, for each model that they delivered */
    double model_time_s;
    double spread;      /* standard deviation of their energies, as a part of the mean */
    double mean_metric; /* of the models */
    double newest_unix_s;
};

/*
 * What the job saves on one kind of hardware against runs of the default batch size at the highest limit,
 * for each model delivered (docs/explanation/savings.md). Fractions: 0.12 is 12 % less; below 0 is more.
 */
struct fly_job_saving {
    size_t size;
    size_t hardware;   /* from 1 */
    bool known;        /* there are enough runs to tell; else all fractions and balances are NAN */
    const char *doubt; /* why it is not known, a clause; "" if it is */
    struct fly_job_runs baseline, tuned;
    struct fly_job_range energy, time, cost;
    uint64_t searching, searching_failed; /* recurrences that searched */
    double exploration_j;                 /* that searching took beyond as many tuned models */
    double ahead_j;  /* that all but the default's recurrences took less than the default around then */
    uint64_t recent; /* the newest of them, of which the next is */
    double recent_ahead_j;
    bool paid_off;
    uint64_t paid_off_at; /* the recurrence since which searching has paid off, if it has */
    uint64_t outdated;    /* recurrences tuned for what is not wanted any more */
    uint64_t unknown;     /* recurrences with an energy that is not known */
    uint64_t failed;      /* recurrences of any kind without a model */
    uint64_t earlier;     /* recurrences under revisions before the one that holds, of known saving */
    double earlier_ahead_j;
    uint64_t earlier_unknown; /* and of unknown saving */
};

/* `hardware` counts from 1; 0: that of the newest trial. FLY_EEXHAUSTED before the first trial. FLY_ENOMEM.
 */
FLY_API int fly_job_saving(const struct fly_job *job, size_t hardware, struct fly_job_saving *out_saving,
                           struct fly_error *out_error);

/* A batch size and a power limit: what training to the target is expected to take by the job's trials. */
struct fly_job_point {
    size_t size;
    uint32_t batch_size;
    double limit_w;
    uint64_t trials;                       /* of the batch size, from which the figures come */
    struct fly_job_range time_s, energy_j; /* intervals are NAN below four trials */
    double cost_j;                         /* by the objective */
    bool on_frontier; /* no other point is better in one of time and energy, as good in both */
    bool is_default;  /* default batch size, highest limit */
    bool is_chosen;   /* the best by the objective */
};

/* Fastest first. `hardware` as above; an unknown one has no points. */
FLY_API size_t fly_job_point_count(const struct fly_job *job, size_t hardware);
FLY_API int fly_job_point(const struct fly_job *job, size_t hardware, size_t place,
                          struct fly_job_point *out_point);

/* Batch sizes without points, ascending, and why: a clause. */
FLY_API size_t fly_job_left_out_count(const struct fly_job *job, size_t hardware);
FLY_API int fly_job_left_out(const struct fly_job *job, size_t hardware, size_t place,
                             uint32_t *out_batch_size, const char **out_why);

#ifdef __cplusplus
}
#endif

#endif
