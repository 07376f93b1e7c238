/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_H
#define FLYBALL_TRAIN_TUNER_TUNER_H

#include <flyball/power_search.h>
#include <flyball/tuner.h>

#include "base/clock.h"
#include "train/tuner/saved_profile.h"

/*
 * What sessions, `flyball run --tune` and tests ask of a tuner beyond <flyball/tuner.h>: a clock of
 * their own, an account that somebody keeps, and what is known before the first step. A tuner is of one
 * thread, and inert in a fork.
 */
struct carbon_keeper;

/* With a clock of the caller's for the time of single steps; NULL: clock_real. */
int tuner_new(const struct fly_tuner_options *options, const struct clock *clock,
              struct fly_tuner **out_tuner, struct fly_error *out_error);

/* The same with an account that somebody keeps; NULL: one of its own, where the grid is followed. */
int tuner_new_in(const struct fly_tuner_options *options, const struct clock *clock,
                 struct carbon_keeper *keeper, struct fly_tuner **out_tuner, struct fly_error *out_error);

/* As fly_tuner_new, with an account that is kept from before the first step, and outlives the tuner. */
int tuner_new_kept(const struct fly_tuner_options *options, struct carbon_keeper *keeper,
                   struct fly_tuner **out_tuner, struct fly_error *out_error);

/* How many steps the whole training has, where that becomes known later than options.carbon; 0: it is not. */
void tuner_expect_steps(struct fly_tuner *tuner, uint64_t steps);

/* Before the first step: no limit is left out because it could not win, so that the profile is whole. */
void tuner_measure_every_limit(struct fly_tuner *tuner);

/*
 * Before the first step: takes what an earlier search measured, so that this one goes on
 * where that ended. Limits that are not to be tried are left out; the same on all ranks.
 */
int tuner_know(struct fly_tuner *tuner, const struct fly_power_point *points, size_t count,
               struct fly_error *out_error);

/* Whether every limit is measured or left out, and only some are looked at again. */
bool tuner_only_looks(const struct fly_tuner *tuner);

/* The limits that are measured, highest first, in the knob's unit; how many. */
size_t tuner_measured_points(const struct fly_tuner *tuner,
                             struct fly_power_point out_points[FLY_POWER_SEARCH_LIMITS_MAX]);

/* What its profile belongs to; valid as long as the tuner. */
const struct profile_key *tuner_key(const struct fly_tuner *tuner);

#endif
