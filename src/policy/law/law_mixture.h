/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LAW_LAW_MIXTURE_H
#define FLYBALL_POLICY_LAW_LAW_MIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/*
 * A belief about a quantity y of each batch size, from what was observed of some: strength is
 * shared across batch sizes by a mixture of laws, each with a smooth residual.
 *
 *     y_i = a + ln(1 + 2^(d_i - u)) + ln(1 + 2^(v - d_i)) + r_i
 *
 * d_i is the distance of batch size i from the default, in octaves. The first law says that from
 * u on a doubling no longer saves steps (the critical batch size of McCandlish et al., "An
 * Empirical Model of Large-Batch Training", 2018), the second mirrors it: below v a halving
 * doubles y. The level a is unknown; r is a Gaussian process with deviation s and length l, and a
 * small part of its own for each batch size (nugget). Every combination of u, v and s is weighed
 * by its exact marginal likelihood, and the mixture is matched by one Gaussian of its mean and
 * covariance (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2
 * and 5).
 *
 * Deterministic, the same bits on every machine. The cost of a fit is about
 * deviations * (observed^2 + laws) * batch sizes operations.
 */
enum { LAW_BATCHES_MAX = 64, LAW_PLACES_MAX = 32, LAW_DEVIATIONS_MAX = 4 };

/* Places at equal steps, in octaves from the default. A count of 0: this law is left out. */
struct law_places {
    double first, step; /* step > 0 */
    size_t count;       /* up to LAW_PLACES_MAX */
};

struct law_prior {
    struct law_places right, left;         /* u and v; those with v >= u + 2 are left out */
    double level_sd;                       /* of a, about 0 */
    double deviations[LAW_DEVIATIONS_MAX]; /* s, ended by 0 */
    double weights[LAW_DEVIATIONS_MAX];
    double length; /* l in octaves */
    double nugget; /* standard deviation */
};

/* What follows from the batch sizes alone. Once initialised it is only read: by any job and thread. */
struct law_mixture {
    const struct law_prior *prior; /* borrowed */
    size_t count;
    size_t deviation_count;
    double *laws;     /* [law][batch size]: first those of u, then those of v; one row of 0 for none */
    double *likeness; /* [batch size][batch size]: exp(-dx^2 / 2 l^2) */
    uint8_t lefts_of[LAW_PLACES_MAX]; /* how many of the v stand beside each u: the first ones */
    double pair_count;                /* of u and v */
};

/* What was observed of one batch size. */
struct law_evidence {
    double precision; /* of `value`, 1 / variance; 0: nothing was observed */
    double value;
};

/*
 * `octaves` has the distance of each of up to LAW_BATCHES_MAX batch sizes from the default. Returns
 * whether the arena had room.
 */
bool law_mixture_init(struct law_mixture *mixture, const struct law_prior *prior, const double *octaves,
                      size_t count, struct arena *arena);

/*
 * Fits the evidence of each batch size: gives the mean and the covariance of y, the latter as a triangle
 * (base/math/triangle.h). Returns the log likelihood of the evidence, without the powers of 2 pi. Needs
 * up to 160 kB of stack.
 */
double law_mixture_fit(const struct law_mixture *mixture, const struct law_evidence *evidence,
                       double *out_mean, double *out_covariance);

#endif
