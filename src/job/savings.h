/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_SAVINGS_H
#define FLYBALL_JOB_SAVINGS_H

#include "job/history.h"

/*
 * What a job saves, against a live baseline: runs of the default batch size at the
 * highest power limit on the same hardware. Control runs (job_definition.control_every)
 * are such; so is any other trial that happened to be one.
 *
 * A recurrence is one figure: the sum over its tries. Three kinds are told apart: those
 * of the baseline; those that searched (a batch size was explored, or a power profile
 * measured); and those that were tuned, which are all others that reached the target.
 * What was chosen for being cheap is thus judged by runs after it was chosen. Tuned
 * runs from before another objective or pin was set were chosen for something else, and
 * do not count (`outdated`); runs of the baseline do.
 *
 * The saving is one less the ratio of the geometric means, tuned to baseline, with a
 * 95 % interval by Student's distribution over logarithms. Where tuned runs stand
 * around at least three of the baseline's, each of these is compared with the tuned
 * runs nearest to it, so that what drifts over the weeks drifts out (`interleaved`);
 * otherwise the two groups are compared as they are, by Welch's test. That reckons with
 * runs that differ by chance and independently; below JOB_SAMPLES_MIN of either nothing
 * is stated. tests/test_savings.c holds how often the interval covers the truth.
 */

/* Fractions: 0.12 is 12 % less. NAN where not known. */
struct saving {
    double saving;
    double low, high; /* of the 95 % interval */
};

/* The runs of the baseline, or the tuned ones. */
struct saving_group {
    size_t runs;
    double mean_energy_j; /* NAN without runs */
    double spread;        /* relative standard deviation of the energy; NAN below two */
    double mean_time_s;
    double mean_metric; /* the final one; NAN where a run has none */
    int64_t newest_us;  /* when the newest ended; 0: none */
};

struct job_savings {
    struct saving_group baseline, tuned;
    size_t searching; /* recurrences that searched */
    size_t outdated;  /* recurrences that were tuned for what is not wanted any more */
    bool known;       /* JOB_SAMPLES_MIN of both */
    bool interleaved;
    struct saving energy;
    struct saving time; /* below 0: slower */
    struct saving cost;
    double exploration_j; /* what searching took beyond as many tuned runs; NAN unless known */
    bool paid_off;        /* all recurrences together took less than as many of the baseline */
    uint64_t paid_off_at; /* and have since this recurrence */
};

/* Of the trials on one machine. FLY_ENOMEM. */
int job_savings_of(const struct job_history *history, size_t machine, struct job_savings *out_savings,
                   struct fly_error *out_error);

/* ---- the statistics alone ---- */

enum saving_kind { SAVING_BASELINE, SAVING_SEARCHING, SAVING_TUNED };

/* One recurrence, in their order. */
struct saving_sample {
    enum saving_kind kind;
    double amount; /* > 0 */
};

/* The saving of the tuned ones; `out_interleaved` may be NULL. Pure. */
struct saving saving_estimate(const struct saving_sample *samples, size_t count, bool *out_interleaved);

#endif
