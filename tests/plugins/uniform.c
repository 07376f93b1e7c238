/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any batch size, as the random numbers say; checks on its way what it is told. A plug-in of the
 * header's second version.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <flyball/plugin.h>

struct uniform {
    const struct fly_batch_job *job;
    size_t profiles, begun, trials;
    uint64_t recurrence;
};

static int create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
{
    struct uniform *uniform = calloc(1, sizeof *uniform);

    if (uniform == NULL || job->default_batch >= job->batch_count || job->max_epochs < 1 ||
        !(job->max_power_w > 0.0) || job->eta != 0.25 || job->beta != 3.0 || job->window != 7) {
        *out_reason = "the job is not as the test describes it";
        free(uniform);
        return 1;
    }
    uniform->job = job;
    *out_state = uniform;
    return 0;
}

static void destroy(void *state)
{
    free(state);
}

static void profile(void *state, size_t batch, const struct fly_power_point *points, size_t count)
{
    struct uniform *uniform = state;

    if (count != uniform->job->batches[batch].limit_count || !(points[0].time_s > 0.0))
        abort();
    uniform->profiles++;
}

static void begin(void *state, size_t batch)
{
    struct uniform *uniform = state;

    if (batch >= uniform->job->batch_count || uniform->begun != uniform->trials)
        abort();
    uniform->begun++;
}

static bool epochs_fit(const struct fly_batch_job *job, const struct fly_trial *trial)
{
    if (trial->outcome == FLY_TRIAL_REFUSED)
        return trial->epochs == 0.0;
    return trial->epochs >= 1.0 && trial->epochs <= job->max_epochs;
}

static void observe(void *state, const struct fly_trial *trial)
{
    struct uniform *uniform = state;
    const struct fly_batch_job *job = uniform->job;
    double cost_j = job->eta * trial->energy_j + (1.0 - job->eta) * job->max_power_w * trial->time_s;

    if (fabs(cost_j - trial->cost_j) > 1e-9 * cost_j || trial->recurrence < uniform->recurrence ||
        (trial->recurrence > uniform->recurrence && trial->try_number != 0))
        abort();
    uniform->recurrence = trial->recurrence;
    uniform->trials++;
    if (uniform->begun != uniform->trials || !epochs_fit(job, trial))
        abort();
}

static int propose(const void *state, const struct fly_batch_question *question,
                   struct fly_batch_decision *out_decision)
{
    const struct uniform *uniform = state;
    const struct fly_random *random = question->random;

    if (question->trial != uniform->trials || uniform->profiles > uniform->job->batch_count ||
        random->bits(random, 65535) == random->bits(random, 1) || !isfinite(random->normal(random, 2)))
        abort();
    out_decision->batch = random->bits(random, 0) % uniform->job->batch_count;
    return 0;
}

const struct fly_batch_policy fly_batch_policy_plugin = {
    .abi = FLY_PLUGIN_ABI,
    .size = offsetof(struct fly_batch_policy, measure),
    .name = "uniform",
    .version = 3,
    .create = create,
    .destroy = destroy,
    .profile = profile,
    .observe = observe,
    .propose = propose,
    .begin = begin,
};
