/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_FINDINGS_H
#define FLYBALL_EXAMPLES_DEMO_FINDINGS_H

#include "demo/demo.h"

/*
 * The demo's findings for one job: every figure that is printed. They come from the tries alone,
 * so that a reader can recompute them from the tries file. docs/tutorial/demo.md defines each.
 */
enum { FINDINGS_TAIL = 10 }; /* the last recurrences, when most of the exploring is over */

enum demo_measure { DEMO_ENERGY, DEMO_TIME, DEMO_COST, DEMO_ACCURACY, DEMO_MEASURES };
enum demo_span { DEMO_LAST, DEMO_WHOLE, DEMO_SPANS };

/*
 * How much a figure changed, from pairs of runs that share their luck.
 *
 * The change is that of the sums, R - 1 with R = sum(ours) / sum(theirs). Its 95 % interval is
 * that of a ratio estimator (Cochran, "Sampling Techniques", 3rd ed., 1977, section 6.4):
 *
 *     R - 1 +- t * sd(ours_i - R * theirs_i) / (sqrt(n) * mean(theirs))
 *
 * with t the 97.5 % quantile of Student's distribution with n - 1 degrees of freedom, and sd the
 * sample deviation. Pairing narrows the interval, since luck that both share drops out of the
 * differences.
 */
struct paired {
    size_t count;
    double ours, theirs; /* sums */
    double change;       /* 0.1 for 10 % more */
    double low, high;    /* the interval; NaN for fewer than two pairs */
};

/* Computes it from `count` >= 1 pairs; theirs must be above 0. */
struct paired paired_of(const double *ours, const double *theirs, size_t count);

/* Returns the 97.5 % quantile of Student's distribution, for degrees of freedom from 1; within 1e-5. */
double paired_student(size_t degrees);

struct findings {
    size_t completed; /* recurrences that both sides completed; if 0, nothing below is valid */
    /* Ours against the default, by recurrence; an accuracy is a percentage. */
    struct paired figures[DEMO_MEASURES][DEMO_SPANS];
    size_t paid_off;         /* recurrences after which our total cost stayed below the default's; 0: never */
    struct demo_choice ours; /* the most common of the last recurrences; the newer of equals */
    /* From the check. */
    size_t choices;          /* measured */
    size_t rank;             /* of ours by cost, from 1 */
    size_t sharing;          /* other choices of exactly our cost */
    struct demo_choice best; /* the least cost; of equals, the smallest batch size, then the highest limit */
    struct paired above;     /* cost of ours against the best, by seed; interval unknown if one failed */
};

/*
 * Returns the cost of a recurrence at a choice: the cost of all its checks divided by how many
 * reached the target; infinite if none did.
 */
double demo_check_cost_j(const struct demo_job *job, size_t batch, size_t limit);

void findings_of(const struct demo_job *job, struct findings *out_findings);

/*
 * Returns whether the figure may be claimed as saved: it is energy, time or cost, its interval
 * lies wholly below 0, and so does that of cost, which is what was asked for. Less energy bought
 * with more time than it is worth is no saving.
 */
bool findings_claims(const struct findings *findings, enum demo_measure measure, enum demo_span span);

/* Returns whether anything may be claimed. */
bool findings_claim_any(const struct findings *findings);

#endif
