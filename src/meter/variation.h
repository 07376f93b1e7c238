/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_VARIATION_H
#define FLYBALL_METER_VARIATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * How the power of a device varies, learnt from its samples: what a sensor that sees only part of
 * the time, or lags, is likely to have missed. Old samples count less and less, with a time
 * constant of a minute, so the figures describe the recent load. Plain values, bounded memory, no
 * locks.
 */
enum { VARIATION_RING = 32, VARIATION_BINS = 96, VARIATION_NEIGHBOURS = 4 };

/* How much time was spent with each size of something, in bins a quarter of an octave wide. */
struct variation_sizes {
    double weight_s;
    double bins[VARIATION_BINS];
};

struct variation {
    double bin_w[VARIATION_BINS]; /* the largest size of each bin */
    double horizon_s;             /* changes are measured over about this time */
    bool known;
    struct mono_time at;
    double power_w;                 /* the last sample */
    double change_w;                /* its difference from the one before */
    double growth;                  /* weight of a second now. Old seconds keep their weight, so they count
                                     * less and less beside it. */
    struct variation_sizes levels;  /* of power */
    struct variation_sizes changes; /* of power, over the horizon */
    double local_w2s, noise_w2s;    /* weighted in the same way; see struct variation_mean */
    double before_w[VARIATION_NEIGHBOURS]; /* the samples before the last */
    uint32_t before_count;
    struct {
        struct mono_time at;
        double power_w;
    } ring[VARIATION_RING];
    uint32_t ring_count; /* ever added */
    /* The same sums since the first sample, without fading, so that differences of them describe a window. */
    double total_s, total_local_w2s, total_noise_w2s;
};

/* The sums at one moment. */
struct variation_edge {
    double total_s, local_w2s, noise_w2s;
};

void variation_init(struct variation *variation, double horizon_s);

/*
 * Adds a sample; one older than the last changes nothing. `level_w` is the highest that the power
 * may have been around then: the sample itself, or the reading of another sensor that averages
 * less.
 */
void variation_take(struct variation *variation, struct mono_time at, double power_w, double level_w);

struct variation_edge variation_edge(const struct variation *variation);

/*
 * How power varied in a window between two edges, in W^2; if the window is short, also in the
 * time before it. Local: the variance among a few neighbouring samples. Noise: what rises and
 * falls again at once, the mean of -(change)(next change), at least 0. 0 if nothing is known.
 */
struct variation_mean {
    double local_w2, noise_w2;
};
struct variation_mean variation_between(const struct variation *variation, const struct variation_edge *begin,
                                        const struct variation_edge *end);

/*
 * Returns the error in joules, not exceeded in 95 of 100 cases, of holding the last power for
 * `lag_s`, or for a window of `length_s` if that is shorter.
 */
double variation_held_j(const struct variation *variation, double lag_s, double length_s);

/*
 * Returns the watts that U P - V Q does not exceed in 95 of 100 cases: U, V uniform in 0 .. 1, P
 * and Q recent powers.
 */
double variation_edges_w(const struct variation *variation);

#endif
