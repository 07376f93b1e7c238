/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_COUNT_H
#define FLYBALL_TRAIN_PROGRAM_STEP_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * How many steps a training has begun, in which epochs, and how long they took. The tuner and the session
 * keep one each, as they are told of steps, and tell the governor how far the training is by it
 * (carbon_pace.h).
 *
 *     step_count_epoch_begin(&count, clock);
 *     step_count_step(&count);                 a step begins: it is under way until the next one
 *     ...
 *     step_count_epoch_end(&count, clock);     all steps that began are done; evaluation follows
 *
 * An epoch here is a stretch of steps without anything else between them; its time runs from begin to end.
 * Of one that begins anew before it ended nothing counts. One that has ended may be ended again. All zeros
 * is the beginning.
 */
struct step_count {
    uint64_t begun;         /* steps, with the one under way */
    uint64_t before;        /* of these, before the newest epoch */
    uint64_t longest;       /* steps of the longest epoch that has ended; 0: none has */
    bool open;              /* an epoch is under way, */
    struct mono_time since; /* from then on */
    double ended_s;         /* that epochs took which have ended */
};

static inline void step_count_step(struct step_count *count)
{
    count->begun++;
}

void step_count_epoch_begin(struct step_count *count, const struct clock *clock);
void step_count_epoch_end(struct step_count *count, const struct clock *clock);

/* Steps of the newest epoch, under way or ended. */
uint64_t step_count_in_epoch(const struct step_count *count);

/* Steps that are done: in an epoch all but the newest. */
uint64_t step_count_done(const struct step_count *count);

/* Spent in epochs up to now. */
double step_count_time_s(const struct step_count *count, const struct clock *clock);

#endif
