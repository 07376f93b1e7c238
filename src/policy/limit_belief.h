/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LIMIT_BELIEF_H
#define FLYBALL_POLICY_LIMIT_BELIEF_H

#include <stddef.h>

/*
 * What is believed of the limits of a batch size that were not measured, from those that were and from the
 * profiles of other batch sizes: data in, data out.
 *
 * y is the logarithm of a limit's score over that of the highest measured limit of the same batch size. What
 * lies above that one is no candidate, so y is compressed there: 0.1 ln(1 + y / 0.1). Of batch size b under
 * limit p
 *
 *     y_b(p) = level_b + shape(p) + change_b(p) + rough_bp
 *
 * The shape is common to all batch sizes. The change is smooth over limits, and over batch sizes. What is
 * rough is each figure's own: errors, and what no other figure tells. It may grow or fall with the batch
 * size: small ones often wait for something other than the GPU. All are Gaussian processes, with the
 * covariance called Matern 3/2 over the logarithm of the limit and over octaves (Rasmussen and Williams,
 * "Gaussian Processes for Machine Learning", 2006, chapters 2, 4 and 5). How large changes and roughness are,
 * and how roughness grows, is not known: each combination of a few values is weighed by its exact marginal
 * likelihood. So profiles that do not fit each other, or are rough, say so by themselves, and then nothing is
 * certain of what was not measured.
 *
 * Deterministic, the same bits on every machine. Takes 140 KB of the stack, and about
 * 36 * figures^2 * (figures / 3 + unmeasured limits) operations. Pure; thread-safe.
 */
enum { LIMIT_BELIEF_PLACES = 48, LIMIT_BELIEF_FIGURES = 96, LIMIT_BELIEF_BATCHES = 6 };

/* A measured figure. */
struct limit_figure {
    size_t place; /* of its limit */
    size_t batch; /* index */
    double y;     /* not compressed */
};

struct limit_evidence {
    double limits[LIMIT_BELIEF_PLACES];
    size_t place_count;
    double
        octaves[LIMIT_BELIEF_BATCHES]; /* log2 of a batch size over that of batch 0, which is asked about */
    struct limit_figure figures[LIMIT_BELIEF_FIGURES];
    size_t figure_count; /* at least 1 */
};

/* Of a limit of batch 0. */
struct limit_belief {
    double expected; /* y, compressed */
    double chance;   /* that y is below what was asked */
};

/* Fills the beliefs of the places named. `below` is not compressed. */
void limit_belief_of(const struct limit_evidence *evidence, const size_t *places, size_t count, double below,
                     struct limit_belief *out_beliefs);

#endif
