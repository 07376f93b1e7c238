/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `default` once more, as a plug-in of the header's first version. */
#include <stddef.h>
#include <string.h>

#include <flyball/plugin.h>

static int create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
{
    (void)out_reason;
    memcpy(out_state, &job, sizeof job); /* it never writes to it */
    return 0;
}

static int propose(const void *state, const struct fly_batch_question *question,
                   struct fly_batch_decision *out_decision)
{
    const struct fly_batch_job *job = state;
    const struct fly_batch_choice *batch = &job->batches[job->default_batch];

    (void)question;
    *out_decision = (struct fly_batch_decision){job->default_batch, FLY_LIMIT_FIXED,
                                                batch->limits_w[batch->limit_count - 1]};
    return 0;
}

const struct fly_batch_policy fly_batch_policy_plugin = {
    .abi = FLY_PLUGIN_ABI,
    .size = offsetof(struct fly_batch_policy, begin),
    .name = "default-again",
    .version = 1,
    .create = create,
    .propose = propose,
};
