/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_SAVING_ESTIMATE_H
#define FLYBALL_JOB_PAST_SAVING_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The statistics of a saving: how much less each delivered model takes than one of the
 * default, and within which bounds that is known.
 *
 * What a model takes is a ratio: all that was used, by runs that delivered none too,
 * over the models delivered. Each run of the default is set beside the tuned runs nearest
 * to it, which makes a block; blocks weigh the same, so what drifts over the weeks drifts
 * out. The saving is one less the ratio of both ratios over the blocks.
 *
 * Half the width of the 95 % interval is, in the logarithm, the greatest of three:
 * - by how much blocks differ from each other, as if each group also held a run of one
 *   epoch more and one of one epoch less (`step`): a few runs that happen to take equally
 *   many epochs do not show how they differ;
 * - by how much tuned runs differ within blocks, as if the default's did as much, and by
 *   what is not known of how often runs fail, where some did (Agresti and Coull,
 *   "Approximate is better than exact for interval estimation of binomial proportions", 1998);
 * - by the latter alone.
 *
 * Towards a greater saving it is wider by five over the number of blocks, since what runs
 * take has a long tail upwards, and a few of the default show too little of theirs; and, where
 * runs may fail to reach a target and none of the default's did, by what so few say of that.
 *
 * No interval is stated, and so no saving, where it could not be trusted: below
 * SAVING_BLOCKS_MIN, where more than a quarter of the tuned runs lie further from any run
 * of the default than these lie apart (all at the start, for instance), where no model
 * was delivered. Tuned runs that fail at times and never did yet look like such as never do.
 *
 * tests/test_savings.c holds how often the interval covers the truth.
 */

enum { SAVING_BLOCKS_MIN = 4 };

enum saving_kind {
    SAVING_BASELINE,
    SAVING_SEARCHING, /* or any other that is not compared; it keeps its place */
    SAVING_TUNED,
};

/* One run, in their order. */
struct saving_sample {
    enum saving_kind kind;
    bool delivered; /* a model */
    double amount;  /* joules, seconds or cost; >= 0 */
    double step;    /* of an epoch, where runs may take more or fewer of them; else 0 */
};

/* Fractions: 0.12 is 12 % less. NAN where not known. */
struct saving {
    double saving;
    double low, high; /* of the 95 % interval */
};

/* Why no saving is stated. */
enum saving_doubt {
    SAVING_STATED,
    SAVING_FEW_BASELINE, /* runs of the default that tuned ones lie beside */
    SAVING_FEW_TUNED,    /* tuned runs */
    SAVING_NOT_SPANNED,  /* most tuned runs lie beyond the time of the default's */
    SAVING_NO_MODEL,     /* the default, or what was chosen, delivered none */
    SAVING_DOUBT_COUNT
};

/* Of the tuned samples. Pure; deterministic; its time grows with `count`. */
struct saving saving_estimate(const struct saving_sample *samples, size_t count,
                              enum saving_doubt *out_doubt);

/*
 * The 95 % interval of what a delivered model takes, of runs of one kind, as logarithms to be added to
 * that of the ratio; as above, but that what drifts is not told from chance. NAN below
 * SAVING_BLOCKS_MIN runs and where none delivered a model.
 */
struct saving_bounds {
    double below, above;
};

struct saving_bounds saving_bounds_of(const struct saving_sample *samples, size_t count);

/* "the default ran at some times alone, and ...": a clause for people and programs; NULL: it is stated. */
const char *saving_doubt_text(enum saving_doubt doubt);

#endif
