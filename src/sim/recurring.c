/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/recurring.h"

#include <math.h>

#include <flyball/cost.h>

#include "sim/bound_watch.h"
#include "sim/trial.h"

enum { STATE_MAX = 512 << 20 };

/* Live jobs heed the bound for policies that do not choose pairs; what is told its choice keeps it. */
static int watch_bound(struct recurring *job, struct fly_error *out_error)
{
    const struct job_spec *spec = &job->workload->spec;
    bool told = job->decider.policy == &batch_policy_fixed || job->decider.policy == &batch_policy_default;
    struct bound_watch *watch;

    if (spec->objective == NULL || isinf(spec->objective->max_slowdown) || told ||
        decider_chooses_pairs(&job->decider))
        return 0;
    watch = arena_alloc(&job->arena, 1, sizeof *watch);
    if (watch == NULL || !bound_watch_init(watch, spec, &job->arena))
        return error_no_memory(out_error);
    job->environment.watch = watch;
    return 0;
}

int recurring_init(struct recurring *job, const struct workload *workload, const struct batch_policy *policy,
                   const struct policy_parameters *parameters, struct fly_error *out_error)
{
    int code;

    *job = (struct recurring){.workload = workload};
    arena_init(&job->arena, STATE_MAX);
    environment_init(&job->environment, workload, workload->spec.name, parameters->seed,
                     parameters->generator);
    job->environment.profile_window = parameters->profile_window;
    code = decider_init(&job->decider, &workload->spec, policy, parameters, &job->arena, out_error);
    if (code == 0) {
        code = watch_bound(job, out_error);
        if (code < 0)
            decider_deinit(&job->decider);
    }
    if (code < 0)
        arena_deinit(&job->arena);
    return code;
}

int recurring_in_order(struct recurring *job, struct fly_error *out_error)
{
    uint32_t *taken = arena_alloc(&job->arena, job->workload->spec.batch_count, sizeof taken[0]);

    if (taken == NULL)
        return error_no_memory(out_error);
    job->environment.taken = taken;
    return 0;
}

void recurring_deinit(struct recurring *job)
{
    decider_deinit(&job->decider);
    arena_deinit(&job->arena);
}

static void record_try(struct recurring *job, const struct fly_trial *ended, uint32_t path,
                       struct recurrence *sums)
{
    const struct job_spec *spec = &job->workload->spec;
    double cost_j = fly_cost(spec->eta, spec->max_power_w, ended->energy_j, ended->time_s);
    const struct try_record record = {
        .recurrence = job->recurrences,
        .number = job->tries,
        .batch_size = spec->batches[ended->batch].size,
        .power_limit_w = ended->limit_w,
        .path = path,
        .reached = ended->outcome == TRIAL_REACHED,
        .energy_j = ended->energy_j,
        .time_s = ended->time_s,
        .cost_j = cost_j,
        .batch = ended->batch,
        .outcome = ended->outcome,
        .epochs = ended->epochs,
    };

    job->tries++;
    sums->energy_j += ended->energy_j;
    sums->time_s += ended->time_s;
    sums->cost_j += cost_j;
    sums->batch = ended->batch;
    sums->power_limit_w = ended->limit_w;
    if (job->observer != NULL)
        job->observer(job->observer_context, &record);
}

/* Runs one try. Returns 1 if it reached the target, 0 if it did not, or an error. */
static int run_try(struct recurring *job, uint32_t try_number, struct recurrence *sums,
                   struct fly_error *out_error)
{
    struct trial trial;
    int code = trial_run(&job->decider, &job->environment, job->recurrences, try_number, &trial, out_error);

    if (code == 0)
        code = trial_fold(&job->decider, &job->environment, &trial.ended, out_error);
    if (code < 0)
        return code;
    if (trial_ran(&trial.ended))
        record_try(job, &trial.ended, trial.path, sums);
    else
        job->refused++;
    return trial.ended.outcome == TRIAL_REACHED;
}

int recurring_run(struct recurring *job, struct recurrence *out_recurrence, struct fly_error *out_error)
{
    int code = decider_fold(&job->decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN}, out_error);

    *out_recurrence = (struct recurrence){.energy_j = 0.0};
    for (uint32_t i = 0; i < RECURRING_TRIES_MAX && code == 0; i++)
        code = run_try(job, i, out_recurrence, out_error);
    if (code == 0)
        code = error_set(
            out_error, FLY_EEXHAUSTED,
            "recurrence %llu did not reach its target in %d tries; raise beta, allow more epochs or choose "
            "another target",
            (unsigned long long)job->recurrences + 1, RECURRING_TRIES_MAX);
    job->recurrences++;
    return code < 0 ? code : 0;
}
