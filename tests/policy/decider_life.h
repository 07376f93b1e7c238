/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_POLICY_DECIDER_LIFE_H
#define FLYBALL_TESTS_POLICY_DECIDER_LIFE_H

#include "test.h"

#include "policy/decider.h"

/* A decider in an arena of its own, for jobs with three power limits. */
enum { LIMITS = 3 };
static const double limits_w[LIMITS] = {100, 150, 200};

struct life {
    struct arena arena;
    struct decider decider;
};

static inline void begin(struct life *life, const struct job_spec *job, const struct batch_policy *policy)
{
    struct fly_error error;

    arena_init(&life->arena, 1 << 20);
    if (decider_init(&life->decider, job, policy, &(struct policy_parameters){.beta = 2.0}, &life->arena,
                     &error) < 0)
        fail_msg("%s", error.text);
}

static inline void finish(struct life *life)
{
    decider_deinit(&life->decider);
    arena_deinit(&life->arena);
}

static inline void tell(struct life *life, const struct event *event)
{
    assert_int_equal(decider_fold(&life->decider, event, NULL), 0);
}

#endif
