/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_COUNT_H
#define FLYBALL_TRAIN_PROGRAM_STEP_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Counts the steps that a training has begun, its epochs, and the time that they took. The tuner and the
 * session keep one each as they hear of steps, and tell the governor with it how far the training is
 * (carbon_pace.h).
 *
 *     step_count_epoch_begin(&count, clock);
 *     step_count_step(&count);                 a step begins: it is under way until the next one
 *     ...
 *     step_count_epoch_end(&count, clock);     all steps that began are done; evaluation follows
 *
 * An epoch is a stretch of steps with nothing else in between; its time runs from begin to end. If an epoch
 * begins again before it ended, nothing of the first counts. An epoch that has ended may be ended again.
 * Start with all zeros. Another thread may look at `begun`, which is written atomically.
 */
struct step_count {
    uint64_t begun;         /* steps, including the one under way */
    uint64_t before;        /* of these, those before the newest epoch */
    uint64_t longest;       /* steps of the longest epoch that has ended; 0: none has */
    bool open;              /* an epoch is under way */
    struct mono_time since; /* when it began */
    double ended_s;         /* time of the epochs that have ended */
};

static inline void step_count_set(struct step_count *count, uint64_t begun)
{
    __atomic_store_n(&count->begun, begun, __ATOMIC_RELAXED);
}

static inline void step_count_step(struct step_count *count)
{
    step_count_set(count, count->begun + 1);
}

/* Begins anew, with all zeros. */
void step_count_reset(struct step_count *count);

void step_count_epoch_begin(struct step_count *count, const struct clock *clock);
void step_count_epoch_end(struct step_count *count, const struct clock *clock);

/* Steps of the newest epoch, whether under way or ended. */
uint64_t step_count_in_epoch(const struct step_count *count);

/* Steps that are done: within an epoch all but the newest. */
uint64_t step_count_done(const struct step_count *count);

/* Time spent in epochs up to now. */
double step_count_time_s(const struct step_count *count, const struct clock *clock);

#endif
