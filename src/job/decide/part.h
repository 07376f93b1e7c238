/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_PART_H
#define FLYBALL_JOB_DECIDE_PART_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/power_profile.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * The points of a batch size's power profile that trainings too short to finish it have measured: at most
 * JOB_KNOWN_MAX (job.h), one per limit, the newest of each. All zeros: none.
 */
struct profile_part {
    struct fly_power_point *points; /* in an arena; ascending limits */
    size_t count, capacity;
};

/* Adds points; leaves out those beyond the maximum. Returns 0 or FLY_ENOMEM. */
int profile_part_take(struct profile_part *part, struct arena *arena, const struct fly_power_point *points,
                      size_t count, struct fly_error *out_error);

/* Whether it holds each of the points unchanged. */
bool profile_part_has(const struct profile_part *part, const struct fly_power_point *points, size_t count);

#endif
