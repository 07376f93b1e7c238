/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LAW_BAYES_LAWS_H
#define FLYBALL_POLICY_LAW_BAYES_LAWS_H

#include <stddef.h>
#include <stdint.h>

#include "policy/law/law_mixture.h"

/*
 * What the belief of a job (bayes_belief.h) needs that follows from its batch sizes alone. It takes more
 * memory than all else that a job of `bayes` keeps, so jobs with the same batch sizes, default and priors
 * share it: the process holds it once for each such group, and BAYES_LAWS_SPARE that no job uses, for the
 * next one.
 *
 *     const struct bayes_laws *laws = bayes_laws_borrow(&epochs, &cost, sizes, count, default_batch);
 *     law_mixture_fit(&laws->epochs, ...);
 *     bayes_laws_return(laws);
 *
 * It never changes once it is borrowed, and it is what each job would compute for itself: who else has
 * borrowed it cannot be told from any answer. Both calls are thread-safe, and safe after a fork.
 */
enum { BAYES_LAWS_SPARE = 8 };

struct bayes_laws {
    size_t count;
    double *octaves;                 /* of each batch size, from the default */
    struct law_mixture epochs, cost; /* of log epochs, and of the log cost of an epoch */
};

/* Copies its arguments; at most LAW_BATCHES_MAX sizes. Returns NULL if there is no memory. */
const struct bayes_laws *bayes_laws_borrow(const struct law_prior *epochs, const struct law_prior *cost,
                                           const uint32_t *sizes, size_t count, size_t default_batch);

void bayes_laws_return(const struct bayes_laws *laws);

/* Returns how much memory they take. */
size_t bayes_laws_bytes(const struct bayes_laws *laws);

/* Returns how many the process holds, spare ones too. */
size_t bayes_laws_held(void);

#endif
