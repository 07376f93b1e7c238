/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trial.h"

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

/* Asks for the next trial and tells the core that it was proposed. */
static int propose(struct decider *decider, const struct workload *workload, uint64_t recurrence,
                   uint32_t try_number, struct proposal *out_proposal, bool *out_profiling,
                   struct fly_error *out_error)
{
    int code = decider_propose(decider, recurrence, try_number, out_proposal, out_error);

    if (code < 0)
        return code;
    code = decider_fold(decider, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = out_proposal},
                        out_error);
    *out_profiling = decider_wants_profile(decider, out_proposal);
    if (code == 0 && *out_profiling)
        code = measure_profile(decider, workload, out_proposal->batch, out_error);
    return code;
}

int trial_run(struct decider *decider, struct environment *environment, uint64_t recurrence,
              uint32_t try_number, struct trial *out_trial, struct fly_error *out_error)
{
    const struct workload *workload = environment->workload;
    struct proposal proposal;
    struct training training;
    const struct fly_power_point *epoch;
    double limit_w, target_epoch;
    size_t point;
    uint32_t path, cap;
    bool profiling;
    int code = propose(decider, workload, recurrence, try_number, &proposal, &profiling, out_error);

    if (code < 0)
        return code;
    limit_w = decider_limit_w(decider, &proposal);
    point = workload_find_limit(&workload->batches[proposal.batch], limit_w);
    epoch = &workload->batches[proposal.batch].points[point];
    code = decider_epoch_cap(decider, proposal.batch, epoch->time_s * epoch->power_w, epoch->time_s, &cap,
                             out_error);
    if (code < 0)
        return code;
    target_epoch = environment_target_epoch(
        environment, &(struct training_order){recurrence, try_number, proposal.batch, cap}, &path);
    training = environment_train(workload, proposal.batch, point, target_epoch, cap,
                                 environment_profiled(environment, profiling, cap));
    *out_trial = (struct trial){.ended = {.trial = decider->trials - 1,
                                          .recurrence = recurrence,
                                          .try_number = try_number,
                                          .batch = proposal.batch,
                                          .limit_w = limit_w,
                                          .outcome = !training.ran      ? TRIAL_REFUSED
                                                     : training.reached ? TRIAL_REACHED
                                                                        : TRIAL_NOT_REACHED,
                                          .epochs = training.epochs,
                                          .energy_j = training.energy_j,
                                          .time_s = training.time_s},
                                .path = path};
    return 0;
}

bool trial_ran(const struct trial_ended *ended)
{
    return ended->outcome != TRIAL_REFUSED || ended->time_s > 0.0;
}
