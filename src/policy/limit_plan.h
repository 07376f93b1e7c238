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
 * How the score depends on the limit is alike at neighbouring batch sizes, and is smooth; how much so, the
 * profiles show (limit_belief.h). So after the highest limit, to which bounds refer, the one is measured that
 * is expected to be the best, then its two neighbours, since most scores have one minimum, until the best one
 * measured has both neighbours measured. Other limits follow, the most promising first, until the chance that
 * one of those left is better than the best one measured, by more than the indifference of the arms, is below
 * 3 in 10,000. Where profiles do not fit each other, or what was measured does not fit them, or figures
 * scatter, no such chance is small, and every limit is measured. So it is without any other profile, and of
 * more than 48 limits.
 *
 * What this saves, and what it misses, is measured by bench/bench_limits.c. Pure; thread-safe.
 */
enum { LIMIT_CURVES_MAX = 5, LIMIT_CURVE_LEAST = 3 };

/* The profile of another batch size, in ascending order of limits; it may lack some. */
struct limit_curve {
    const struct fly_power_point *points; /* in any unit of work; borrowed */
    size_t count;                         /* from LIMIT_CURVE_LEAST on */
    double octaves;                       /* log2 of its batch size over the one to profile */
};

/*
 * Stores which limit is to be measured next; false: none, the profile is enough. Curves come nearest first;
 * up to LIMIT_CURVES_MAX count, as far as there is room (limit_belief.h), and of each the limits that the
 * arms have.
 */
bool limit_plan_next(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count,
                     size_t *out_place);

#endif
