/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_OPTIMUM_H
#define FLYBALL_POLICY_CARBON_CARBON_OPTIMUM_H

#include "policy/carbon/carbon_plan.h"

/*
 * The exact optimum of the rest of a job (carbon_solver.h, carbon_pause.h) as the plan makes its schedule
 * of it: the part up to the first pause that costs something, where it ends, and the price of work there.
 * Pure.
 */
struct carbon_optimum {
    struct carbon_problem problem; /* that part */
    double finish_s, price;
    struct carbon_mix mix; /* of the first span; a rate of 0: it pauses */
    double lost_s;         /* until a paused job runs again */
    double cost;           /* of the whole rest; NaN: of the schedule alone */
    double whole_finish_s; /* of the whole rest */
};

/*
 * Solves a problem, whose idle_w it fills in. Memory is the plan's. FLY_EEXHAUSTED where the work cannot be
 * done in time.
 */
int carbon_optimum_find(struct carbon_plan *plan, const struct carbon_question *question,
                        struct carbon_problem *problem, struct carbon_optimum *out_optimum,
                        struct fly_error *out_error);

/* Whether a pause costs time, or may not be of any length. */
static inline bool carbon_optimum_is_priced(const struct carbon_plan *plan)
{
    return plan->settings.pause.allowed && !carbon_pause_is_free(&plan->settings.pause);
}

#endif
