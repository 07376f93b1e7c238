/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hill-climb`: the simplest search that is worth a comparison. Runs the default, then the batch
 * size beside the best one on either side, the larger first, once each; moves to whichever is
 * cheaper in the mean, and stays where neither neighbour is. A trial beside the best one is
 * stopped at 1.5 times the best mean cost, and a batch size that missed its target is not tried
 * again. The best one itself is never stopped. While other trials run, it takes the best one.
 */
#include <math.h>
#include <stdbool.h>

#include <flyball/cost.h>

#include "policy/batch_policy.h"
#include "policy/early_stopping.h"

static const double stop_at = 1.5; /* of the best mean cost */

/* What is known of one batch size. */
struct step {
    double cost_j; /* sum over the trials that reached their target */
    uint64_t trials;
    bool barred; /* it missed its target once, does not fit, or was given up */
};

struct climb_state {
    const struct job_spec *spec;
    struct step steps[];
};

static int climb_create(const struct batch_policy *self, const struct job_spec *spec,
                        const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                        struct fly_error *out_error)
{
    struct climb_state *state =
        arena_alloc(arena, 1, sizeof *state + spec->batch_count * sizeof state->steps[0]);

    (void)self;
    (void)parameters;
    if (state == NULL)
        return error_no_memory(out_error);
    state->spec = spec;
    *out_state = state;
    return 0;
}

static double mean_cost(const struct step *step)
{
    return step->trials > 0 && !step->barred ? step->cost_j / (double)step->trials : INFINITY;
}

/* Returns the cheapest batch size that ran, or the default before there is one. */
static size_t summit(const struct climb_state *state)
{
    size_t best = state->spec->default_batch;

    for (size_t i = 0; i < state->spec->batch_count; i++) {
        if (mean_cost(&state->steps[i]) < mean_cost(&state->steps[best]))
            best = i;
    }
    return best;
}

/* Learns from the end of a trial; a default that missed its target is tried on until others are known. */
static void climb_end(struct climb_state *state, const struct trial_ended *ended)
{
    struct step *step = &state->steps[ended->batch];

    if (ended->outcome == TRIAL_REACHED) {
        step->cost_j += fly_cost(state->spec->eta, state->spec->max_power_w, ended->energy_j, ended->time_s);
        step->trials++;
    } else if (ended->outcome == TRIAL_REFUSED || outcome_observed(ended->outcome)) {
        step->barred |= ended->batch != summit(state);
    }
}

static void climb_fold(void *opaque, const struct event *event)
{
    struct climb_state *state = opaque;

    if (event->kind == EVENT_TRIAL_ENDED)
        climb_end(state, event->ended);
    if (event->kind == EVENT_BATCH_GIVEN_UP)
        state->steps[event->given_up].barred = true;
    if (event->kind != EVENT_BATCHES_EXCLUDED)
        return;
    for (size_t i = event->first_excluded; i < state->spec->batch_count; i++)
        state->steps[i].barred = true;
}

static bool wants_look(const struct climb_state *state, size_t batch)
{
    return batch < state->spec->batch_count && state->steps[batch].trials == 0 && !state->steps[batch].barred;
}

static int climb_propose(const void *opaque, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct climb_state *state = opaque;
    size_t here = summit(state);
    struct proposal proposal = {.batch = here,
                                .limit_rule = LIMIT_PROFILED,
                                .reason = REASON_BEST_SEEN,
                                .policy_version = batch_policy_hill_climb.version};

    (void)out_error;
    if (question->try_number == 0 && question->in_flight == 0 && isfinite(mean_cost(&state->steps[here]))) {
        if (wants_look(state, here + 1))
            proposal.batch = here + 1;
        else if (here > 0 && wants_look(state, here - 1))
            proposal.batch = here - 1;
    }
    if (proposal.batch != here)
        proposal.reason = REASON_EXPLORE;
    *out_proposal = proposal;
    return 0;
}

static int climb_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                           struct fly_error *out_error)
{
    const struct climb_state *state = opaque;
    const struct job_spec *spec = state->spec;
    size_t here = summit(state);
    double bound_j = question->batch != here ? stop_at * mean_cost(&state->steps[here]) : INFINITY;

    (void)out_error;
    *out_epochs = early_stopping_epochs(
        bound_j, fly_cost(spec->eta, spec->max_power_w, question->epoch_energy_j, question->epoch_time_s),
        spec->max_epochs);
    return 0;
}

const struct batch_policy batch_policy_hill_climb = {
    .name = "hill-climb",
    .summary = "the default, then whichever neighbour is cheaper",
    .version = 1,
    .create = climb_create,
    .fold = climb_fold,
    .propose = climb_propose,
    .epoch_cap = climb_epoch_cap,
};
