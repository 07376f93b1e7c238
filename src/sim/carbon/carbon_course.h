/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_CARBON_COURSE_H
#define FLYBALL_SIM_CARBON_CARBON_COURSE_H

#include "grid/forecast.h"
#include "model/energy_slice.h"
#include "policy/carbon/carbon_plan.h"

/*
 * A training on paper: walks the carbon plan from a moment to the end of the work. The plan is
 * asked as in a live run and in the simulator, and time passes as the profile says.
 *
 *     carbon_course_walk(&request, &course, out_error);
 *     ... course.slices[0 .. course.count - 1], course.finish_s ...
 *     carbon_course_deinit(&course);
 *
 * The walk uses nothing that becomes known later than `now_s`. Until then the plan has a new
 * outlook at each border of a period, so that a start in the past gives what the simulator's
 * policy `plan` gives; after it the plan keeps the outlook of that moment. From `now_s` on,
 * published forecasts count as far as they reach; before it, only for the current period.
 */
struct carbon_course_request {
    const struct carbon_profile *profile;              /* with host and PUE */
    const struct grid_answer *answers[CARBON_SIGNALS]; /* settled; NULL: none */
    struct carbon_objective objective;
    struct carbon_plan_settings plan;
    double work_s, bound_s;                         /* at the fastest limit; from the start */
    int64_t start_s;                                /* since 1970 */
    int64_t now_s;                                  /* what is known at that time is used */
    void (*progress)(void *context, double done_s); /* of the work; NULL: no reports */
    void *progress_context;
};

struct carbon_course {
    struct energy_slice *slices; /* owned; one for each stretch at one limit; 0 W: paused or restoring */
    size_t count, capacity;
    uint32_t decisions, changes;
    uint32_t reasons[CARBON_REASON_COUNT]; /* how many decisions had each reason */
    double finish_s;                       /* from the start */
    bool late;
    struct grid_outlook outlook; /* the last one; owned */
};

/*
 * Walks the course. FLY_EUSAGE for settings out of range, FLY_ELIMIT for a course of too many
 * slices, FLY_ENOMEM.
 */
int carbon_course_walk(const struct carbon_course_request *request, struct carbon_course *out_course,
                       struct fly_error *out_error);
void carbon_course_deinit(struct carbon_course *course);

/*
 * Gives an answer as the course saw it: actual values, and its last outlook's expectations in
 * place of the published forecast. `actual` is borrowed; free the rest with
 * grid_series_deinit(&answer.published) alone. FLY_ELIMIT, FLY_ENOMEM.
 */
int carbon_course_answer(const struct carbon_course *course, const struct grid_answer *answer, int signal,
                         struct grid_answer *out_answer, struct fly_error *out_error);

#endif
