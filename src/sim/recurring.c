/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/recurring.h"

#include <math.h>

#include <flyball/cost.h>

enum { STATE_MAX = 512 << 20 };

int recurring_init(struct recurring *job, const struct workload *workload, const struct batch_policy *policy,
                   const struct policy_parameters *parameters, struct fly_error *out_error)
{
    int code;

    *job = (struct recurring){.workload = workload};
    arena_init(&job->arena, STATE_MAX);
    environment_init(&job->environment, workload, parameters->seed, parameters->generator);
    code = decider_init(&job->decider, &workload->spec, policy, parameters, &job->arena, out_error);
    if (code < 0)
        arena_deinit(&job->arena);
    return code;
}

void recurring_deinit(struct recurring *job)
{
    arena_deinit(&job->arena);
}

/* Measures the power profile of a batch size: in the trace it stands ready and exact. */
static int measure_profile(struct recurring *job, size_t batch, struct fly_error *out_error)
{
    const struct profile_measured measured = {batch, job->workload->batches[batch].points,
                                              job->workload->batches[batch].point_count};

    return decider_fold(&job->decider, &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured},
                        out_error);
}

/* Asks for the next trial and tells the core that it was proposed. */
static int propose(struct recurring *job, struct proposal *out_proposal, bool *out_profiling,
                   struct fly_error *out_error)
{
    int code = decider_propose(&job->decider, out_proposal, out_error);

    if (code < 0)
        return code;
    code = decider_fold(&job->decider,
                        &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = out_proposal}, out_error);
    *out_profiling = decider_wants_profile(&job->decider, out_proposal);
    if (code == 0 && *out_profiling)
        code = measure_profile(job, out_proposal->batch, out_error);
    return code;
}

static void record_try(struct recurring *job, const struct trial_ended *ended, uint32_t path,
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

/* Trains in the job's world; `out_path` is the recorded run it turned out to be, 0 without a record. */
static struct training train(struct recurring *job, uint32_t try_number, size_t batch, size_t point,
                             bool profiling, uint32_t *out_path)
{
    const struct fly_power_point *epoch = &job->workload->batches[batch].points[point];
    uint32_t path = 0, cap;
    double target_epoch = NAN;

    if (job->world == NULL)
        path = environment_draw_path(&job->environment, job->recurrences, try_number, batch);
    cap = decider_epoch_cap(&job->decider, batch, epoch->time_s * epoch->power_w, epoch->time_s);
    *out_path = path;
    if (job->world == NULL)
        return environment_train(job->workload, batch, point, path, cap, profiling);
    if (cap > 0)
        target_epoch = job->world->train(job->world->context,
                                         &(struct recurring_order){job->recurrences, try_number, batch, cap});
    return environment_train_until(job->workload, batch, point, target_epoch, cap, profiling);
}

/* One try. Returns 1 when it reached the target, 0 when it did not, or an error. */
static int run_try(struct recurring *job, uint32_t try_number, struct recurrence *sums,
                   struct fly_error *out_error)
{
    struct proposal proposal;
    struct trial_ended ended;
    struct training training;
    size_t point;
    uint32_t path;
    bool profiling;
    int code = propose(job, &proposal, &profiling, out_error);

    if (code < 0)
        return code;
    ended =
        (struct trial_ended){.batch = proposal.batch, .limit_w = decider_limit_w(&job->decider, &proposal)};
    point = workload_find_limit(&job->workload->batches[proposal.batch], ended.limit_w);
    training = train(job, try_number, proposal.batch, point, profiling, &path);
    ended.outcome = !training.ran ? TRIAL_REFUSED : training.reached ? TRIAL_REACHED : TRIAL_NOT_REACHED;
    ended.energy_j = training.energy_j;
    ended.time_s = training.time_s;
    code =
        decider_fold(&job->decider, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended}, out_error);
    if (code < 0)
        return code;
    if (training.ran)
        record_try(job, &ended, path, sums);
    else
        job->refused++;
    return training.reached;
}

int recurring_run(struct recurring *job, struct recurrence *out_recurrence, struct fly_error *out_error)
{
    struct recurrence sums = {0};
    int code = decider_fold(&job->decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN}, out_error);

    for (uint32_t i = 0; i < RECURRING_TRIES_MAX && code == 0; i++)
        code = run_try(job, i, &sums, out_error);
    if (code == 0)
        code = error_set(
            out_error, FLY_EEXHAUSTED,
            "recurrence %llu did not reach its target in %d tries; raise beta, allow more epochs or choose "
            "another target",
            (unsigned long long)job->recurrences, RECURRING_TRIES_MAX);
    job->recurrences++;
    *out_recurrence = sums;
    return code < 0 ? code : 0;
}
