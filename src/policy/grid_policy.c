/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `grid`: tries every (batch size, power limit) once, in ascending order of batch size and then
 * of limit, and drops a batch size at its first failure. Then it always takes the choice of least
 * cost seen. Before anything was seen, and while another recurrence runs, it takes the best seen
 * or the default. No trial is stopped early: the grid is the patient, expensive baseline of the
 * Zeus paper.
 */
#include <math.h>
#include <stdbool.h>

#include <flyball/cost.h>

#include "policy/batch_policy.h"

struct grid_batch {
    bool dropped;
    double least_cost_j; /* infinity until a cost was seen */
    double best_limit_w;
};

struct grid_state {
    const struct job_spec *spec;
    size_t next_batch; /* the next cell to try; batch_count when all were tried */
    size_t next_limit;
    struct grid_batch batches[];
};

static int grid_create(const struct batch_policy *self, const struct job_spec *spec,
                       const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                       struct fly_error *out_error)
{
    struct grid_state *state =
        arena_alloc(arena, 1, sizeof *state + spec->batch_count * sizeof state->batches[0]);

    (void)self;
    (void)parameters;
    if (state == NULL)
        return error_no_memory(out_error);
    state->spec = spec;
    for (size_t i = 0; i < spec->batch_count; i++)
        state->batches[i].least_cost_j = INFINITY;
    *out_state = state;
    return 0;
}

/* Moves to the next cell whose batch size has not been dropped. */
static void grid_advance(struct grid_state *state)
{
    const struct job_spec *spec = state->spec;

    state->next_limit++;
    while (state->next_batch < spec->batch_count &&
           (state->batches[state->next_batch].dropped ||
            state->next_limit >= spec->batches[state->next_batch].limit_count)) {
        state->next_batch++;
        state->next_limit = 0;
    }
}

static void grid_exclude(struct grid_state *state, size_t first)
{
    for (size_t i = first; i < state->spec->batch_count; i++)
        state->batches[i].dropped = true;
    if (state->next_batch >= first) {
        state->next_batch = state->spec->batch_count;
        state->next_limit = 0;
    }
}

static void grid_give_up(struct grid_state *state, size_t batch)
{
    state->batches[batch].dropped = true;
    if (state->next_batch == batch)
        grid_advance(state);
}

static bool grid_learns(enum trial_outcome outcome)
{
    return outcome == TRIAL_REFUSED || outcome_observed(outcome);
}

static void grid_fold(void *opaque, const struct event *event)
{
    struct grid_state *state = opaque;
    const struct fly_trial *ended = event->ended;
    struct grid_batch *batch;
    double cost_j;

    if (event->kind == EVENT_BATCHES_EXCLUDED)
        grid_exclude(state, event->first_excluded);
    if (event->kind == EVENT_BATCH_GIVEN_UP)
        grid_give_up(state, event->given_up);
    if (event->kind != EVENT_TRIAL_ENDED || !grid_learns(ended->outcome))
        return;
    batch = &state->batches[ended->batch];
    if (ended->outcome == TRIAL_REACHED) {
        cost_j = fly_cost(state->spec->eta, state->spec->max_power_w, ended->energy_j, ended->time_s);
        if (cost_j < batch->least_cost_j) {
            batch->least_cost_j = cost_j;
            batch->best_limit_w = ended->limit_w;
        }
    } else {
        batch->dropped = true;
    }
    if (ended->batch == state->next_batch &&
        (batch->dropped || ended->limit_w == state->spec->batches[ended->batch].limits_w[state->next_limit]))
        grid_advance(state);
}

static const struct grid_batch *grid_best(const struct grid_state *state)
{
    const struct grid_batch *best = NULL;

    for (size_t i = 0; i < state->spec->batch_count; i++) {
        const struct grid_batch *batch = &state->batches[i];

        if (!batch->dropped && isfinite(batch->least_cost_j) &&
            (best == NULL || batch->least_cost_j < best->least_cost_j))
            best = batch;
    }
    return best;
}

static int grid_propose(const void *opaque, const struct batch_question *question,
                        struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct grid_state *state = opaque;
    const struct grid_batch *best = grid_best(state);

    *out_proposal = (struct proposal){.limit_rule = LIMIT_FIXED, .policy_version = batch_policy_grid.version};
    if (question->in_flight > 0 && best == NULL) {
        out_proposal->batch = state->spec->default_batch;
        out_proposal->limit_w = batch_highest_limit_w(&state->spec->batches[state->spec->default_batch]);
        out_proposal->reason = REASON_FIXED;
        return 0;
    }
    if (question->in_flight == 0 && state->next_batch < state->spec->batch_count) {
        out_proposal->batch = state->next_batch;
        out_proposal->limit_w = state->spec->batches[state->next_batch].limits_w[state->next_limit];
        out_proposal->reason = REASON_EXPLORE;
        return 0;
    }
    if (best == NULL)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "no batch size is left: each of them failed once; allow more epochs or another target");
    out_proposal->batch = (size_t)(best - state->batches);
    out_proposal->limit_w = best->best_limit_w;
    out_proposal->reason = REASON_BEST_SEEN;
    return 0;
}

static void grid_save(const void *opaque, struct buffer *bytes)
{
    const struct grid_state *state = opaque;

    bytes_put_u64(bytes, state->next_batch);
    bytes_put_u64(bytes, state->next_limit);
    for (size_t i = 0; i < state->spec->batch_count; i++) {
        bytes_put_u64(bytes, state->batches[i].dropped);
        bytes_put_double(bytes, state->batches[i].least_cost_j);
        bytes_put_double(bytes, state->batches[i].best_limit_w);
    }
}

static bool grid_load(void *opaque, struct bytes_reader *bytes)
{
    struct grid_state *state = opaque;
    const struct job_spec *spec = state->spec;

    state->next_batch = (size_t)bytes_up_to(bytes, spec->batch_count);
    state->next_limit = (size_t)bytes_up_to(
        bytes, state->next_batch < spec->batch_count ? spec->batches[state->next_batch].limit_count - 1 : 0);
    for (size_t i = 0; i < spec->batch_count; i++) {
        state->batches[i].dropped = bytes_bool(bytes);
        state->batches[i].least_cost_j = bytes_double(bytes);
        state->batches[i].best_limit_w = bytes_double(bytes);
    }
    return !bytes->failed;
}

const struct batch_policy batch_policy_grid = {
    .name = "grid",
    .summary = "every batch size and power limit once, then the lowest score seen",
    .version = 1,
    .create = grid_create,
    .fold = grid_fold,
    .propose = grid_propose,
    .save = grid_save,
    .load = grid_load,
};
