/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/transfer.h"

#include <math.h>
#include <stdlib.h>

#include "sim/recurring.h"

static const uint32_t other_luck = 0x9e3779b9u; /* added to the seed */

/* The source while it runs. */
struct elsewhere {
    const struct workload *workload;
    double eta;                                 /* of the target */
    struct past_tally tallies[JOB_BATCHES_MAX]; /* per batch size of the source */
    struct decider *target;                     /* with objective_only: takes the events; else NULL */
    int code;
    struct fly_error *error;
};

/* Folds a try of the source into the target, as a log is folded again under a new objective. */
static int fold_again(struct elsewhere *source, const struct try_record *record)
{
    const struct proposal proposal = {.batch = record->batch, .reason = REASON_EXPLORE};
    const struct workload_batch *batch = &source->workload->batches[record->batch];
    const struct profile_measured measured = {
        .batch = record->batch, .points = batch->points, .count = batch->point_count, .units_per_epoch = 1.0};
    const struct fly_trial ended = {.trial = record->number,
                                    .recurrence = record->recurrence,
                                    .batch = record->batch,
                                    .limit_w = record->power_limit_w,
                                    .outcome = record->outcome,
                                    .epochs = record->epochs,
                                    .energy_j = record->energy_j,
                                    .time_s = record->time_s};
    int code = decider_fold(
        source->target, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal}, source->error);

    if (code == 0 && decider_wants_profile(source->target, &proposal))
        code = decider_fold(source->target,
                            &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured},
                            source->error);
    if (code == 0)
        code = decider_fold(source->target, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended},
                            source->error);
    return code;
}

static void take_try(void *context, const struct try_record *record)
{
    struct elsewhere *source = context;

    past_tally_take(&source->tallies[record->batch], record->outcome, record->epochs,
                    source->workload->spec.max_epochs);
    if (source->target != NULL && source->code == 0)
        source->code = fold_again(source, record);
}

/* Notes what an epoch of the profiled batch sizes costs by what the target counts. */
static void note_costs(struct elsewhere *source, const struct decider *decider)
{
    for (size_t i = 0; i < source->workload->spec.batch_count; i++) {
        const struct decider_profile *profile = &decider->profiles[i];

        source->tallies[i].log_epoch_cost = past_log_epoch_cost(
            profile->points, profile->count, 1.0, source->eta, source->workload->spec.max_power_w);
    }
}

static int run_source(const struct transfer *transfer, const struct batch_policy *policy,
                      const struct policy_parameters *parameters, struct elsewhere *source,
                      struct fly_error *out_error)
{
    struct policy_parameters theirs = *parameters;
    struct recurrence recurrence;
    struct recurring job;
    int code;

    theirs.seed += other_luck;
    code = recurring_init(&job, transfer->source, policy, &theirs, out_error);
    if (code < 0)
        return code;
    job.observer = take_try;
    job.observer_context = source;
    for (uint64_t i = 0; i < transfer->recurrences && code == 0; i++)
        code = recurring_run(&job, &recurrence, out_error);
    note_costs(source, &job.decider);
    recurring_deinit(&job);
    if (code == FLY_EEXHAUSTED)
        code = 0;
    return code < 0 ? code : source->code;
}

/* Finds the target's batch size that stands for one of the source's; the count if there is none. */
static size_t find_batch(const struct job_spec *target, uint32_t size, int octaves)
{
    double wanted = ldexp((double)size, octaves);
    size_t at = 0;

    while (at < target->batch_count && (double)target->batches[at].size != wanted)
        at++;
    return at;
}

static int fold_past(const struct transfer *transfer, const struct elsewhere *source, struct decider *target,
                     struct fly_error *out_error)
{
    const struct job_spec *spec = target->spec;
    struct past_batch batches[JOB_BATCHES_MAX];
    struct past_brought brought = {.kind = transfer->kind, .batches = batches};

    for (size_t i = 0; i < source->workload->spec.batch_count; i++) {
        size_t batch = find_batch(spec, source->workload->spec.batches[i].size, transfer->octaves);

        if (batch < spec->batch_count && past_tally_shows(&source->tallies[i]))
            batches[brought.count++] = (struct past_batch){batch, source->tallies[i]};
    }
    if (brought.count == 0)
        return 0;
    return decider_fold(target, &(struct event){.kind = EVENT_PAST_BROUGHT, .brought = &brought}, out_error);
}

int transfer_bring(const struct transfer *transfer, const struct batch_policy *policy,
                   const struct policy_parameters *parameters, struct decider *target,
                   struct fly_error *out_error)
{
    struct elsewhere *source = calloc(1, sizeof *source);
    int code;

    if (source == NULL)
        return error_no_memory(out_error);
    *source = (struct elsewhere){.workload = transfer->source,
                                 .eta = target->spec->eta,
                                 .target = transfer->objective_only ? target : NULL,
                                 .error = out_error};
    code = run_source(transfer, policy, parameters, source, out_error);
    if (code == 0 && !transfer->objective_only)
        code = fold_past(transfer, source, target, out_error);
    free(source);
    return code;
}
