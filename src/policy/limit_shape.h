/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LIMIT_SHAPE_H
#define FLYBALL_POLICY_LIMIT_SHAPE_H

#include "policy/limit_arms.h"

/*
 * What is known of a limit that was not measured, from those that were and from how GPUs behave:
 * a lower limit is never faster and never draws more; its power falls at most in proportion; where
 * limits bind, energy and cost bend upwards, or downwards by very little. An estimate says which
 * limit to try next; what may be left untried follows from the bounds alone. Pure; thread-safe.
 */
struct limit_shape {
    bool is_clock;   /* the limits are ceilings on the clock */
    double felt;     /* drawn, or the clock, without a limit; at most the highest limit */
    double binds_at; /* limits above this, a little more, are as good as none */
};

/* At least one arm must be known. */
struct limit_shape limit_shape_of(const struct limit_arms *arms, bool is_clock);

struct limit_estimate {
    double time_s, power_w, score;
};

/*
 * The figures to expect of an arm. Between known arms they follow these; elsewhere the shape
 * of a usual GPU.
 */
struct limit_estimate limit_shape_estimate(const struct limit_shape *shape, const struct limit_arms *arms,
                                           size_t place);

/*
 * The least time and the least score that an unknown arm can have, given the known ones and their
 * errors; 0 where nothing is known.
 */
double limit_shape_least_time(const struct limit_arms *arms, size_t place);
double limit_shape_least_score(const struct limit_shape *shape, const struct limit_arms *arms, size_t place);

#endif
