/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `bandit`: a search without a model, to show what a model adds. Each batch size has an estimate
 * of the logarithm of its cost: the mean of what it and the others cost, where a trial d octaves
 * away counts 2^(-2d) of one of its own. Of the batch sizes that ran and those beside one that
 * reached its target, the one with the least `estimate - width / sqrt(trials that count)` runs: a
 * lower confidence bound (Lai and Robbins, "Asymptotically Efficient Adaptive Allocation Rules",
 * 1985).
 *
 * A trial is stopped at twice the best mean, and then counts as if it had cost twice what it has.
 * A retry, and a trial while others run, takes the batch size with the least estimate.
 */
#include <math.h>
#include <stdbool.h>

#include <flyball/cost.h>

#include "base/math/portable_math.h"
#include "policy/batch_policy.h"
#include "policy/early_stopping.h"

static const double width = 0.15, stop_at = 2.0, missed_factor = 2.0;

struct lever {
    double trials, log_cost; /* how many, and the sum of their logarithms */
    bool reached, barred;    /* its target once; it does not fit, or was given up */
};

struct bandit_state {
    const struct job_spec *spec;
    struct lever levers[];
};

/* An estimate of one batch size's log cost. */
struct estimate {
    double mean, trials; /* infinite and 0 if nothing is known */
};

static int bandit_create(const struct batch_policy *self, const struct job_spec *spec,
                         const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                         struct fly_error *out_error)
{
    struct bandit_state *state =
        arena_alloc(arena, 1, sizeof *state + spec->batch_count * sizeof state->levers[0]);

    (void)self;
    (void)parameters;
    if (state == NULL)
        return error_no_memory(out_error);
    state->spec = spec;
    *out_state = state;
    return 0;
}

static void bandit_end(struct bandit_state *state, const struct trial_ended *ended)
{
    struct lever *lever = &state->levers[ended->batch];
    double cost_j = fly_cost(state->spec->eta, state->spec->max_power_w, ended->energy_j, ended->time_s);

    if (!outcome_observed(ended->outcome) || !(cost_j > 0.0))
        return;
    lever->reached |= ended->outcome == TRIAL_REACHED;
    lever->trials += 1.0;
    lever->log_cost += portable_log(ended->outcome == TRIAL_REACHED ? cost_j : missed_factor * cost_j);
}

static void bandit_fold(void *opaque, const struct event *event)
{
    struct bandit_state *state = opaque;

    if (event->kind == EVENT_TRIAL_ENDED)
        bandit_end(state, event->ended);
    if (event->kind == EVENT_BATCH_GIVEN_UP)
        state->levers[event->given_up].barred = true;
    if (event->kind != EVENT_BATCHES_EXCLUDED)
        return;
    for (size_t i = event->first_excluded; i < state->spec->batch_count; i++)
        state->levers[i].barred = true;
}

/* Returns what a trial at one batch size counts at another: (ratio of the sizes)^-2. */
static double strength(const struct bandit_state *state, size_t one, size_t other)
{
    double ratio = (double)state->spec->batches[one].size / (double)state->spec->batches[other].size;

    return ratio < 1.0 ? ratio * ratio : 1.0 / (ratio * ratio);
}

static struct estimate estimate(const struct bandit_state *state, size_t batch)
{
    double trials = 0.0, sum = 0.0;

    for (size_t i = 0; i < state->spec->batch_count; i++) {
        double counts = strength(state, batch, i);

        trials += counts * state->levers[i].trials;
        sum += counts * state->levers[i].log_cost;
    }
    return trials > 0.0 ? (struct estimate){sum / trials, trials} : (struct estimate){INFINITY, 0.0};
}

/* Returns the batch size that reached its target with the least mean of its own; the default if none did. */
static size_t best_known(const struct bandit_state *state, double *out_log_cost)
{
    size_t best = state->spec->default_batch;

    *out_log_cost = INFINITY;
    for (size_t i = 0; i < state->spec->batch_count; i++) {
        const struct lever *lever = &state->levers[i];

        if (lever->reached && !lever->barred && lever->log_cost / lever->trials < *out_log_cost) {
            best = i;
            *out_log_cost = lever->log_cost / lever->trials;
        }
    }
    return best;
}

static bool may_run(const struct bandit_state *state, size_t batch)
{
    const struct lever *levers = state->levers;

    return !levers[batch].barred && (levers[batch].trials > 0.0 || (batch > 0 && levers[batch - 1].reached) ||
                                     (batch + 1 < state->spec->batch_count && levers[batch + 1].reached));
}

static size_t least_bound(const struct bandit_state *state, size_t otherwise)
{
    double least = INFINITY;
    size_t chosen = otherwise;

    for (size_t i = 0; i < state->spec->batch_count; i++) {
        const struct estimate guess = estimate(state, i);
        double bound = guess.mean - width / sqrt(guess.trials);

        if (may_run(state, i) && bound < least) {
            least = bound;
            chosen = i;
        }
    }
    return chosen;
}

static int bandit_propose(const void *opaque, const struct batch_question *question,
                          struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct bandit_state *state = opaque;
    double log_cost;
    size_t best = best_known(state, &log_cost);
    struct proposal proposal = {.batch = best,
                                .limit_rule = LIMIT_PROFILED,
                                .reason = REASON_BEST_SEEN,
                                .policy_version = batch_policy_bandit.version};

    (void)out_error;
    if (question->try_number == 0 && question->in_flight == 0 && isfinite(log_cost))
        proposal.batch = least_bound(state, best);
    if (proposal.batch != best)
        proposal.reason = REASON_EXPLORE;
    *out_proposal = proposal;
    return 0;
}

static int bandit_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                            struct fly_error *out_error)
{
    const struct bandit_state *state = opaque;
    const struct job_spec *spec = state->spec;
    double log_cost, bound_j;
    size_t best = best_known(state, &log_cost);

    (void)out_error;
    bound_j = question->batch != best ? stop_at * portable_exp(log_cost) : INFINITY;
    *out_epochs = early_stopping_epochs(
        bound_j, fly_cost(spec->eta, spec->max_power_w, question->epoch_energy_j, question->epoch_time_s),
        spec->max_epochs);
    return 0;
}

const struct batch_policy batch_policy_bandit = {
    .name = "bandit",
    .summary = "the least lower confidence bound on log cost, with neighbours; no model",
    .version = 1,
    .create = bandit_create,
    .fold = bandit_fold,
    .propose = bandit_propose,
    .epoch_cap = bandit_epoch_cap,
};
