/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_optimum.h"

#include <math.h>

/* Finds the optimum without pauses, or with pauses that cost nothing. */
static int plan_rates(struct carbon_plan *plan, struct carbon_problem *problem,
                      struct carbon_optimum *optimum, struct fly_error *out_error)
{
    const struct carbon_pause *pause = &plan->settings.pause;
    struct carbon_solution solution;
    int code;

    if (pause->allowed)
        problem->idle_w = pause->idle_w * problem->profile->pue;
    code = carbon_solve(&plan->workspace, problem, &solution, out_error);
    if (code < 0)
        return code;
    *optimum = (struct carbon_optimum){.problem = *problem,
                                       .finish_s = solution.finish_s,
                                       .price = solution.price,
                                       .mix = carbon_solution_mix(problem, &solution, 0),
                                       .cost = NAN};
    return 0;
}

/* Takes the spans before the first pause, and the work in them. */
static void take_first_run(const struct carbon_problem *whole, const struct carbon_pattern *best,
                           struct carbon_optimum *optimum)
{
    struct carbon_problem *problem = &optimum->problem;
    double work_s = 0.0;
    size_t first_off = 0;

    while (first_off < whole->span_count && best->on[first_off])
        first_off++;
    problem->spans = best->spans;
    problem->span_count = best->place[first_off];
    problem->idle_w = NAN;
    if (best->solution.last < problem->span_count) {
        optimum->finish_s = best->solution.finish_s;
        return;
    }
    for (size_t i = 0; i < first_off; i++) {
        struct carbon_mix mix = carbon_pattern_mix(whole, best, i);
        double rate = mix.low.rate + (mix.high.rate - mix.low.rate) * mix.high_share;
        double duration_s = whole->spans[i].duration_s - best->lost_s[i];

        optimum->finish_s += duration_s;
        work_s += rate * duration_s;
    }
    problem->work_s = work_s;
}

/* Finds the optimum with pauses; a mixture with rate 0 means that the job pauses. */
static int plan_pauses(struct carbon_plan *plan, const struct carbon_question *question,
                       struct carbon_problem *problem, struct carbon_optimum *optimum,
                       struct fly_error *out_error)
{
    const struct carbon_pause *pause = &plan->settings.pause;
    struct carbon_pause_now now = {.paused = question->limit_w == 0.0, .held_s = question->held_s};
    const struct carbon_pattern *best = &plan->pauser.best;
    int code;

    if (isnan(question->limit_w))
        now.held_s = INFINITY;
    problem->idle_w = pause->idle_w * question->profile->pue;
    code = carbon_pause_solve(&plan->pauser, &plan->workspace, problem, pause, &now, out_error);
    if (code < 0)
        return code;
    *optimum = (struct carbon_optimum){.problem = *problem, .cost = best->cost};
    for (size_t i = 0; i < problem->span_count && !carbon_pattern_is_over(best, i); i++)
        optimum->whole_finish_s += best->on[i] ? best->lost_s[i] : problem->spans[i].duration_s;
    optimum->whole_finish_s += best->solution.finish_s;
    if (!best->on[0])
        return 0;
    optimum->lost_s = best->lost_s[0];
    optimum->mix = carbon_pattern_mix(problem, best, 0);
    optimum->price = best->solution.price;
    take_first_run(problem, best, optimum);
    return 0;
}

int carbon_optimum_find(struct carbon_plan *plan, const struct carbon_question *question,
                        struct carbon_problem *problem, struct carbon_optimum *out_optimum,
                        struct fly_error *out_error)
{
    return carbon_optimum_is_priced(plan) ? plan_pauses(plan, question, problem, out_optimum, out_error)
                                          : plan_rates(plan, problem, out_optimum, out_error);
}
