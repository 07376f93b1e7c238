/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_SAVINGS_H
#define FLYBALL_JOB_PAST_SAVINGS_H

#include "job/past/history.h"
#include "job/past/saving_estimate.h"

/*
 * What a job saves, against a live baseline: runs of the default batch size at the
 * highest power limit on the same hardware, which ran whatever it took: control runs
 * (job_definition.control_every), those that the user pinned, and those of a training
 * that could not ask. A default that the policy chose is none, since the policy stops it
 * when it becomes too expensive.
 *
 * A recurrence is one run: the sum over its tries, and a model or none. Its energy counts
 * either way. What came after a control that failed is a run of its own. Three kinds are
 * told apart: those of the baseline; those that searched (a batch size was explored, or a
 * power profile measured); and those that were tuned, which are all others. What was
 * chosen for being cheap is thus judged by runs after it was chosen. Tuned runs from
 * before another objective or pin was set were chosen for something else, and do not
 * count (`outdated`); runs of the baseline do.
 *
 * The saving is that of a delivered model (saving_estimate.h). Runs of which some energy
 * is not known are left out of everything but their count. Recurrences are numbered from
 * 0 here, as in every machine format.
 */

/* The runs of the baseline, or the tuned ones. */
struct saving_group {
    size_t runs;
    size_t failed;         /* those that delivered no model */
    double model_energy_j; /* of all runs, for each model delivered; NAN without one */
    double model_time_s;
    double spread;      /* relative standard deviation of the runs' energies; NAN below two */
    double mean_metric; /* the final one of those that delivered; NAN where one has none */
    int64_t newest_us;  /* when the newest ended; 0: none */
};

/* A run that delivered no model: its last try. */
struct saving_failure {
    uint64_t recurrence, trial;
    bool of_baseline;
    uint32_t batch_size;
    enum trial_outcome outcome;
};

enum { SAVING_FAILURES_MAX = 20, SAVING_RECENT = 20 };

/*
 * What recurrences other than the baseline's took less than as many models of the default
 * did around that time (its three nearest runs). NAN unless the saving is known.
 */
struct saving_balance {
    double ahead_j;        /* all of them */
    size_t recent;         /* the newest, at most SAVING_RECENT */
    double recent_ahead_j; /* of these */
    bool paid_off;         /* all and the newest took less, and the interval of the saving says so as well */
    uint64_t paid_off_at;  /* and all have since this recurrence */
};

struct job_savings {
    struct saving_group baseline, tuned;
    size_t searching; /* recurrences that searched */
    size_t searching_failed;
    size_t outdated;         /* recurrences that were tuned for what is not wanted any more */
    size_t unknown;          /* recurrences of which some energy is not known */
    enum saving_doubt doubt; /* of the energy */
    bool known;              /* there is none */
    struct saving energy;
    struct saving time; /* below 0: slower */
    struct saving cost;
    double exploration_j; /* what searching took beyond as many tuned models; NAN unless known */
    struct saving_balance balance;
    size_t failed;                                       /* runs without a model, whatever kind they are of */
    struct saving_failure failures[SAVING_FAILURES_MAX]; /* the newest of them, oldest first */
    size_t failure_count;
};

/* Of the trials on one machine. FLY_ENOMEM. */
int job_savings_of(const struct job_history *history, size_t machine, struct job_savings *out_savings,
                   struct fly_error *out_error);

#endif
