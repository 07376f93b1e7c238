/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_VISITS_H
#define FLYBALL_TRAIN_TUNER_TUNER_VISITS_H

#include <stddef.h>

/*
 * Combines several windows under one limit, each called a visit, and finds how much windows of the same limit
 * differ: often more than the spread of their steps and the uncertainty of their energies explain, because of
 * influences that stay the same within a window and change between two. Pure.
 */
struct tuner_visit {
    double steps, time_s, energy_j; /* of the whole visit */
    double half_j;                  /* half width of the interval that holds the energy in 95 of 100 cases */
    double time_error;              /* standard error, as a fraction */
};

struct tuner_visits {
    unsigned count;
    double steps, time_s, error_s2;            /* sums; error_s2: of squared standard errors of the times */
    double energy_j, energy_s, half_j2;        /* sums over the visits whose energy is usable */
    double step_s, step_s2, power_w, power_w2; /* sums over the visits of their means, and of the squares */
    double known_time2, known_power2; /* sums of the relative variances that visits' own errors explain */
};

void tuner_visits_add(struct tuner_visits *visits, const struct tuner_visit *visit);

/* How much visits vary beyond what their own errors explain, as a fraction; 0: no sign of it. */
struct tuner_noise {
    unsigned degrees; /* visits beyond the first of each limit; 0: nothing is known */
    double time, power;
};
struct tuner_noise tuner_visits_noise(const struct tuner_visits *visits, size_t count);

/*
 * How many standard deviations a mean may be off, to one side and in 99 of 100 cases, when they are estimated
 * from so few visits; at most 5.
 */
double tuner_noise_factor(const struct tuner_noise *noise);

#endif
