/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_SYNTHETIC_H
#define FLYBALL_SIM_WORLD_SYNTHETIC_H

#include <stdint.h>

#include "base/error.h"
#include "sim/world/workload.h"

/*
 * Made-up jobs on which policies are judged beside those of a trace. Nothing of them was measured.
 *
 * A job follows from its kind and its number alone. In the following, U(a, b) is uniform and z
 * standard normal, each drawn anew where it stands; x is the logarithm of the batch size to base 2.
 *
 * Batch sizes are powers of 2: 8 to 13 of them (each as likely), the smallest 2^2 to 2^5. Power and
 * time of an epoch of 50,000 samples are those of the GPU "v100-like" (model/gpu_model.h) at its
 * seven limits, for a load with
 *
 *     100 us * exp(0.5 z) for a sample, 1 to 10 ms for a step (uniform), half of the dynamic power
 *     at a batch size of 2^U(3, 7), and a share U(0.3, 1) of the time bound by the clock
 *
 * The mean epochs to the target follow the critical-batch-size law (McCandlish et al., "An
 * Empirical Model of Large-Batch Training", 2018) with a mirrored penalty for small batches:
 *
 *     E(x) = e * (1 + 2^(x - r)) * (1 + 2^(l - x)),    e = exp(U(ln 3, ln 60))
 *     l = c - w/2, r = c + w/2,    c uniform over the range of x,    w = U(0, 6) octaves
 *
 * Each batch size has SYNTHETIC_RUNS recorded runs of E(x) * exp(s z) epochs, rounded, at least 1.
 *
 *     smooth   s = 0.05
 *     noisy    s = U(0.2, 0.5)
 *     cliff    s = 0.1; no run reaches the target at batch sizes above c + U(0.5, 2) octaves, or, in
 *              every other job, below c - U(0.5, 2)
 *     bumpy    s = 0.1; the mean of each batch size is exp(0.3 z) times that of the law
 *     flat     s = 0.05; e = exp(U(ln 20, ln 60)), steps take no time, half of the power is drawn at
 *              2^-3, and the mean epochs are e * exp(0.03 z) without the law: every batch size costs
 *              nearly the same
 *     far      s = 0.1; w = U(3, 8); the default is at least 4 octaves away from the best batch size
 *
 * The default is one of the batch sizes that cost at most 4 times the best in the mean, for eta =
 * 0.5 and each at its best limit; each of them is as likely. With `far` it may cost 16 times the
 * best, and is at least 4 octaves away from it, or the farthest of them. A try may run twice the
 * epochs of the default's longest recorded run, at least 10, so the default always reaches the
 * target.
 */
enum synthetic_kind {
    SYNTHETIC_SMOOTH,
    SYNTHETIC_NOISY,
    SYNTHETIC_CLIFF,
    SYNTHETIC_BUMPY,
    SYNTHETIC_FLAT,
    SYNTHETIC_FAR,
    SYNTHETIC_COUNT
};

extern const char *const synthetic_names[]; /* by kind, ended by NULL */

enum { SYNTHETIC_RUNS = 12, SYNTHETIC_BATCHES_MAX = 13 };

/* Name of their GPU: "synthetic". */
extern const char synthetic_gpu[];

/*
 * Makes the job, whose name is "smooth-1". The caller sets spec.eta. FLY_ENOMEM. Call
 * workload_close only after success.
 */
int synthetic_make(struct workload *workload, enum synthetic_kind kind, uint32_t number,
                   struct fly_error *out_error);

#endif
