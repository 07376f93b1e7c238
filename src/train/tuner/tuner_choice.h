/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_CHOICE_H
#define FLYBALL_TRAIN_TUNER_TUNER_CHOICE_H

#include "train/tuner/tuner_private.h"

/*
 * What a tuner makes of its points: which limit wins, how certain that is, and which keep the bound, with
 * all that errors allow. A `place` is an index into the tuner's points. Pure: ranks that see the same points
 * choose alike.
 */

/* Whether the limits not yet measured need not be: none of them can win. */
bool tuner_may_finish(const struct fly_tuner *tuner);

/* Chooses among the valid ones of the first so many points; false when there is nothing to choose. */
bool tuner_choose(const struct fly_tuner *tuner, size_t count, size_t *out_chosen);

/* Whether a limit may keep the bound, and whether it surely does, as far as all errors tell. */
bool tuner_may_keep_bound(const struct fly_tuner *tuner, size_t place);
bool tuner_keeps_bound(const struct fly_tuner *tuner, size_t place);

/* What the objective makes of a valid point, and its standard deviation as a fraction. */
double tuner_point_score(const struct fly_tuner *tuner, size_t place);
double tuner_point_deviation(const struct fly_tuner *tuner, size_t place);

/* How many valid points within the bound their errors cannot tell from the chosen one. */
uint32_t tuner_ties(const struct fly_tuner *tuner, size_t chosen);

/*
 * Whether a measured step time keeps the bound; an excess within what the spread of
 * both times explains does. With no bound, or no time at the highest limit, it does.
 */
bool tuner_keeps_promise(const struct fly_tuner *tuner, double time_s, double time_error);

/* The next higher limit with a valid point, or the highest of all. */
size_t tuner_next_higher(const struct fly_tuner *tuner, size_t at);

#endif
