/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_VARIATION_H
#define FLYBALL_METER_VARIATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * How the power of a device varies, learnt from its samples: what a sensor that
 * looks away, or lags, is likely to have missed. Old samples count less and
 * less, with a time constant of a minute, so that the figures are those of the
 * load of late. Plain values, bounded memory, no locks.
 */
enum { VARIATION_RING = 32, VARIATION_BINS = 96, VARIATION_NEIGHBOURS = 4 };

/* How much time went by with each size of something, in bins a quarter of an octave wide. */
struct variation_sizes {
    double weight_s;
    double bins[VARIATION_BINS];
};

struct variation {
    double bin_w[VARIATION_BINS]; /* the largest size of each bin */
    double horizon_s;             /* changes are told over about this time */
    bool known;
    struct mono_time at;
    double power_w;                 /* the last sample, */
    double change_w;                /* and how it differed from the one before */
    double growth;                  /* weight of a second now; old ones keep theirs, so they fade beside it */
    struct variation_sizes levels;  /* of power */
    struct variation_sizes changes; /* of power, over the horizon */
    double local_w2s, noise_w2s;    /* weighted like those; see struct variation_mean */
    double before_w[VARIATION_NEIGHBOURS]; /* the samples before the last */
    uint32_t before_count;
    struct {
        struct mono_time at;
        double power_w;
    } ring[VARIATION_RING];
    uint32_t ring_count; /* ever */
    /* The same sums since the first sample, without fading: of a window they are a difference. */
    double total_s, total_local_w2s, total_noise_w2s;
};

/* The sums at one moment. */
struct variation_edge {
    double total_s, local_w2s, noise_w2s;
};

void variation_init(struct variation *variation, double horizon_s);

/*
 * Takes in a sample; one older than the last changes nothing. `level_w` is the
 * highest that the power may have been around then: the sample, or what another
 * sensor that averages less says.
 */
void variation_take(struct variation *variation, struct mono_time at, double power_w, double level_w);

struct variation_edge variation_edge(const struct variation *variation);

/*
 * What a window between two edges is made of, in W^2; as far as the window is
 * short, also the time before it. Local: the variance among a few neighbouring
 * samples. Noise: what goes up and down again at once, the mean of
 * -(change)(next change), at least 0. 0 where nothing is known.
 */
struct variation_mean {
    double local_w2, noise_w2;
};
struct variation_mean variation_between(const struct variation *variation, const struct variation_edge *begin,
                                        const struct variation_edge *end);

/*
 * Joules within which holding the last power for `lag_s`, or for a window of
 * `length_s` where that is shorter, goes wrong in 95 of 100 cases.
 */
double variation_held_j(const struct variation *variation, double lag_s, double length_s);

/* Watts within which U P - V Q lies in 95 of 100 cases: U, V uniform in 0 .. 1, P and Q powers of late. */
double variation_edges_w(const struct variation *variation);

#endif
