/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_STEP_RECORD_H
#define FLYBALL_TRAIN_TUNER_STEP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The steps of one window, and what one of them takes in time and energy when the training does other things
 * in between. Pure: plain values, no clock.
 *
 *     step_record_begin(&record);
 *     at each step's end:
 *         step_record_add(&record, step_s);
 *         if (step_record_wants_mark(&record))
 *             step_record_mark(&record, &so_far);      what the window holds up to here
 *     estimate = step_record_estimate(&record, &whole);
 *
 * **Pauses.** A step that takes more than five median steps contains a pause: an evaluation, a checkpoint, a
 * loader that stalls. The step and its pause belong to no limit, so the estimate leaves them out. When more
 * than one step in ten is that long, they are how this training works, and none is left out. Steps that are
 * reported late and then several at a time look like a pause followed by steps without duration; the sum of
 * such a group decides. Nothing is left out of fewer than eight steps.
 *
 * **Energy.** Marks divide the window. The power of the stretches between marks in which no pause lies is the
 * power of the steps. Each group of stretches that is left out adds the error of two edges. When less than a
 * quarter of the steps' time lies in stretches without pauses, the power in a pause is not known: it is
 * between none and that of the steps, and the interval holds both ends.
 *
 * **Standard error.** From the spread of the steps that count. When neighbours are alike (sequence lengths in
 * order, a drift), ten batches of steps vary by more than that spread explains. If chance does not explain it
 * (chi squared, 99 %), the spread between the batches counts.
 *
 * A record of more than 4096 steps puts two neighbours, then four, in each place.
 */
enum { STEP_RECORD_PLACES = 4096, STEP_RECORD_MARKS = 128 };

/* What a window holds from its begin on. */
struct step_stretch {
    double time_s;
    double energy_j; /* NAN: not known */
    double half_j;   /* half width of the interval that holds the energy */
};

struct step_mark {
    size_t at; /* places before it */
    struct step_stretch so_far;
};

struct step_record {
    size_t count;        /* places that are full */
    uint32_t per_place;  /* steps in each */
    uint32_t begun;      /* steps in the next one */
    double begun_s;      /* and their time */
    double time_s;       /* of all steps */
    double mark_every_s; /* doubles when there are too many */
    double mark_due_s;
    size_t mark_count;
    struct step_mark marks[STEP_RECORD_MARKS];
    float places_s[STEP_RECORD_PLACES];
};

void step_record_begin(struct step_record *record);
void step_record_add(struct step_record *record, double step_s);
/* Whether the energy up to here is wanted: some time after the last mark, and not right after a pause. */
bool step_record_wants_mark(const struct step_record *record);
void step_record_mark(struct step_record *record, const struct step_stretch *so_far);

struct step_estimate {
    double time_s;           /* of all the window's steps, had none a pause */
    double energy_j, half_j; /* of the same steps */
    double steps;            /* that the mean step is known from */
    double mean_s, spread_s; /* of these; the mean's standard error is spread_s over the root of `steps` */
    double scatter; /* of most single steps, as a fraction: the standard deviation by their deciles, so that
                       fewer than one in ten that are late do not count; 0: not known */
    uint64_t pauses;
    double pause_s; /* with the steps that contain them */
    double pause_j; /* NAN with an unknown energy */
};

/* `whole`: all of the window. */
struct step_estimate step_record_estimate(const struct step_record *record, const struct step_stretch *whole);

#endif
