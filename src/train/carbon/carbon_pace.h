/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_PACE_H
#define FLYBALL_TRAIN_CARBON_CARBON_PACE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/carbon/carbon_hull.h"

/*
 * How much work of a training is left, and how much time its bound leaves for it, by the measured times of
 * steps and not the profile's. Work is in seconds at the fastest limit.
 *
 *     carbon_pace_profile(&pace, &profile, step_s);     a new profile: step_s is of its fastest limit
 *     carbon_pace_stands(&pace, limit_w, at_once);      after each change
 *     carbon_pace_progress(&pace, &progress, now_s);    every few seconds
 *     ... carbon_pace_work_s, carbon_pace_allowed_s ...
 *
 * A slowdown compares with a training at the fastest limit that never took place: each step counts as the
 * time that it would have taken there. When steps take longer than the profile says, the cause may be the
 * limit or the machine. They count as slowed by the limit, which makes time short, until the next profile
 * shows the ratios. When steps take less time, the fastest limit would have been faster too. The time of
 * measuring profiles counts like any other. Pure.
 */

/* How far the training is, as a tuner or a session counts it (train/program/step_count.h). */
struct carbon_progress {
    double steps_done, steps_left; /* steps_left NAN: not known */
    double step_time_s;            /* spent in steps so far, without evaluation */
    double steps_earlier; /* of steps_done, those of earlier attempts, which have their own accounts */
};

struct carbon_pace {
    struct carbon_profile profile; /* no points: there is none yet */
    double fastest_s;              /* time of a step at its fastest limit */
    double factor;                 /* measured time of steps over the profile's, in the last minute */
    double usual;                  /* the same in the last ten minutes, or since it changed */
    struct carbon_progress seen;
    size_t at; /* index of the point that stands; the profile's count: none of them */
    bool pure; /* it has stood since progress was last seen */
    /* The time at the fastest limit of what was done before this profile, and since: */
    double past_s, since_s;
    double block_told_s, block_real_s;   /* of the last minutes, by the profile, and as measured */
    double steps_mixed;                  /* of the steps since, those at no known limit */
    double time_at_s[CARBON_POINTS_MAX]; /* and the time of the others under each limit */
    double stalled_s;                    /* extra time of stretches that were held up */
    unsigned stalls;                     /* how many stretches in a row were held up */
    /* Time outside of steps: evaluation and anything else. */
    double first_s, first_step_time_s, first_steps, now_s;
    double other_seen_s;                    /* as of the newest progress */
    double piece_s, piece_steps, piece_gap; /* the newest piece, its step, and steps since the one before */
};

void carbon_pace_init(struct carbon_pace *pace);

/* Takes a new profile. Its ratios are used to judge anew what was done before. */
void carbon_pace_profile(struct carbon_pace *pace, const struct carbon_profile *profile, double fastest_s);

/*
 * Tells which limit stands; NAN: none of the profile's. `at_once`: no step began between the last progress
 * and this change.
 */
void carbon_pace_stands(struct carbon_pace *pace, double limit_w, bool at_once);

/* Takes the progress; `now_s` is monotonic, with any origin. */
void carbon_pace_progress(struct carbon_pace *pace, const struct carbon_progress *progress, double now_s);

/* Time that the rest takes at the fastest limit; NAN when not known. */
double carbon_pace_work_s(const struct carbon_pace *pace);

/* Time in steps left for it by a bound of so many times the fastest time. */
double carbon_pace_allowed_s(const struct carbon_pace *pace, double max_slowdown);

/*
 * By how many seconds that bound exceeds the time for the rest at the fastest limit, if each step takes
 * `step_s` there from now on, and the machine is to blame for longer steps so far. Below 0: the bound cannot
 * be kept. With or without a profile.
 */
double carbon_pace_spare_s(const struct carbon_pace *pace, double max_slowdown,
                           const struct carbon_progress *progress, double step_s);

/* Time outside of steps, per step. */
double carbon_pace_other_s(const struct carbon_pace *pace);

/*
 * Time outside of steps that is still to come; NAN when not known. When it comes in pieces, like evaluation
 * after each epoch, the piece after the last epoch is included up to the end.
 */
double carbon_pace_other_left_s(const struct carbon_pace *pace);

#endif
