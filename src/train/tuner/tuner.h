/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_H
#define FLYBALL_TRAIN_TUNER_TUNER_H

#include <flyball/power_search.h>
#include <flyball/tuner.h>

#include "base/clock.h"
#include "policy/limit_plan.h"
#include "train/tuner/saved_profile.h"

/*
 * What sessions, `flyball run --tune` and tests need of a tuner beyond <flyball/tuner.h>: a clock of their
 * own, an account of energy that somebody else keeps, and points that are known before the first step. One
 * thread may use a tuner; after a fork the child's copy does nothing.
 */
struct carbon_keeper;

/* Makes a tuner that times single steps with the caller's clock; NULL: the meter's. */
int tuner_new(const struct fly_tuner_options *options, const struct clock *clock,
              struct fly_tuner **out_tuner, struct fly_error *out_error);

/*
 * Like tuner_new, with an account that somebody else keeps; NULL: the tuner keeps its own when it follows the
 * grid.
 */
int tuner_new_in(const struct fly_tuner_options *options, const struct clock *clock,
                 struct carbon_keeper *keeper, struct fly_tuner **out_tuner, struct fly_error *out_error);

/* Like fly_tuner_new, with an account that is kept from before the first step and outlives the tuner. */
int tuner_new_kept(const struct fly_tuner_options *options, struct carbon_keeper *keeper,
                   struct fly_tuner **out_tuner, struct fly_error *out_error);

/* Tells how many steps the whole training has, when this becomes known after options.carbon; 0: not known. */
void tuner_expect_steps(struct fly_tuner *tuner, uint64_t steps);

/*
 * Makes the search measure every limit, even one that can no longer win, so that the profile is whole. Call
 * it before the first step.
 */
void tuner_measure_every_limit(struct fly_tuner *tuner);

/*
 * Makes the search measure the limits from the highest down until no lower one can win, for those who choose
 * among the points by themselves. Call it before the first step.
 */
void tuner_measure_profile(struct fly_tuner *tuner);

/*
 * Takes the points of an earlier search, so that this one goes on where that one ended. Points at limits that
 * are not to be tried are left out. Call it before the first step, with the same points on all ranks.
 */
int tuner_know(struct fly_tuner *tuner, const struct fly_power_point *points, size_t count,
               struct fly_error *out_error);

/*
 * Takes the profiles of other batch sizes, which show what need not be measured (policy/limit_plan.h). Call
 * it after tuner_measure_profile and before the first step, with the same points on all ranks. At most
 * LIMIT_CURVES_MAX are taken, and TUNER_PLAN_POINTS_MAX points.
 */
enum { TUNER_PLAN_POINTS_MAX = 160 };
void tuner_plan(struct fly_tuner *tuner, const struct limit_curve *curves, size_t curve_count);

/*
 * The training has ended, at an epoch's end, and this tuner is not asked again: the limit on trial counts as
 * measured if its steps so far say enough. For one rank alone, whose windows are those of all.
 */
void tuner_keep_unfinished(struct fly_tuner *tuner);

/* Whether every limit is measured or left out, and the tuner only measures some of them again. */
bool tuner_only_looks(const struct fly_tuner *tuner);

/*
 * Like fly_tuner_report; during a look the setting "now" is the chosen one, not the one that is looked at,
 * and while no step comes the one that was given back.
 */
int tuner_report_chosen(const struct fly_tuner *tuner, struct fly_tuner_report *out_report);

/* Stores the measured limits, highest first, in the knob's unit; returns how many. */
size_t tuner_measured_points(const struct fly_tuner *tuner,
                             struct fly_power_point out_points[FLY_POWER_SEARCH_LIMITS_MAX]);

/*
 * Like fly_tuner_summary, with the sign that the terminal knows; and what the next limit would take that is
 * too slow for the bound, "" where none was measured.
 */
char *tuner_summary(const struct fly_tuner *tuner, const char *plus_minus, char text[FLY_TUNER_SUMMARY_MAX]);
char *tuner_summary_next(const struct fly_tuner *tuner, const char *plus_minus,
                         char text[FLY_TUNER_SUMMARY_MAX]);

/*
 * For a turner that turns not all of the meter's GPUs: which to leave alone, in the meter's order, since they
 * have no work; it changes while nothing is turned, and is valid as long as the tuner. Without this call all
 * are to be turned.
 */
const bool *tuner_left_alone(struct fly_tuner *tuner);

/* What the tuner's profile was measured on; valid as long as the tuner. */
const struct profile_key *tuner_key(const struct fly_tuner *tuner);

#endif
