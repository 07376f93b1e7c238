/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/comparison.h"

#include <math.h>

enum { CANCEL_EVERY = 1024, DEAR_ROW = 10 };

static const double dear_factor = 1.2;

/* Running sums of one side. */
struct side {
    struct recurrence totals;
    struct recurrence tail[COMPARISON_TAIL]; /* a ring */
};

struct race {
    const struct comparison_plan *plan;
    struct recurring policy_job, baseline_job;
    struct burst burst; /* the policy's job instead of policy_job, if recurrences come in bursts */
    struct side policy, baseline;
    uint64_t completed;
    uint64_t alone;       /* of these, by the policy itself */
    uint64_t last_behind; /* recurrences done when the policy was last not cheaper than the default */
    double regret;
    unsigned dear_row;  /* a bit for each of the last DEAR_ROW recurrences: it was dear */
    unsigned dear_most; /* set in any row so far */
    double allowed_s;   /* expected time that the job's bound allows; infinite without one */
    double choices_s[COMPARISON_CHOICES]; /* expected times of the last choices: a ring */
    int ended;                            /* the code with which the policy's job ended */
};

static size_t burst_size(const struct comparison_plan *plan)
{
    return plan->burst > 1 ? plan->burst : 1;
}

static void side_take(struct side *side, uint64_t at, const struct recurrence *recurrence)
{
    side->tail[at % COMPARISON_TAIL] = *recurrence;
    recurrence_add(&side->totals, recurrence);
}

/* Returns what the last choices take in the mean, in expectation of the trace, over what is allowed. */
static double race_slowness(const struct race *race)
{
    uint64_t count = race->completed < COMPARISON_CHOICES ? race->completed : COMPARISON_CHOICES;
    double sum_s = 0.0;

    if (isinf(race->allowed_s))
        return NAN;
    for (uint64_t i = 0; i < count; i++)
        sum_s += race->choices_s[i];
    return sum_s / (double)count / race->allowed_s;
}

static void race_choice(struct race *race, const struct recurrence *ours)
{
    const struct workload_batch *batch = &race->plan->workload->batches[ours->batch];

    if (isfinite(race->allowed_s))
        race->choices_s[race->completed % COMPARISON_CHOICES] =
            batch->points[workload_find_limit(batch, ours->power_limit_w)].time_s *
            oracle_expected_epochs(race->plan->workload, ours->batch);
}

static void race_sample(const struct race *race, const struct recurrence *last)
{
    if (race->plan->curve != NULL)
        curve_take(race->plan->curve,
                   &(struct curve_sample){.completed = race->completed,
                                          .regret = race->plan->optimum != NULL ? race->regret : NAN,
                                          .last = last,
                                          .totals = &race->policy.totals,
                                          .dear = race->dear_most,
                                          .slowness = race_slowness(race)});
}

static unsigned count_bits(unsigned bits)
{
    unsigned count = 0;

    for (; bits != 0; bits &= bits - 1)
        count++;
    return count;
}

/* Takes one recurrence of both sides. */
static void race_take(struct race *race, const struct recurrence *ours, const struct recurrence *theirs)
{
    const struct comparison_plan *plan = race->plan;
    bool dear = ours->cost_j > dear_factor * theirs->cost_j;

    race_choice(race, ours);
    side_take(&race->policy, race->completed, ours);
    side_take(&race->baseline, race->completed, theirs);
    if (plan->optimum != NULL) {
        double best_j =
            plan->drift == NULL ? plan->optimum->cost_j : drift_optimum(plan->drift, race->completed).cost_j;

        race->regret += (ours->cost_j - best_j) / best_j;
    }
    race->dear_row = (race->dear_row << 1 | dear) & ((1U << DEAR_ROW) - 1);
    if (dear && count_bits(race->dear_row) > race->dear_most)
        race->dear_most = count_bits(race->dear_row);
    race->completed++;
    if (!(race->policy.totals.cost_j < race->baseline.totals.cost_j))
        race->last_behind = race->completed;
    race_sample(race, ours);
}

/* Runs the policy's next recurrences, and tells which of them reached their target. */
static int run_policy(struct race *race, size_t size, struct recurrence *ours, bool *reached,
                      struct fly_error *out_error)
{
    int code;

    if (race->plan->burst <= 1) {
        code = recurring_run(&race->policy_job, ours, out_error);
        *reached = code == 0;
        return code;
    }
    code = burst_run(&race->burst, size, out_error);
    for (size_t i = 0; i < size; i++) {
        ours[i] = race->burst.sums[i];
        reached[i] = race->burst.reached[i];
    }
    return code;
}

/* Runs the next recurrences of both sides; the default's own cost is added where the policy's job has ended.
 */
static int race_step(struct race *race, struct fly_error *out_error)
{
    const struct comparison_plan *plan = race->plan;
    struct recurrence ours[BURST_MAX], theirs;
    bool reached[BURST_MAX];
    size_t size = burst_size(plan);
    int code = 0;

    if (size > plan->recurrences - race->completed)
        size = (size_t)(plan->recurrences - race->completed);
    if (race->ended == 0)
        code = run_policy(race, size, ours, reached, out_error);
    for (size_t i = 0; race->ended != 0 && i < size; i++) {
        ours[i] = (struct recurrence){.energy_j = 0.0};
        reached[i] = false;
    }
    if (code == FLY_EEXHAUSTED && plan->rest_at_default)
        race->ended = code;
    else if (code < 0)
        return code;
    for (size_t i = 0; i < size; i++) {
        struct fly_error error;

        code = recurring_run(&race->baseline_job, &theirs, &error);
        if (code < 0) {
            if (race->ended == 0 || code != FLY_EEXHAUSTED)
                *out_error = error;
            return code;
        }
        race->alone += reached[i];
        if (!reached[i]) {
            ours[i].batch = theirs.batch;
            ours[i].power_limit_w = theirs.power_limit_w;
            recurrence_add(&ours[i], &theirs);
        }
        race_take(race, &ours[i], &theirs);
    }
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
    figures[FIGURE_TRIES] =
        (double)(race->plan->burst > 1 ? race->burst.job.records : race->policy_job.tries);
}

static bool given_up(const struct comparison_plan *plan, uint64_t completed)
{
    return plan->cancelled != NULL && completed % CANCEL_EVERY < burst_size(plan) &&
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
    comparison->ended = race->ended != 0 ? race->ended : code;
    comparison->completed = race->alone;
    if (race->completed > 0)
        comparison->last = race->policy.tail[(race->completed - 1) % COMPARISON_TAIL];
    for (int i = 0; i < FIGURE_COUNT; i++)
        comparison->figures[i] = NAN;
    if (comparison->ended == 0)
        fill_figures(race, comparison->figures);
    return 0;
}

static void set_world(const struct comparison_plan *plan, struct environment *environment)
{
    environment->drift = plan->drift;
    environment->crash_share = plan->crash_share;
}

/* Prepares the policy's job, in whichever way its recurrences come. */
static int begin_policy(struct race *race, struct fly_error *out_error)
{
    const struct comparison_plan *plan = race->plan;
    int code;

    if (plan->burst > 1) {
        code = burst_init(&race->burst, plan->workload, plan->policy, &plan->parameters, out_error);
        if (code < 0)
            return code;
        set_world(plan, &race->burst.job.environment);
        race->burst.observer = plan->observer;
        race->burst.observer_context = plan->observer_context;
        return 0;
    }
    code = recurring_init(&race->policy_job, plan->workload, plan->policy, &plan->parameters, out_error);
    if (code < 0)
        return code;
    set_world(plan, &race->policy_job.environment);
    race->policy_job.observer = plan->observer;
    race->policy_job.observer_context = plan->observer_context;
    return 0;
}

static void end_policy(struct race *race)
{
    if (race->plan->burst > 1)
        burst_deinit(&race->burst);
    else
        recurring_deinit(&race->policy_job);
}

int comparison_run(const struct comparison_plan *plan, struct comparison *out_comparison,
                   struct fly_error *out_error)
{
    struct race race = {.plan = plan, .allowed_s = oracle_allowed_s(plan->workload)};
    struct comparison comparison = {0};
    int code = begin_policy(&race, out_error);

    if (code < 0)
        return code;
    code = recurring_init(&race.baseline_job, plan->workload, &batch_policy_default, &plan->parameters,
                          out_error);
    if (code < 0)
        goto end_policy;
    set_world(plan, &race.baseline_job.environment);
    if (plan->transfer != NULL)
        code =
            transfer_bring(plan->transfer, plan->policy, &plan->parameters,
                           plan->burst > 1 ? &race.burst.job.decider : &race.policy_job.decider, out_error);
    if (code == 0 && plan->in_order && plan->burst <= 1)
        code = recurring_in_order(&race.policy_job, out_error);
    if (code == 0 && plan->in_order)
        code = recurring_in_order(&race.baseline_job, out_error);
    if (code == 0)
        code = run_race(&race, &comparison, out_error);
    if (code == 0)
        *out_comparison = comparison;
    recurring_deinit(&race.baseline_job);
end_policy:
    end_policy(&race);
    return code;
}
