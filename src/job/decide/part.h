/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_PART_H
#define FLYBALL_JOB_DECIDE_PART_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/power_profile.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * What trainings that were too short measured so far of a batch size's power profile:
 * at most JOB_KNOWN_MAX points (job.h), one of a limit, of which the newest counts. All
 * zero: none.
 */
struct profile_part {
    struct fly_power_point *points; /* in an arena; ascending limits */
    size_t count, capacity;
};

/* Takes points in; those beyond the most are left out. FLY_ENOMEM. */
int profile_part_take(struct profile_part *part, struct arena *arena, const struct fly_power_point *points,
                      size_t count, struct fly_error *out_error);

/* Whether it has each of them as it is. */
bool profile_part_has(const struct profile_part *part, const struct fly_power_point *points, size_t count);

#endif
