/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_SAVINGS_H
#define FLYBALL_JOB_PAST_SAVINGS_H

#include "job/past/history.h"
#include "job/past/saving_estimate.h"

/*
 * What a job saves against a live baseline. The baseline is runs of the default batch size at the highest
 * power limit on the same hardware, at whatever cost: control runs (fly_job_definition.control_every), runs
 * that the user pinned, and runs of a training that could not ask the log. A default that the policy chose
 * does not count, because the policy stops it when it becomes too expensive.
 *
 * A recurrence is one run: the sum over its tries, with a model or without. Its energy counts either way.
 * What came after a control that failed is a run of its own. There are three kinds of runs: those of the
 * baseline; those that searched (explored a batch size, or measured a power profile); and tuned runs, which
 * are all others. So what was chosen for being cheap is judged by runs after it was chosen. Tuned runs from
 * before the objective or pin was changed were chosen for something else, and do not count (`outdated`); runs
 * of the baseline do.
 *
 * A revision (fly_job_definition.revision) changes what all runs take, the default's too. So everything
 * counts from the revision that holds; what was saved under the earlier ones, each against its own runs of
 * the default, is summed by itself (`earlier`). A recurrence that a revision interrupted counts in neither.
 *
 * The saving is that of a delivered model (saving_estimate.h). Runs with some unknown energy are left out of
 * everything except their count. Recurrences are numbered from 0 here, as in every machine format.
 */

/* A run that delivered no model: its last try. */
struct saving_failure {
    uint64_t recurrence, trial;
    bool of_baseline;
    uint32_t batch_size;
    enum trial_outcome outcome;
    bool without_epoch; /* it ended by itself, and had reported none */
};

enum { SAVING_FAILURES_MAX = 20, SAVING_RECENT = 20 };

/*
 * How much less the recurrences other than the baseline's took than the same number of models of the default
 * around that time (its three nearest runs). NAN unless the saving is known.
 */
struct saving_balance {
    double ahead_j;        /* sum over all of them */
    size_t recent;         /* how many of the newest, at most SAVING_RECENT */
    double recent_ahead_j; /* sum over the newest */
    bool paid_off;         /* all of them and the newest took less, and the saving's interval agrees */
    uint64_t paid_off_at;  /* it has paid off without interruption since this recurrence */
};

/* What was saved under the revisions before the one that holds. */
struct saving_earlier {
    size_t recurrences; /* except the baseline's, of revisions whose saving is known */
    double ahead_j;     /* how much less they took than as many models of the default of then; NAN: none */
    size_t unknown;     /* recurrences, likewise, of revisions whose saving is not known */
};

struct job_savings {
    struct fly_job_runs baseline, tuned;
    size_t searching; /* recurrences that searched */
    size_t searching_failed;
    size_t outdated;         /* recurrences tuned by an objective or pin that does not hold any more */
    size_t unknown;          /* recurrences with some unknown energy */
    enum saving_doubt doubt; /* about the energy's saving */
    bool known;              /* there is no doubt */
    struct fly_job_range energy;
    struct fly_job_range time; /* below 0: slower */
    struct fly_job_range cost;
    double exploration_j; /* what searching took beyond the same number of tuned models; NAN unless known */
    struct saving_balance balance;
    struct saving_earlier earlier;
    size_t failed;                                       /* runs without a model, of any kind */
    struct saving_failure failures[SAVING_FAILURES_MAX]; /* the newest of them, oldest first */
    size_t failure_count;
};

/* Computes the savings of the trials on one machine. Returns 0 or FLY_ENOMEM. */
int job_savings_of(const struct job_history *history, size_t machine, struct job_savings *out_savings,
                   struct fly_error *out_error);

/* Whether a trial is a run of the default that was free to take whatever it took. */
bool saving_is_default(const struct job_history *history, const struct job_row *row);

#endif
