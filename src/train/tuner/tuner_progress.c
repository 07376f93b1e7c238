/* SPDX-License-Identifier: Apache-2.0 */
/* How far the training is, for whoever follows the grid; and for how long the hook has nothing to do. */
#include <math.h>

#include "base/fork_guard.h"
#include "train/carbon/carbon_governor.h"
#include "train/tuner/tuner_private.h"

void tuner_rest(struct fly_tuner *tuner, uint64_t steps)
{
    struct tuner_carbon *carbon = &tuner->carbon;

    carbon->begun += carbon->quiet - tuner->quiet_steps;
    tuner->quiet_steps = carbon->quiet = steps;
}

static uint64_t steps_begun(const struct fly_tuner *tuner)
{
    return tuner->carbon.begun + tuner->carbon.quiet - tuner->quiet_steps;
}

double tuner_step_time_s(const struct fly_tuner *tuner)
{
    const struct tuner_carbon *carbon = &tuner->carbon;

    if (!carbon->in_steps)
        return carbon->step_time_s;
    return carbon->step_time_s + mono_elapsed_s(carbon->since, tuner->clock->now(tuner->clock->state));
}

/* At a step's begin: it is not done. */
struct carbon_progress tuner_progress(const struct fly_tuner *tuner)
{
    uint64_t begun = steps_begun(tuner), done = begun > 0 && tuner->carbon.in_steps ? begun - 1 : begun;

    return (struct carbon_progress){
        .steps_done = (double)done,
        .steps_left = tuner->carbon.steps > done ? (double)(tuner->carbon.steps - done) : NAN,
        .step_time_s = tuner_step_time_s(tuner),
    };
}

void tuner_carbon_stands(struct fly_tuner *tuner, double limit_w)
{
    if (tuner->carbon.governor == NULL || tuner->forks != fork_generation())
        return;
    carbon_governor_count(tuner->carbon.governor, tuner_progress(tuner).steps_done);
    carbon_governor_stands(tuner->carbon.governor, limit_w);
}

void tuner_expect_steps(struct fly_tuner *tuner, uint64_t steps)
{
    tuner->carbon.steps = steps;
}
