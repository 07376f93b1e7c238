/* SPDX-License-Identifier: Apache-2.0 */
/* The whole fold of a decider as bytes. */
#include "policy/decider.h"

bool decider_saves(const struct decider *decider)
{
    return decider->policy->save != NULL && decider->policy->load != NULL;
}

void decider_save(const struct decider *decider, struct buffer *bytes)
{
    bytes_put_u64(bytes, decider->trials);
    bytes_put_u64(bytes, decider->ended);
    for (size_t i = 0; i < decider->spec->batch_count; i++) {
        const struct decider_profile *profile = &decider->profiles[i];

        bytes_put_u64(bytes, profile->count);
        bytes_put_u64(bytes, profile->best);
        bytes_put_double(bytes, profile->units_per_epoch);
        bytes_put_double(bytes, profile->highest_limit_w);
        for (size_t point = 0; point < profile->count; point++) {
            bytes_put_double(bytes, profile->points[point].limit_w);
            bytes_put_double(bytes, profile->points[point].power_w);
            bytes_put_double(bytes, profile->points[point].time_s);
        }
    }
    bytes_put_u64(bytes, decider->begun_anew);
    bytes_put_u64(bytes, decider->excluded);
    guard_save(&decider->guard, bytes);
    crash_streaks_save(decider->streaks, decider->spec->batch_count, bytes);
    decider->policy->save(decider->policy_state, bytes);
}

static int load_profile(struct decider *decider, struct decider_profile *out_profile,
                        struct bytes_reader *bytes, struct fly_error *out_error)
{
    struct decider_profile profile = {.count = (size_t)bytes_up_to(bytes, JOB_LIMITS_MAX)};

    profile.best = (size_t)bytes_up_to(bytes, profile.count > 0 ? profile.count - 1 : 0);
    profile.units_per_epoch = bytes_double(bytes);
    profile.highest_limit_w = bytes_double(bytes);
    if (profile.count > 0) {
        profile.points = arena_alloc(decider->arena, profile.count, sizeof profile.points[0]);
        if (profile.points == NULL)
            return error_no_memory(out_error);
    }
    for (size_t i = 0; i < profile.count; i++) {
        profile.points[i].limit_w = bytes_double(bytes);
        profile.points[i].power_w = bytes_double(bytes);
        profile.points[i].time_s = bytes_double(bytes);
    }
    *out_profile = profile;
    return 0;
}

int decider_load(struct decider *decider, struct bytes_reader *bytes, struct fly_error *out_error)
{
    int code = 0;

    decider->trials = bytes_u64(bytes);
    decider->ended = bytes_up_to(bytes, decider->trials);
    for (size_t i = 0; code == 0 && i < decider->spec->batch_count; i++)
        code = load_profile(decider, &decider->profiles[i], bytes, out_error);
    if (code < 0)
        return code;
    decider->begun_anew = bytes_u64(bytes);
    decider->excluded = (size_t)bytes_up_to(bytes, decider->spec->batch_count);
    guard_load(&decider->guard, bytes);
    crash_streaks_load(decider->streaks, decider->spec->batch_count, bytes);
    decider->crashing = true;
    if (bytes->failed || !decider->policy->load(decider->policy_state, bytes))
        return 1;
    decider_tell_kept(decider);
    return 0;
}
