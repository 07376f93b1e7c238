/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decider.h"

#include <math.h>
#include <string.h>

int decider_init(struct decider *decider, const struct job_spec *spec, const struct batch_policy *policy,
                 const struct policy_parameters *parameters, struct arena *arena, struct fly_error *out_error)
{
    *decider = (struct decider){
        .spec = spec,
        .policy = policy,
        .power = parameters->power != NULL ? parameters->power : &power_policy_cost,
        .arena = arena,
    };
    decider->profiles = arena_alloc(arena, spec->batch_count, sizeof decider->profiles[0]);
    if (decider->profiles == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < spec->batch_count; i++)
        decider->profiles[i].highest_limit_w = batch_highest_limit_w(&spec->batches[i]);
    return policy->create(policy, spec, parameters, arena, &decider->policy_state, out_error);
}

void decider_deinit(struct decider *decider)
{
    if (decider->policy->destroy != NULL)
        decider->policy->destroy(decider->policy_state);
}

static int fold_profile(struct decider *decider, const struct profile_measured *measured,
                        struct fly_error *out_error)
{
    struct decider_profile profile = {.count = measured->count};
    double max_power_w;
    int code;

    for (size_t i = 0; i < measured->count; i++)
        profile.highest_limit_w = fmax(profile.highest_limit_w, measured->points[i].limit_w);
    max_power_w =
        decider->policy->weighs_with_batch_limit ? profile.highest_limit_w : decider->spec->max_power_w;
    code = decider->power->choose(decider->power, measured->points, measured->count, decider->spec->eta,
                                  max_power_w, &profile.best, out_error);
    if (code < 0)
        return code;
    profile.points = arena_alloc(decider->arena, measured->count, sizeof profile.points[0]);
    if (profile.points == NULL)
        return error_no_memory(out_error);
    memcpy(profile.points, measured->points, measured->count * sizeof profile.points[0]);
    decider->profiles[measured->batch] = profile;
    return 0;
}

int decider_fold(struct decider *decider, const struct event *event, struct fly_error *out_error)
{
    int code = 0;

    switch (event->kind) {
    case EVENT_RECURRENCE_BEGUN:
        break;
    case EVENT_TRIAL_PROPOSED:
        decider->trials++;
        break;
    case EVENT_PROFILE_MEASURED:
        code = fold_profile(decider, event->measured, out_error);
        break;
    case EVENT_TRIAL_ENDED:
        decider->ended++;
        break;
    }
    if (code == 0 && decider->policy->fold != NULL)
        decider->policy->fold(decider->policy_state, event);
    return code;
}

int decider_propose(const struct decider *decider, uint64_t recurrence, uint32_t try_number,
                    struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct batch_question question = {.recurrence = recurrence,
                                            .try_number = try_number,
                                            .trial = decider->trials,
                                            .in_flight = decider->trials - decider->ended};

    return decider->policy->propose(decider->policy_state, &question, out_proposal, out_error);
}

bool decider_wants_profile(const struct decider *decider, const struct proposal *proposal)
{
    return proposal->limit_rule == LIMIT_PROFILED && decider->profiles[proposal->batch].points == NULL;
}

double decider_limit_w(const struct decider *decider, const struct proposal *proposal)
{
    const struct decider_profile *profile = &decider->profiles[proposal->batch];

    return proposal->limit_rule == LIMIT_FIXED ? proposal->limit_w : profile->points[profile->best].limit_w;
}

int decider_epoch_cap(const struct decider *decider, size_t batch, double epoch_energy_j, double epoch_time_s,
                      uint32_t *out_epochs, struct fly_error *out_error)
{
    const struct epoch_question question = {
        .batch = batch,
        .epoch_energy_j = epoch_energy_j,
        .epoch_time_s = epoch_time_s,
        .highest_limit_w = decider->profiles[batch].highest_limit_w,
    };

    if (decider->policy->epoch_cap != NULL)
        return decider->policy->epoch_cap(decider->policy_state, &question, out_epochs, out_error);
    *out_epochs = decider->spec->max_epochs;
    return 0;
}
