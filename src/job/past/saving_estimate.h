/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_SAVING_ESTIMATE_H
#define FLYBALL_JOB_PAST_SAVING_ESTIMATE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include <flyball/job.h>

/*
 * The statistics of a saving: how much less each delivered model takes than one of the default, and within
 * which bounds that is known.
 *
 * What a model takes is a ratio: all that the runs used, also those that delivered no model, over the models
 * delivered. Each run of the default forms a block with the tuned runs nearest to it. All blocks weigh the
 * same, so a drift over the weeks cancels out. The saving is 1 minus the ratio of the two ratios over the
 * blocks.
 *
 * Half the width of the 95 % interval, in the logarithm, is the greatest of three:
 * - the difference between blocks, as if each group also held a run of one epoch more and one of one epoch
 *   less (`step`): a few runs that happen to take equally many epochs do not show how much runs differ;
 * - the difference of tuned runs within blocks, as if the default's runs differed as much, together with the
 *   uncertainty of how often runs fail, if some did (Agresti and Coull, "Approximate is better than exact for
 *   interval estimation of binomial proportions", 1998);
 * - the latter alone.
 *
 * Towards a greater saving the interval is wider by five over the number of blocks, because the distribution
 * of what runs take has a long upper tail, of which a few runs of the default show too little. It is wider
 * still when runs may fail to reach a target and none of the default's did, by the uncertainty that so few
 * runs leave.
 *
 * No interval, and so no saving, is stated when it could not be trusted: below SAVING_BLOCKS_MIN blocks; when
 * more than a quarter of the tuned runs lie further from any run of the default than these lie apart (for
 * instance when all of these are at the start); or when no model was delivered. Tuned runs that sometimes
 * fail but have not failed yet look like runs that never fail.
 *
 * tests/job/test_savings.c checks how often the interval contains the truth.
 */

enum { SAVING_BLOCKS_MIN = 4 };

enum saving_kind {
    SAVING_BASELINE,
    SAVING_SEARCHING, /* or any other run that is not compared; it keeps its place */
    SAVING_TUNED,
};

/* One run; samples are in the order of the runs. */
struct saving_sample {
    enum saving_kind kind;
    bool delivered; /* a model */
    double amount;  /* joules, seconds or cost; >= 0 */
    double step;    /* of one epoch, when runs may take more or fewer epochs; else 0 */
};

/* Why no saving is stated. */
enum saving_doubt {
    SAVING_STATED,
    SAVING_FEW_BASELINE, /* too few runs of the default with tuned runs near them */
    SAVING_FEW_TUNED,    /* too few tuned runs */
    SAVING_NOT_SPANNED,  /* too many tuned runs lie outside the time of the default's */
    SAVING_NO_MODEL,     /* the default, or what was chosen, delivered no model */
    SAVING_NO_DEFAULT,   /* the job has none to compare with (fly_job_definition.no_default) */
    SAVING_DOUBT_COUNT
};

/* Estimates the saving of the tuned samples as a fraction: 0.12 is 12 % less; NAN: not known. Pure;
 * deterministic; its time grows with `count`. */
struct fly_job_range saving_estimate(const struct saving_sample *samples, size_t count,
                                     enum saving_doubt *out_doubt);

/*
 * The 95 % interval of what a delivered model takes, for runs of one kind, as logarithms to be added to that
 * of the ratio. It is computed as above, but cannot tell drift from chance. NAN below SAVING_BLOCKS_MIN runs,
 * and when no run delivered a model.
 */
struct saving_bounds {
    double below, above;
};

struct saving_bounds saving_bounds_of(const struct saving_sample *samples, size_t count);

/* The ends of the interval around what a model takes. */
static inline double saving_bounds_low(double value, const struct saving_bounds *bounds)
{
    return value * exp(-bounds->below);
}

static inline double saving_bounds_high(double value, const struct saving_bounds *bounds)
{
    return value * exp(bounds->above);
}

/*
 * Why no saving is stated, as a clause for people and programs: "the default ran at some times alone, and
 * ..."; NULL: it is stated.
 */
const char *saving_doubt_text(enum saving_doubt doubt);

#endif
