/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_SLICER_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_SLICER_H

#include "base/clock.h"
#include "model/energy_slice.h"

/*
 * Cuts the energy of a run into slices (model/energy_slice.h), and keeps them until they are on disk.
 *
 *     slicer_init(&slicer, now, date);
 *     if (slicer_is_due(&slicer, now, date))
 *         look how much energy was used since what was taken last, then
 *         cut = slicer_cut(&slicer, CUT_BORDERS, now, date, &energy);
 *         ... cut.share of that energy is taken now; or measuring has to begin anew
 *     while (slicer_front(&slicer, &slice, &number)) ... write it, slicer_pop(&slicer, number)
 *
 * Slices end exactly at the border, though the meter is read a little later: the energy is spread evenly over
 * the time since the last reading, and the part after the border stays for the next slice. So slices add up
 * to what was measured: nothing is lost or counted twice.
 *
 * A stretch too short for the meter to know its energy waits at most SLICER_AWAIT_S for a later reading that
 * covers both, which is then spread over both. A stretch that waits longer is unknown. Each cut compares the
 * two clocks: when their difference has changed by more than SLICER_JUMP_S, the date has jumped, and the
 * slice moves to the new date as a whole.
 *
 * Pure; the caller locks.
 */
enum { SLICER_QUEUE_MAX = 256, SLICER_AWAIT_S = 60 };
#define SLICER_JUMP_S 0.1

enum slicer_cut_kind {
    CUT_BORDERS, /* at the borders that have passed */
    CUT_NOW,     /* there and now; a stretch under a millisecond stays with the next slice */
    CUT_LAST,    /* there and now, without waiting for anything */
};

/* Energy since what was taken last; NAN: not known. */
struct slicer_energy {
    double gpu_j, host_j;
    bool has_gpu; /* false: that of the GPUs will never be known */
};

struct slicer_result {
    double share; /* of the energy, that went into slices: 0 to 1 */
    bool anew;    /* the energy was unknown for too long: measure anew, without what was used so far */
};

struct carbon_slicer {
    double limit_w;   /* of the open slice */
    uint64_t steps;   /* in it */
    int64_t from_ns;  /* its start, UTC */
    int64_t ahead_ns; /* the date minus the monotonic clock */
    struct energy_slice queue[SLICER_QUEUE_MAX];
    uint64_t first, end; /* numbers of the slices in the queue: `first` up to but not including `end` */
    uint64_t awaiting;   /* how many of the newest wait for their energy */
    double awaiting_s;
    uint64_t lost; /* oldest slices dropped because the queue was full */
};

void slicer_init(struct carbon_slicer *slicer, struct mono_time now, struct wall_time date);

/* The moment of the next border, if the date does not jump. */
struct mono_time slicer_next(const struct carbon_slicer *slicer);

/* Whether a border has passed, or the date has jumped. */
bool slicer_is_due(const struct carbon_slicer *slicer, struct mono_time now, struct wall_time date);

struct slicer_result slicer_cut(struct carbon_slicer *slicer, enum slicer_cut_kind kind, struct mono_time now,
                                struct wall_time date, const struct slicer_energy *energy);

/* The oldest slice if it is ready to be written; false for none. */
bool slicer_front(const struct carbon_slicer *slicer, struct energy_slice *out_slice, uint64_t *out_number);
void slicer_pop(struct carbon_slicer *slicer, uint64_t number); /* harmless when it is gone */

#endif
