/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_CHOICE_H
#define FLYBALL_TRAIN_TUNER_TUNER_CHOICE_H

#include "policy/limit_arms.h"
#include "train/tuner/tuner_private.h"

/*
 * What follows from a tuner's points: which limit wins, how certain that is, and which limits keep the bound,
 * with all measurement errors allowed for. A `place` is an index into the tuner's points. Pure: ranks that
 * see the same points choose alike.
 */

/* The points as the pure search sees them. */
struct tuner_arms {
    struct limit_arms arms; /* over `room` */
    struct limit_arm room[FLY_POWER_SEARCH_LIMITS_MAX];
};
void tuner_take_arms(const struct fly_tuner *tuner, struct tuner_arms *out_arms);

/* Whether none of the limits that are not yet measured can win, so that the search may end. */
bool tuner_may_finish(const struct fly_tuner *tuner);

/* Chooses among the valid points that are open to choice; false when there is none. */
bool tuner_choose(const struct fly_tuner *tuner, size_t *out_chosen);

/* Whether a limit surely keeps the bound, given all errors. */
bool tuner_keeps_bound(const struct fly_tuner *tuner, size_t place);

/* How many valid points within the bound differ from the chosen one by less than their errors. */
uint32_t tuner_ties(const struct fly_tuner *tuner, size_t chosen);

/*
 * Whether a measured step time keeps the bound. It may exceed the bound by what the spread of both times
 * explains. True when there is no bound, or no time at the highest limit.
 */
bool tuner_keeps_promise(const struct fly_tuner *tuner, double time_s, double time_error);

/* The place of the next higher limit with a valid point, or 0, the highest limit. */
size_t tuner_next_higher(const struct fly_tuner *tuner, size_t at);

#endif
