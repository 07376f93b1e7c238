/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LIMIT_PLAN_H
#define FLYBALL_POLICY_LIMIT_PLAN_H

#include <flyball/power_profile.h>

#include "policy/limit_arms.h"

/*
 * Which power limits a profile needs, when profiles of other batch sizes are known: data in, the
 * next limit out. It keeps nothing, so the same data gives the same answer on every rank.
 *
 *     while (limit_plan_next(&arms, curves, curve_count, &place))
 *         measure arms.arms[place], and take it in
 *
 * How time and power depend on the limit is alike at neighbouring batch sizes, and the score has one
 * minimum. So after the highest limit, to which bounds refer, the one is measured that is expected to
 * be the best, then its two neighbours, until the best one measured has both neighbours measured.
 * What a curve says of a limit is corrected by what it says of the measured ones. A limit further
 * away is measured too if one of the curves alone would have it as the best. Where a curve, or what
 * was measured, bends the wrong way by more than 3 %, convexity says nothing: then every limit is
 * measured.
 *
 * What this saves, and what it misses, is measured by bench/bench_limits.c. Pure; thread-safe.
 */
enum { LIMIT_CURVES_MAX = 5, LIMIT_CURVE_LEAST = 3 };

/* The profile of another batch size, in ascending order of limits; it may lack some. */
struct limit_curve {
    const struct fly_power_point *points; /* in any unit of work; borrowed */
    size_t count;                         /* from LIMIT_CURVE_LEAST on */
};

/* Stores which limit is to be measured next; false: none, the profile is enough. */
bool limit_plan_next(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count,
                     size_t *out_place);

#endif
