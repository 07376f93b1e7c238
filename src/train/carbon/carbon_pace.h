/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_PACE_H
#define FLYBALL_TRAIN_CARBON_CARBON_PACE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/carbon/carbon_hull.h"

/*
 * How much work is left of a training, and how much time its bound leaves for it, as steps
 * were measured to take and not as the profile says. Work is in seconds at the fastest limit.
 *
 *     carbon_pace_profile(&pace, &profile, step_s);     a new profile: step_s is of its fastest limit
 *     carbon_pace_stands(&pace, limit_w, at_once);      after each change
 *     carbon_pace_progress(&pace, &progress, now_s);    every few seconds
 *     ... carbon_pace_work_s, carbon_pace_allowed_s ...
 *
 * A slowdown is a ratio to a training at the fastest limit, of which there is none: each step
 * counts as what it would have taken there. Where steps take longer than the profile says,
 * it may be the limit's doing or the machine's. It counts as the limit's, so that time is short,
 * until the next profile, whose ratios tell. Where they take less, the fastest limit would have
 * been faster too. The time of measuring profiles is time like any other. Pure.
 */

/* How far the training is, as a tuner or a session has counted it (train/program/step_count.h). */
struct carbon_progress {
    double steps_done, steps_left; /* left: NAN: not known */
    double step_time_s;            /* spent in steps so far, evaluation excluded */
    double steps_earlier; /* of steps_done, those of earlier attempts, which have accounts of their own */
};

struct carbon_pace {
    struct carbon_profile profile; /* no points: none yet */
    double fastest_s;              /* a step at its fastest limit */
    double factor;                 /* of what it says, steps take; of the last minute, */
    double usual;                  /* and of the last ten, or since that changed */
    struct carbon_progress seen;
    size_t at; /* the point that stands; the profile's count: none of them */
    bool pure; /* and since progress was last seen */
    /* At the fastest limit, what was done before this profile would have taken, and what was done since: */
    double past_s, since_s;
    double block_told_s, block_real_s;   /* of the last minutes, by the profile, and by how long it took; */
    double steps_mixed;                  /* of these, steps at no known limit, */
    double time_at_s[CARBON_POINTS_MAX]; /* and the time of the others under each */
    double stalled_s;                    /* in stretches that were held up, */
    unsigned stalls;                     /* so many on end by now */
    /* Evaluation and whatever else is no step. */
    double first_s, first_step_time_s, first_steps, now_s;
    double other_seen_s; /* of it, at the newest progress */
    double piece_s, piece_steps,
        piece_gap; /* its newest piece, after so many steps, so many after the last */
};

void carbon_pace_init(struct carbon_pace *pace);

/* What was done before is judged anew by the ratios of this one. */
void carbon_pace_profile(struct carbon_pace *pace, const struct carbon_profile *profile, double fastest_s);

/* NAN: another than the profile's. `at_once`: no step began between the last progress and this. */
void carbon_pace_stands(struct carbon_pace *pace, double limit_w, bool at_once);

/* `now_s` is monotonic, from any start. */
void carbon_pace_progress(struct carbon_pace *pace, const struct carbon_progress *progress, double now_s);

/* What is left takes so long at the fastest limit; NAN where that is not known. */
double carbon_pace_work_s(const struct carbon_pace *pace);

/* Time in steps that a bound of so many times the fastest leaves for it. */
double carbon_pace_allowed_s(const struct carbon_pace *pace, double max_slowdown);

/*
 * By how much that bound exceeds what the rest takes at the fastest limit, where a step takes `step_s`
 * there from now on, and longer steps so far were the machine's doing; below 0: it falls short. With or
 * without a profile.
 */
double carbon_pace_spare_s(const struct carbon_pace *pace, double max_slowdown,
                           const struct carbon_progress *progress, double step_s);

/* What is no step takes so long for each step. */
double carbon_pace_other_s(const struct carbon_pace *pace);

/*
 * So much of it is still to come; NAN where that is not known. Where it comes in pieces, as evaluation after
 * each epoch does, the one after the last epoch is in it up to the end.
 */
double carbon_pace_other_left_s(const struct carbon_pace *pace);

#endif
