/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_VISITS_H
#define FLYBALL_TRAIN_TUNER_TUNER_VISITS_H

#include <stddef.h>

/*
 * What several windows under one limit, each a visit, say of it together, and what
 * they say of each other: windows of the same limit may differ by more than the
 * spread of their steps and the uncertainty of their energies explain, by what
 * stays the same within a window and not between two. Pure.
 */
struct tuner_visit {
    double steps, time_s, energy_j; /* in all */
    double half_j;                  /* of the interval that holds the energy in 95 of 100 */
    double time_error;              /* standard error, as a fraction */
};

struct tuner_visits {
    unsigned count;
    double steps, time_s, error_s2;            /* sums; squares of standard errors of the times */
    double energy_j, energy_s, half_j2;        /* sums over those visits whose energy is of use */
    double step_s, step_s2, power_w, power_w2; /* sums over visits of their means, and of the squares */
    double known_time2, known_power2;          /* of the relative variances that each by itself explains */
};

/* Half widths of 95 % are so many standard deviations. */
extern const double tuner_half_width;

void tuner_visits_add(struct tuner_visits *visits, const struct tuner_visit *visit);

/* How much single visits vary beyond what each by itself explains, as a fraction; 0: no sign of it. */
struct tuner_noise {
    unsigned degrees; /* visits beyond the first of each limit; 0: nothing is known */
    double time, power;
};
struct tuner_noise tuner_visits_noise(const struct tuner_visits *visits, size_t count);

/* By how many standard deviations, learnt from so few visits, a mean is off at most in 95 of 100; at most 3.
 */
double tuner_noise_factor(const struct tuner_noise *noise);

#endif
