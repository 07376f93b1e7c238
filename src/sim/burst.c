/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/burst.h"

/* Submissions of a burst last this long, and each retry again; the next burst comes after all of them. */
static const double length_s = 1.0, spacing_s = RECURRING_TRIES_MAX + 1.0;

static void take_try(void *context, const struct try_record *record)
{
    struct burst *burst = context;
    size_t at = (size_t)(record->recurrence - burst->first);
    struct recurrence *sums = &burst->sums[at];

    sums->energy_j += record->energy_j;
    sums->time_s += record->time_s;
    sums->cost_j += record->cost_j;
    sums->power_limit_w = record->power_limit_w;
    sums->batch = 0;
    while (burst->job.spec.batches[sums->batch].size != record->batch_size)
        sums->batch++;
    burst->reached[at] |= record->reached;
    if (burst->observer != NULL)
        burst->observer(burst->observer_context, record);
}

int burst_init(struct burst *burst, const struct workload *workload, const struct batch_policy *policy,
               const struct policy_parameters *parameters, struct fly_error *out_error)
{
    int code;

    *burst = (struct burst){.first = 0};
    code = overlapping_init(&burst->job, workload, workload->spec.name, policy, parameters, out_error);
    if (code < 0)
        return code;
    burst->job.observer = take_try;
    burst->job.observer_context = burst;
    burst->job.tries_max = RECURRING_TRIES_MAX;
    return 0;
}

void burst_deinit(struct burst *burst)
{
    overlapping_deinit(&burst->job);
}

int burst_run(struct burst *burst, size_t size, struct fly_error *out_error)
{
    const struct submission submission = {burst->now_s, burst->now_s + length_s, 1.0};
    int code = 0;

    burst->first = burst->job.submissions;
    for (size_t i = 0; i < size; i++) {
        burst->sums[i] = (struct recurrence){.energy_j = 0.0};
        burst->reached[i] = false;
    }
    for (size_t i = 0; i < size && code == 0; i++)
        code = overlapping_submit(&burst->job, &submission, out_error);
    if (code == 0)
        code = overlapping_finish(&burst->job, out_error);
    burst->now_s += spacing_s;
    return code;
}
