/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the training's progress for the governor, and for how long the hook has nothing to do. */
#include <math.h>

#include "base/thread/fork_guard.h"
#include "train/carbon/carbon_governor.h"
#include "train/tuner/tuner_private.h"

void tuner_rest(struct fly_tuner *tuner, uint64_t steps)
{
    uint64_t begun = tuner->count.begun;

    tuner->quiet_until = steps < UINT64_MAX - begun ? begun + steps : UINT64_MAX;
}

void tuner_count_step(struct fly_tuner *tuner)
{
    if (tuner->carbon.governor != NULL && !tuner->count.open)
        step_count_epoch_begin(&tuner->count, tuner->clock);
    step_count_step(&tuner->count);
}

struct carbon_progress tuner_progress(const struct fly_tuner *tuner)
{
    uint64_t done = step_count_done(&tuner->count);

    return (struct carbon_progress){
        .steps_done = (double)done,
        .steps_left = tuner->carbon.steps > done ? (double)(tuner->carbon.steps - done) : NAN,
        .step_time_s = step_count_time_s(&tuner->count, tuner->clock),
    };
}

void tuner_carbon_stands(struct fly_tuner *tuner, double limit_w)
{
    if (tuner->carbon.governor == NULL || tuner->forks != fork_generation())
        return;
    carbon_governor_count(tuner->carbon.governor, (double)step_count_done(&tuner->count));
    carbon_governor_stands(tuner->carbon.governor, limit_w);
}

void tuner_expect_steps(struct fly_tuner *tuner, uint64_t steps)
{
    tuner->carbon.steps = steps;
}
