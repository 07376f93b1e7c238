/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_WORKLOAD_SETTING_H
#define FLYBALL_TRAIN_TUNER_WORKLOAD_SETTING_H

#include "shapes/shape.h"

/*
 * Workload power profiles as settings of a tuner, which are numbers: the highest is none, as for the
 * other knobs, then comes profile 0, and so on down. Profiles have no order, so nothing may be concluded
 * from one about another; the numbers only tell them apart. A setting of 0 is what was requested at the
 * start if that is neither none nor a single profile.
 */
double workload_setting(int profile);

/* Returns the profile, FLY_TUNER_NO_PROFILE or FLY_TUNER_SEVERAL_PROFILES. */
int workload_of_setting(double setting);

enum { WORKLOAD_SETTING_MAX = 24 };
/* Writes "MAX_Q", "4", "none", "several". */
char *workload_setting_text(double setting, char text[WORKLOAD_SETTING_MAX]);

/* A setting as the name of its profile or "none", for members of type double. */
extern const struct shape_coding workload_setting_coding;

#endif
