/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/comparison.h"

#include <math.h>

enum { CANCEL_EVERY = 1024 };

/* Running sums of one side. */
struct side {
    struct recurring job;
    struct recurrence totals;
    struct recurrence tail[COMPARISON_TAIL]; /* a ring */
};

struct race {
    const struct comparison_plan *plan;
    struct side policy, baseline;
    uint64_t completed;
    uint64_t last_behind; /* recurrences done when the policy was last not cheaper than the default */
    double regret;
};

static int side_step(struct side *side, uint64_t at, struct fly_error *out_error)
{
    struct recurrence *recurrence = &side->tail[at % COMPARISON_TAIL];
    int code = recurring_run(&side->job, recurrence, out_error);

    if (code < 0)
        return code;
    recurrence_add(&side->totals, recurrence);
    return 0;
}

static int race_step(struct race *race, struct fly_error *out_error)
{
    const struct optimum *optimum = race->plan->optimum;
    int code = side_step(&race->policy, race->completed, out_error);

    if (code == 0)
        code = side_step(&race->baseline, race->completed, out_error);
    if (code < 0)
        return code;
    if (optimum != NULL) {
        double best_j = race->plan->drift == NULL ? optimum->cost_j
                                                  : drift_optimum(race->plan->drift, race->completed).cost_j;

        race->regret += (race->policy.tail[race->completed % COMPARISON_TAIL].cost_j - best_j) / best_j;
    }
    race->completed++;
    if (!(race->policy.totals.cost_j < race->baseline.totals.cost_j))
        race->last_behind = race->completed;
    if (race->plan->curve != NULL)
        curve_take(race->plan->curve, race->completed, optimum != NULL ? race->regret : NAN,
                   &race->policy.tail[(race->completed - 1) % COMPARISON_TAIL], &race->policy.totals);
    return 0;
}

static double change_percent(double ours, double theirs)
{
    return (ours / theirs - 1.0) * 100.0;
}

static struct recurrence tail_sum(const struct side *side, uint64_t completed)
{
    struct recurrence sum = {0};
    uint64_t count = completed < COMPARISON_TAIL ? completed : COMPARISON_TAIL;

    for (uint64_t i = completed - count; i < completed; i++)
        recurrence_add(&sum, &side->tail[i % COMPARISON_TAIL]);
    return sum;
}

static void fill_figures(const struct race *race, double figures[FIGURE_COUNT])
{
    const struct recurrence *policy = &race->policy.totals, *baseline = &race->baseline.totals;
    const struct recurrence ours = tail_sum(&race->policy, race->completed);
    const struct recurrence theirs = tail_sum(&race->baseline, race->completed);

    figures[FIGURE_TAIL_ENERGY] = change_percent(ours.energy_j, theirs.energy_j);
    figures[FIGURE_TAIL_TIME] = change_percent(ours.time_s, theirs.time_s);
    figures[FIGURE_TAIL_COST] = change_percent(ours.cost_j, theirs.cost_j);
    figures[FIGURE_WHOLE_ENERGY] = change_percent(policy->energy_j, baseline->energy_j);
    figures[FIGURE_WHOLE_TIME] = change_percent(policy->time_s, baseline->time_s);
    figures[FIGURE_WHOLE_COST] = change_percent(policy->cost_j, baseline->cost_j);
    figures[FIGURE_REGRET] = race->plan->optimum != NULL ? race->regret : NAN;
    figures[FIGURE_PAID_OFF] = race->last_behind < race->completed ? (double)race->last_behind + 1.0 : NAN;
    figures[FIGURE_TRIES] = (double)race->policy.job.tries;
}

static bool given_up(const struct comparison_plan *plan, uint64_t completed)
{
    return plan->cancelled != NULL && completed % CANCEL_EVERY == 0 &&
           plan->cancelled(plan->cancelled_context);
}

static int run_race(struct race *race, struct comparison *comparison, struct fly_error *out_error)
{
    const struct comparison_plan *plan = race->plan;
    int code = 0;

    while (race->completed < plan->recurrences && code == 0) {
        if (given_up(plan, race->completed))
            return error_set(out_error, FLY_ESTATE, "the simulation was given up");
        code = race_step(race, &comparison->end);
    }
    if (code < 0 && code != FLY_EEXHAUSTED) {
        if (out_error != NULL)
            *out_error = comparison->end;
        return code;
    }
    comparison->ended = code;
    comparison->completed = race->completed;
    if (race->completed > 0)
        comparison->last = race->policy.tail[(race->completed - 1) % COMPARISON_TAIL];
    for (int i = 0; i < FIGURE_COUNT; i++)
        comparison->figures[i] = NAN;
    if (code == 0)
        fill_figures(race, comparison->figures);
    return 0;
}

int comparison_run(const struct comparison_plan *plan, struct comparison *out_comparison,
                   struct fly_error *out_error)
{
    struct race race = {.plan = plan};
    struct comparison comparison = {0};
    int code = recurring_init(&race.policy.job, plan->workload, plan->policy, &plan->parameters, out_error);

    if (code < 0)
        return code;
    code = recurring_init(&race.baseline.job, plan->workload, &batch_policy_default, &plan->parameters,
                          out_error);
    if (code < 0)
        goto end_policy;
    race.policy.job.environment.drift = race.baseline.job.environment.drift = plan->drift;
    race.policy.job.observer = plan->observer;
    race.policy.job.observer_context = plan->observer_context;
    if (plan->in_order)
        code = recurring_in_order(&race.policy.job, out_error);
    if (code == 0 && plan->in_order)
        code = recurring_in_order(&race.baseline.job, out_error);
    if (code == 0)
        code = run_race(&race, &comparison, out_error);
    if (code == 0)
        *out_comparison = comparison;
    recurring_deinit(&race.baseline.job);
end_policy:
    recurring_deinit(&race.policy.job);
    return code;
}
