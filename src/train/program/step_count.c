/* SPDX-License-Identifier: Apache-2.0 */
/* Counts steps one by one, but time by epochs, so that no step reads a clock. */
#include "train/program/step_count.h"

void step_count_epoch_begin(struct step_count *count, const struct clock *clock)
{
    if (count->open)
        step_count_set(count, count->before);
    count->before = count->begun;
    count->open = true;
    count->since = clock->now(clock->state);
}

void step_count_reset(struct step_count *count)
{
    step_count_set(count, 0);
    count->before = count->longest = 0;
    count->open = false;
    count->since = (struct mono_time){0};
    count->ended_s = 0.0;
}

uint64_t step_count_in_epoch(const struct step_count *count)
{
    return count->begun - count->before;
}

void step_count_epoch_end(struct step_count *count, const struct clock *clock)
{
    uint64_t steps = step_count_in_epoch(count);

    count->ended_s = step_count_time_s(count, clock);
    count->open = false;
    if (steps > count->longest)
        count->longest = steps;
}

uint64_t step_count_done(const struct step_count *count)
{
    return count->open && count->begun > 0 ? count->begun - 1 : count->begun;
}

double step_count_time_s(const struct step_count *count, const struct clock *clock)
{
    if (!count->open)
        return count->ended_s;
    return count->ended_s + mono_elapsed_s(count->since, clock->now(clock->state));
}
