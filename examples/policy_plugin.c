/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Your own batch-size policy: a hill climb. From the default batch size it tries the next smaller and the
 * next larger one, moves to the one that is cheaper on average, and stays when neither is.
 *
 *     cc -shared -fPIC policy_plugin.c $(pkg-config --cflags flyball) -o policy_plugin.so
 *     flyball sim job --traces DIR --gpu v100 --policy zeus,./policy_plugin.so
 *
 * docs/howto/plugins.md explains how to write another.
 */
#include <stdlib.h>

#include <flyball/plugin.h>

/* A size is judged by the mean of this many trials: a single one may have been lucky. */
enum { LOOKS = 2 };

/* What is known of one batch size. */
struct size {
    double cost_j; /* sum over its trials */
    uint32_t trials;
    int failed; /* it missed the target once: too risky */
};

/* One for each job and seed; it holds all that the policy remembers. */
struct climb {
    const struct fly_batch_job *job; /* lives as long as this state */
    double least_cost_j;             /* of a trial that reached its target; 0 before */
    size_t first;                    /* where it begins */
    double first_cost_j;             /* of a run of that elsewhere; 0: not known */
    struct size sizes[];
};

static int climb_create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
{
    struct climb *climb = calloc(1, sizeof *climb + job->batch_count * sizeof climb->sizes[0]);

    if (climb == NULL) {
        *out_reason = "out of memory";
        return -1;
    }
    climb->job = job;
    climb->first = job->default_batch;
    *out_state = climb;
    return 0;
}

static void climb_destroy(void *state)
{
    free(state);
}

static void climb_observe(void *state, const struct fly_trial *trial)
{
    struct climb *climb = state;
    struct size *size = &climb->sizes[trial->batch];

    size->cost_j += trial->cost_j;
    size->trials++;
    if (trial->outcome != FLY_TRIAL_REACHED)
        size->failed = 1;
    else if (climb->least_cost_j == 0.0 || trial->cost_j < climb->least_cost_j)
        climb->least_cost_j = trial->cost_j;
}

/* A past of other hardware shows where to begin; that of another job is no evidence of what trains here. */
static void climb_bring(void *state, const struct fly_past *past)
{
    struct climb *climb = state;
    double cost_j = past->epochs * past->epoch_cost_j; /* NAN if the second is not known */

    if (past->kind == FLY_PAST_HARDWARE && past->reached > 0 && past->failed == 0 && cost_j > 0.0 &&
        (climb->first_cost_j == 0.0 || cost_j < climb->first_cost_j)) {
        climb->first = past->batch;
        climb->first_cost_j = cost_j;
    }
}

/* The cheapest size that never failed, or where it begins before there is one. */
static size_t summit(const struct climb *climb)
{
    size_t best = climb->sizes[climb->first].failed ? climb->job->default_batch : climb->first;
    double best_cost_j = 0.0;

    for (size_t i = 0; i < climb->job->batch_count; i++) {
        const struct size *size = &climb->sizes[i];
        double cost_j = size->trials > 0 ? size->cost_j / size->trials : 0.0;

        if (size->trials > 0 && !size->failed && (best_cost_j == 0.0 || cost_j < best_cost_j)) {
            best = i;
            best_cost_j = cost_j;
        }
    }
    return best;
}

static int wants_look(const struct climb *climb, size_t batch)
{
    return batch < climb->job->batch_count && !climb->sizes[batch].failed &&
           climb->sizes[batch].trials < LOOKS;
}

static int climb_propose(const void *state, const struct fly_batch_question *question,
                         struct fly_batch_decision *out_decision)
{
    const struct climb *climb = state;
    size_t here = summit(climb);

    out_decision->batch = here;
    if (question->try_number > 0) /* this recurrence has failed once already: be safe now */
        return 0;
    if (wants_look(climb, here) || question->recurrences_left <= LOOKS) /* the latter is false for NAN */
        return 0;
    if (here > 0 && wants_look(climb, here - 1))
        out_decision->batch = here - 1;
    else if (wants_look(climb, here + 1))
        out_decision->batch = here + 1;
    return 0;
}

/* Stops a trial that has cost beta times the cheapest one. */
static uint32_t climb_epoch_cap(const void *state, size_t batch, double epoch_energy_j, double epoch_time_s)
{
    const struct climb *climb = state;
    const struct fly_batch_job *job = climb->job;
    double epoch_j = job->eta * epoch_energy_j + (1.0 - job->eta) * job->max_power_w * epoch_time_s;
    double epochs = job->beta * climb->least_cost_j / epoch_j;

    (void)batch;
    return climb->least_cost_j > 0.0 && epochs < job->max_epochs ? (uint32_t)epochs : job->max_epochs;
}

const struct fly_batch_policy fly_batch_policy_plugin = {
    .abi = FLY_PLUGIN_ABI,
    .size = sizeof(struct fly_batch_policy),
    .name = "climb",
    .version = 2,
    .create = climb_create,
    .destroy = climb_destroy,
    .observe = climb_observe,
    .propose = climb_propose,
    .epoch_cap = climb_epoch_cap,
    .bring = climb_bring,
};
