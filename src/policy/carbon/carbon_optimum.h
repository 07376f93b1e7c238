/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_OPTIMUM_H
#define FLYBALL_POLICY_CARBON_CARBON_OPTIMUM_H

#include "policy/carbon/carbon_plan.h"

/*
 * The exact optimum of the rest of a job (carbon_solver.h, carbon_pause.h), in the form from
 * which the plan makes its schedule: the part up to the first pause that costs something, when
 * that part ends, and the price of work there. Pure.
 */
struct carbon_optimum {
    struct carbon_problem problem; /* of that part */
    double finish_s, price;
    struct carbon_mix mix; /* of the first span; at rate 0 the job pauses */
    double lost_s;         /* until a paused job runs again */
    double cost;           /* of the whole rest; NaN: only the schedule's cost is known */
    double whole_finish_s; /* of the whole rest */
};

/*
 * Solves a problem and fills in its idle_w. Uses the memory of the plan. FLY_EEXHAUSTED if the
 * work cannot be done in time.
 */
int carbon_optimum_find(struct carbon_plan *plan, const struct carbon_question *question,
                        struct carbon_problem *problem, struct carbon_optimum *out_optimum,
                        struct fly_error *out_error);

/* Returns whether a pause costs time or has a least duration. */
static inline bool carbon_optimum_is_priced(const struct carbon_plan *plan)
{
    return plan->settings.pause.allowed && !carbon_pause_is_free(&plan->settings.pause);
}

#endif
