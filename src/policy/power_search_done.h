/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_POWER_SEARCH_DONE_H
#define FLYBALL_POLICY_POWER_SEARCH_DONE_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/objective.h>
#include <flyball/power_profile.h>
#include <flyball/power_search.h>

/* A measured limit, and whether it slowed the GPUs down. */
struct power_search_point {
    struct fly_power_point point;
    bool binds;
    double error; /* how far its score may be off, as a fraction; NAN: unknown, and nothing is concluded */
};

/*
 * Returns true when no limit below the measured ones can be the choice any more.
 *
 * Where limits bind, time rises ever faster as limits fall. So do energy and cost once they are
 * past their minimum. Then, and only then, what became clearly worse becomes worse still. So both
 * lowest limits must bind, and the lowest must be worse than the one above it and clearly bad, by
 * its score or by its time:
 * - its score is worse than the best by more than 10 %, or the scores of both are by more than
 *   5 %, since one alone may be chance; and it is worse than the best by more than both may be
 *   off;
 * - it takes over 10 % longer than the bound allows, or both take over 5 % longer.
 *
 * Above the power that the GPUs draw, scores vary by chance, and nothing is concluded.
 *
 * points       highest limit first; the first is the bound's reference
 * max_power_w  as in cost.h
 *
 * Pure; thread-safe.
 */
bool power_search_done(const struct power_search_point *points, size_t count,
                       const struct fly_objective *objective, double max_power_w);

/*
 * Leaves out one limit that the search has yet to come to, since its figures would be those of another one.
 * Does nothing for the limit on trial, for one that was measured, and for one that the search does not have.
 */
void power_search_spare(struct fly_power_search *search, double limit_w);

#endif
