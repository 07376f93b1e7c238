/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches without a model, with which others are compared. Both sum costs for each batch size, and have a
 * best one that is never stopped and that runs again after a failed try and while others run.
 */
#include <math.h>

#include <flyball/cost.h>

#include "base/math/portable_math.h"
#include "policy/batch_policy.h"
#include "policy/early_stopping.h"

/* What is known of one batch size. */
struct plain_arm {
    double trials, cost; /* how many count, and the sum of their costs as the policy counts them */
    bool reached;        /* its target, once */
    bool barred;         /* it does not fit, was given up, or the policy leaves it */
};

struct plain_search {
    const struct job_spec *spec;
    struct plain_arm arms[];
};

static int search_create(const struct batch_policy *self, const struct job_spec *spec,
                         const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                         struct fly_error *out_error)
{
    struct plain_search *search =
        arena_alloc(arena, 1, sizeof *search + spec->batch_count * sizeof search->arms[0]);

    (void)self;
    (void)parameters;
    if (search == NULL)
        return error_no_memory(out_error);
    search->spec = spec;
    *out_state = search;
    return 0;
}

/* Learns from an event which batch sizes cannot run. */
static void search_bar(struct plain_search *search, const struct event *event)
{
    if (event->kind == EVENT_BATCH_GIVEN_UP)
        search->arms[event->given_up].barred = true;
    if (event->kind != EVENT_BATCHES_EXCLUDED)
        return;
    for (size_t i = event->first_excluded; i < search->spec->batch_count; i++)
        search->arms[i].barred = true;
}

static double search_cost(const struct plain_search *search, const struct fly_trial *ended)
{
    return fly_cost(search->spec->eta, search->spec->max_power_w, ended->energy_j, ended->time_s);
}

/* Proposes a batch size, an exploration unless it is the best. */
static struct proposal search_propose(size_t batch, size_t best, uint32_t version)
{
    return (struct proposal){.batch = batch,
                             .limit_rule = LIMIT_PROFILED,
                             .reason = batch == best ? REASON_BEST_SEEN : REASON_EXPLORE,
                             .policy_version = version};
}

/* Returns the epochs that a trial may run where it may cost `most`. */
static uint32_t search_epochs(const struct plain_search *search, const struct epoch_question *question,
                              double most)
{
    const struct job_spec *spec = search->spec;

    return early_stopping_epochs(
        fmax(most - fly_cost(spec->eta, spec->max_power_w, question->apart_energy_j, question->apart_time_s),
             0.0),
        fly_cost(spec->eta, spec->max_power_w, question->epoch_energy_j, question->epoch_time_s),
        spec->max_epochs);
}

/* Returns whether the question is one for which something else than the best may run. */
static bool search_looks(const struct batch_question *question)
{
    return question->try_number == 0 && question->in_flight == 0;
}

/* ---- hill-climb ---- */

/*
 * `hill-climb`: the simplest search that is worth a comparison. Runs the default, then the batch
 * size beside the best one on either side, the larger first, once each; moves to whichever is
 * cheaper in the mean, and stays where neither neighbour is. A trial beside the best one is
 * stopped at 1.5 times the best mean cost, and a batch size that missed its target is not tried
 * again. The best one itself is never stopped. While other trials run, it takes the best one.
 */
static const double climb_stop_at = 1.5; /* of the best mean cost */

static double mean_cost(const struct plain_arm *arm)
{
    return arm->trials > 0.0 && !arm->barred ? arm->cost / arm->trials : INFINITY;
}

/* Returns the cheapest batch size that ran, or the default before there is one. */
static size_t summit(const struct plain_search *search)
{
    size_t best = search->spec->default_batch;

    for (size_t i = 0; i < search->spec->batch_count; i++) {
        if (mean_cost(&search->arms[i]) < mean_cost(&search->arms[best]))
            best = i;
    }
    return best;
}

/* Learns from the end of a trial; a default that missed its target is tried on until others are known. */
static void climb_end(struct plain_search *search, const struct fly_trial *ended)
{
    struct plain_arm *arm = &search->arms[ended->batch];

    if (ended->outcome == TRIAL_REACHED) {
        arm->cost += search_cost(search, ended);
        arm->trials += 1.0;
    } else if (ended->outcome == TRIAL_REFUSED || outcome_observed(ended->outcome)) {
        arm->barred |= ended->batch != summit(search);
    }
}

static void climb_fold(void *state, const struct event *event)
{
    if (event->kind == EVENT_TRIAL_ENDED)
        climb_end(state, event->ended);
    search_bar(state, event);
}

static bool wants_look(const struct plain_search *search, size_t batch)
{
    return batch < search->spec->batch_count && search->arms[batch].trials == 0.0 &&
           !search->arms[batch].barred;
}

static int climb_propose(const void *state, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct plain_search *search = state;
    size_t here = summit(search), batch = here;

    (void)out_error;
    if (search_looks(question) && isfinite(mean_cost(&search->arms[here]))) {
        if (wants_look(search, here + 1))
            batch = here + 1;
        else if (here > 0 && wants_look(search, here - 1))
            batch = here - 1;
    }
    *out_proposal = search_propose(batch, here, batch_policy_hill_climb.version);
    return 0;
}

static int climb_epoch_cap(const void *state, const struct epoch_question *question, uint32_t *out_epochs,
                           struct fly_error *out_error)
{
    const struct plain_search *search = state;
    size_t here = summit(search);

    (void)out_error;
    *out_epochs =
        search_epochs(search, question,
                      question->batch != here ? climb_stop_at * mean_cost(&search->arms[here]) : INFINITY);
    return 0;
}

const struct batch_policy batch_policy_hill_climb = {
    .name = "hill-climb",
    .summary = "the default, then whichever neighbour is cheaper",
    .version = 1,
    .create = search_create,
    .fold = climb_fold,
    .propose = climb_propose,
    .epoch_cap = climb_epoch_cap,
};

/* ---- bandit ---- */

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
static const double width = 0.15, bandit_stop_at = 2.0, missed_factor = 2.0;

/* An estimate of one batch size's log cost. */
struct estimate {
    double mean, trials; /* infinite and 0 if nothing is known */
};

/* Costs are summed as logarithms. */
static void bandit_end(struct plain_search *search, const struct fly_trial *ended)
{
    struct plain_arm *arm = &search->arms[ended->batch];
    double cost_j = search_cost(search, ended);

    if (!outcome_observed(ended->outcome) || !(cost_j > 0.0))
        return;
    arm->reached |= ended->outcome == TRIAL_REACHED;
    arm->trials += 1.0;
    arm->cost += portable_log(ended->outcome == TRIAL_REACHED ? cost_j : missed_factor * cost_j);
}

static void bandit_fold(void *state, const struct event *event)
{
    if (event->kind == EVENT_TRIAL_ENDED)
        bandit_end(state, event->ended);
    search_bar(state, event);
}

/* Returns what a trial at one batch size counts at another: (ratio of the sizes)^-2. */
static double strength(const struct plain_search *search, size_t one, size_t other)
{
    double ratio = (double)search->spec->batches[one].size / (double)search->spec->batches[other].size;

    return ratio < 1.0 ? ratio * ratio : 1.0 / (ratio * ratio);
}

static struct estimate estimate(const struct plain_search *search, size_t batch)
{
    double trials = 0.0, sum = 0.0;

    for (size_t i = 0; i < search->spec->batch_count; i++) {
        double counts = strength(search, batch, i);

        trials += counts * search->arms[i].trials;
        sum += counts * search->arms[i].cost;
    }
    return trials > 0.0 ? (struct estimate){sum / trials, trials} : (struct estimate){INFINITY, 0.0};
}

/* Returns the batch size that reached its target with the least mean of its own; the default if none did. */
static size_t best_known(const struct plain_search *search, double *out_log_cost)
{
    size_t best = search->spec->default_batch;

    *out_log_cost = INFINITY;
    for (size_t i = 0; i < search->spec->batch_count; i++) {
        const struct plain_arm *arm = &search->arms[i];

        if (arm->reached && !arm->barred && arm->cost / arm->trials < *out_log_cost) {
            best = i;
            *out_log_cost = arm->cost / arm->trials;
        }
    }
    return best;
}

static bool may_run(const struct plain_search *search, size_t batch)
{
    const struct plain_arm *arms = search->arms;

    return !arms[batch].barred && (arms[batch].trials > 0.0 || (batch > 0 && arms[batch - 1].reached) ||
                                   (batch + 1 < search->spec->batch_count && arms[batch + 1].reached));
}

static size_t least_bound(const struct plain_search *search, size_t otherwise)
{
    double least = INFINITY;
    size_t chosen = otherwise;

    for (size_t i = 0; i < search->spec->batch_count; i++) {
        const struct estimate guess = estimate(search, i);
        double bound = guess.mean - width / sqrt(guess.trials);

        if (may_run(search, i) && bound < least) {
            least = bound;
            chosen = i;
        }
    }
    return chosen;
}

static int bandit_propose(const void *state, const struct batch_question *question,
                          struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct plain_search *search = state;
    double log_cost;
    size_t best = best_known(search, &log_cost), batch = best;

    (void)out_error;
    if (search_looks(question) && isfinite(log_cost))
        batch = least_bound(search, best);
    *out_proposal = search_propose(batch, best, batch_policy_bandit.version);
    return 0;
}

static int bandit_epoch_cap(const void *state, const struct epoch_question *question, uint32_t *out_epochs,
                            struct fly_error *out_error)
{
    const struct plain_search *search = state;
    double log_cost;
    size_t best = best_known(search, &log_cost);

    (void)out_error;
    *out_epochs = search_epochs(search, question,
                                question->batch != best ? bandit_stop_at * portable_exp(log_cost) : INFINITY);
    return 0;
}

const struct batch_policy batch_policy_bandit = {
    .name = "bandit",
    .summary = "the least lower confidence bound on the log score, with neighbours; no model",
    .version = 1,
    .create = search_create,
    .fold = bandit_fold,
    .propose = bandit_propose,
    .epoch_cap = bandit_epoch_cap,
};
