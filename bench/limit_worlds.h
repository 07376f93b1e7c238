/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BENCH_LIMIT_WORLDS_H
#define FLYBALL_BENCH_LIMIT_WORLDS_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "sim/world/workload.h"

/*
 * What each batch size of a job draws and takes under each power limit: of the public traces, or drawn at
 * random from one of a few families, each of which is one way in which real cards are not simple.
 *
 * Every job has LIMIT_WORLD_BATCHES batch sizes an octave apart, its default being one in the middle, and 9
 * limits from 100 to 300 W, or 13 from 200 to 500 W. Unless said otherwise
 *
 *     need    the power that a batch size wants, as a share of the highest limit: rises from a low one,
 *             uniform from 0.35 to 0.8, to a high one, uniform up to 1.1, as a logistic curve over the batch
 *             sizes, with a step of 0.04 (standard deviation) of each batch size's own
 *     time    1 + share * (r^-exponent - 1), r = limit / need, at most 1; share log-uniform from 0.02 to
 *             0.3, exponent uniform from 1.5 to 4, the same for all batch sizes of a job
 *     power   r * need
 *
 * and by family
 *
 *     convex      as it stands
 *     plateau     both needs from 0.2 to 0.5: most limits do not bind
 *     throttle    below a limit, uniform from the lowest one to half of the way up, time is multiplied by
 *                 (limit there / limit)^k besides, k uniform from 1 to 4: a kink
 *     two minima  a dip in the time of all batch sizes, at a limit and of a depth (uniform, 2 to 8 %) of the
 *                 job, times 0.5 to 1.5 for each batch size, one and a half limits wide
 *     own dip     the same, but at a limit that each batch size draws for itself
 *     rough       each time and each power is off by chance, lasting, with a standard deviation of the job,
 *                 log-uniform from 0.5 to 6 %
 *     part rough  the same, but the deviation falls from that at the smallest batch size to a tenth of it at
 *                 the largest
 */
enum { LIMIT_WORLD_LIMITS = 32, LIMIT_WORLD_BATCHES = 8, LIMIT_WORLD_BATCHES_MAX = 64 };

struct limit_world {
    double max_power_w;
    size_t batch_count, default_batch;
    double octaves[LIMIT_WORLD_BATCHES_MAX]; /* log2 of the batch size */
    size_t count[LIMIT_WORLD_BATCHES_MAX];
    struct fly_power_point points[LIMIT_WORLD_BATCHES_MAX][LIMIT_WORLD_LIMITS]; /* ascending limits */
};

extern const char *const limit_families[];
extern const size_t limit_family_count;

void limit_world_draw(struct limit_world *world, size_t family, uint64_t seed);
void limit_world_of(struct limit_world *world, const struct workload *workload);

/* The world as measured once: each time and each power with an error of its own. */
void limit_world_measure(const struct limit_world *world, double noise, uint64_t seed,
                         struct limit_world *out_measured);

#endif
