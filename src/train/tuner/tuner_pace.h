/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_PACE_H
#define FLYBALL_TRAIN_TUNER_TUNER_PACE_H

#include <flyball/tuner.h>

/*
 * Judges what sets the pace of a training's steps. Pure. Where the GPU does not, a step takes what it takes
 * under any limit, and a step time measured later may differ from the profile's by any amount.
 *
 * The times differ when the newest check is off the profile's time of the same limit by more than 5 %. Where
 * the errors of both are as large, scatter is all that can be said. Beyond them, pauses or waits of a tenth
 * of the time explain it; else a profile in which a limit that takes 15 % of the power away leaves the time
 * as it is; else nothing that was measured. While the times agree, only pauses or waits of 30 % of the time
 * are worth a word.
 */
struct pace_facts {
    double profile_s, checked_s;    /* step times of the chosen limit; NAN: not known */
    double error;                   /* half width of their ratio's interval, as a fraction */
    double pause_share, idle_share; /* NAN: not known */
    /* Step time and power of the lowest limit that binds, as fractions of the highest limit's. */
    double lowest_per_highest_s, lowest_per_highest_w;
};

enum fly_tuner_pace pace_judge(const struct pace_facts *facts);

#endif
