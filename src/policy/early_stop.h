/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_EARLY_STOP_H
#define FLYBALL_POLICY_EARLY_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/objective.h>
#include <flyball/power_profile.h>

/* A measured limit, and whether it held the GPUs down. */
struct early_stop_point {
    struct fly_power_point point;
    bool binds;
    double error; /* how far its score may be off, as a fraction; NAN: not known, and nothing is concluded */
};

/*
 * Whether no limit below the measured ones can be the choice any more.
 *
 * Where limits bind, time rises ever faster as they fall, and so do, once past
 * their least, energy and cost: then, and only then, what got clearly worse gets
 * worse still. So the two lowest limits must bind, and the lowest be worse than
 * the one above it and by more than 10 %, and more than both may be off, worse than
 * the best, or take by more than 10 % longer than the bound allows; or both by more
 * than 5 %, since one alone may be chance. Above the power that is drawn scores
 * wander with chance, and nothing is concluded.
 *
 * points       highest limit first; the first is the bound's reference
 * max_power_w  as in cost.h
 *
 * Pure; thread-safe.
 */
bool early_stop(const struct early_stop_point *points, size_t count, const struct fly_objective *objective,
                double max_power_w);

#endif
