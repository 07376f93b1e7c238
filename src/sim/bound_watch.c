/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/bound_watch.h"

#include <math.h>

#include <flyball/cost.h>

enum { EVIDENCE = 2 }; /* runs needed to show that a batch size is too slow */

bool bound_watch_init(struct bound_watch *watch, const struct job_spec *spec, struct arena *arena)
{
    *watch = (struct bound_watch){.spec = spec,
                                  .batches = arena_alloc(arena, spec->batch_count, sizeof watch->batches[0])};
    return watch->batches != NULL;
}

void bound_watch_take(struct bound_watch *watch, const struct fly_trial *ended)
{
    const struct job_spec *spec = watch->spec;
    struct watched *batch = &watch->batches[ended->batch];

    if (!outcome_observed(ended->outcome))
        return;
    batch->cost_j += fly_cost(spec->eta, spec->max_power_w, ended->energy_j, ended->time_s);
    if (ended->outcome != TRIAL_REACHED)
        return;
    batch->reached++;
    batch->reached_s += ended->time_s;
    if (ended->batch == spec->default_batch && ended->trial + 1 != watch->profiling &&
        ended->limit_w == batch_highest_limit_w(&spec->batches[ended->batch])) {
        watch->baseline_runs++;
        watch->baseline_s += ended->time_s;
    }
}

/* Returns the time to which the bound refers; NaN: not known. */
static double reference_s(const struct bound_watch *watch)
{
    const struct watched *base = &watch->batches[watch->spec->default_batch];

    if (watch->baseline_runs > 0)
        return watch->baseline_s / (double)watch->baseline_runs;
    return base->reached > 0 ? base->reached_s / (double)base->reached : NAN;
}

static bool keeps_bound(const struct bound_watch *watch, size_t batch)
{
    const struct watched *watched = &watch->batches[batch];
    double allowed_s = watch->spec->objective->max_slowdown * reference_s(watch);

    return batch == watch->spec->default_batch || watched->reached == 0 || isnan(allowed_s) ||
           watched->reached_s / (double)watched->reached <= allowed_s;
}

void bound_watch_check(const struct bound_watch *watch, const struct decider *decider, size_t excluded,
                       struct proposal *proposal)
{
    double least_j = INFINITY;
    size_t best = watch->spec->default_batch;

    if (watch->batches[proposal->batch].reached < EVIDENCE || keeps_bound(watch, proposal->batch))
        return;
    for (size_t i = 0; i < excluded; i++) {
        const struct watched *batch = &watch->batches[i];
        double cost_j = batch->cost_j / (double)batch->reached;

        if (batch->reached > 0 && cost_j < least_j && !decider_gave_up(decider, i) && keeps_bound(watch, i)) {
            best = i;
            least_j = cost_j;
        }
    }
    *proposal = (struct proposal){.batch = best,
                                  .limit_rule = LIMIT_PROFILED,
                                  .reason = REASON_BOUND,
                                  .policy_version = decider->policy->version};
}
