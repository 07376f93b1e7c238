/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trial.h"

#include <math.h>

#include "sim/bound_watch.h"

/* Measures the power profile of a batch size. The trace already has it, without errors. */
static int measure_profile(struct decider *decider, const struct workload *workload, size_t batch,
                           struct fly_error *out_error)
{
    const struct profile_measured measured = {.batch = batch,
                                              .points = workload->batches[batch].points,
                                              .count = workload->batches[batch].point_count,
                                              .units_per_epoch = 1.0};

    return decider_fold(decider, &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured},
                        out_error);
}

/* Returns whether a batch size fits into the GPU. */
static bool fits(const struct workload *workload, size_t batch)
{
    return workload->fitting == 0 || batch < workload->fitting;
}

/* Heeds the job's bound for a policy that does not. */
static void heed_bound(const struct decider *decider, const struct environment *environment,
                       struct proposal *proposal)
{
    size_t all = environment->workload->spec.batch_count;

    if (environment->watch != NULL)
        bound_watch_check(environment->watch, decider,
                          environment->excluded > 0 ? environment->excluded : all, proposal);
}

/* Asks for the next trial and tells the core that it was proposed. One that does not fit measures no profile.
 */
static int propose(struct decider *decider, const struct environment *environment, uint64_t recurrence,
                   uint32_t try_number, struct proposal *out_proposal, bool *out_profiling,
                   struct fly_error *out_error)
{
    const struct workload *workload = environment->workload;
    int code = decider_propose(decider, recurrence, try_number, out_proposal, out_error);

    if (code < 0)
        return code;
    heed_bound(decider, environment, out_proposal);
    code = decider_fold(decider, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = out_proposal},
                        out_error);
    *out_profiling = decider_wants_profile(decider, out_proposal) && fits(workload, out_proposal->batch);
    if (environment->watch != NULL && *out_profiling)
        environment->watch->profiling = decider->trials;
    if (code == 0 && *out_profiling)
        code = measure_profile(decider, workload, out_proposal->batch, out_error);
    return code;
}

/* Trains what was proposed, as `order` says but for its cap; `out_path` is the recorded run. */
static int train(struct decider *decider, struct environment *environment, const struct proposal *proposal,
                 bool profiling, double limit_w, struct training_order order, struct training *out_training,
                 uint32_t *out_path, struct fly_error *out_error)
{
    const struct workload_batch *batch = &environment->workload->batches[order.batch];
    size_t point = workload_find_limit(batch, limit_w);
    const struct fly_power_point *epoch = &batch->points[point];
    double target_epoch;
    int code = proposal->uncapped ? 0
                                  : decider_epoch_cap(decider, order.batch, epoch->time_s * epoch->power_w,
                                                      epoch->time_s, &order.epoch_cap, out_error);

    if (code < 0)
        return code;
    if (proposal->reason == REASON_BOUND)
        order.epoch_cap = environment->workload->spec.max_epochs;
    target_epoch = environment_target_epoch(environment, &order, out_path);
    *out_training =
        environment_train(environment->workload, order.batch, point, target_epoch, order.epoch_cap,
                          environment_profiled(environment, profiling, order.epoch_cap));
    return 0;
}

/* Lets the trial crash if it is its turn, after a share of its way. */
static bool crash(const struct environment *environment, uint64_t recurrence, uint32_t try_number,
                  struct training *training)
{
    double share;

    if (!training->ran || !(environment->crash_share > 0.0) ||
        !environment_crashes(environment, recurrence, try_number, &share))
        return false;
    training->epochs = floor(share * training->epochs);
    training->energy_j *= share;
    training->time_s *= share;
    return true;
}

int trial_run(struct decider *decider, struct environment *environment, uint64_t recurrence,
              uint32_t try_number, struct trial *out_trial, struct fly_error *out_error)
{
    const struct workload *workload = environment->workload;
    const struct job_spec *spec = &workload->spec;
    struct training training = {.ran = false};
    enum trial_outcome outcome = TRIAL_OUT_OF_MEMORY;
    struct proposal proposal;
    bool profiling, crashed = false;
    double limit_w;
    uint32_t path = 0;
    int code = propose(decider, environment, recurrence, try_number, &proposal, &profiling, out_error);

    if (code < 0)
        return code;
    if (fits(workload, proposal.batch)) {
        limit_w = decider_limit_w(decider, &proposal);
        code = train(decider, environment, &proposal, profiling, limit_w,
                     (struct training_order){recurrence, try_number, proposal.batch, spec->max_epochs},
                     &training, &path, out_error);
        if (code < 0)
            return code;
        crashed = crash(environment, recurrence, try_number, &training);
        outcome = !training.ran      ? TRIAL_REFUSED
                  : crashed          ? TRIAL_CRASHED
                  : training.reached ? TRIAL_REACHED
                                     : TRIAL_NOT_REACHED;
    } else {
        limit_w = batch_highest_limit_w(&spec->batches[proposal.batch]);
    }
    /* Every field is named: a compiler that had to clear the rest first would take longer than the trial. */
    *out_trial = (struct trial){.ended = {.trial = decider->trials - 1,
                                          .recurrence = recurrence,
                                          .try_number = try_number,
                                          .outcome = outcome,
                                          .late = false,
                                          .crashed = crashed,
                                          .by_itself = false,
                                          .nothing_learnt = false,
                                          .batch = proposal.batch,
                                          .limit_w = limit_w,
                                          .epochs = training.epochs,
                                          .energy_j = training.energy_j,
                                          .time_s = training.time_s,
                                          .apart_energy_j = 0.0,
                                          .apart_time_s = 0.0,
                                          .dearer = 0.0},
                                .path = path};
    return 0;
}

int trial_fold(struct decider *decider, struct environment *environment, const struct fly_trial *ended,
               struct fly_error *out_error)
{
    int code = decider_fold(decider, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = ended}, out_error);

    if (environment->watch != NULL)
        bound_watch_take(environment->watch, ended);
    if (code < 0 || ended->outcome != TRIAL_OUT_OF_MEMORY ||
        (environment->excluded > 0 && environment->excluded <= ended->batch))
        return code;
    environment->excluded = ended->batch;
    return decider_fold(
        decider, &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = ended->batch}, out_error);
}

bool trial_ran(const struct fly_trial *ended)
{
    return ended->outcome != TRIAL_REFUSED || ended->time_s > 0.0;
}
