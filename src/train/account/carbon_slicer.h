/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_SLICER_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_SLICER_H

#include "base/clock.h"
#include "model/energy_slice.h"

/*
 * Cuts the energy of a run into slices (model/energy_slice.h), and keeps those until they are
 * on disk.
 *
 *     slicer_init(&slicer, now, date);
 *     if (slicer_is_due(&slicer, now, date))
 *         look how much energy was used since what was taken last, then
 *         cut = slicer_cut(&slicer, CUT_BORDERS, now, date, &energy);
 *         ... cut.share of that energy is taken now; or measuring has to begin anew
 *     while (slicer_front(&slicer, &slice, &number)) ... write it, slicer_pop(&slicer, number)
 *
 * Slices end exactly at the border, though a look comes a little later: the energy of the look is
 * spread evenly over the time since the last one, and what lies behind the border stays for the next
 * slice. So slices add up to what was measured: nothing is lost between two, or counts twice.
 *
 * A stretch too short for the meter to tell its energy waits, for at most SLICER_AWAIT_S, until
 * a later look tells that of both, which then is spread over both; longer ones are unknown.
 * The two clocks are compared at each cut: where they are apart by more than SLICER_JUMP_S from what they
 * were, the date has jumped, and the slice is moved to the new date as a whole.
 *
 * Pure; the caller locks.
 */
enum { SLICER_QUEUE_MAX = 256, SLICER_AWAIT_S = 60 };
#define SLICER_JUMP_S 0.1

enum slicer_cut_kind {
    CUT_BORDERS, /* at borders that have passed */
    CUT_NOW,     /* there, and now; but for a stretch under a millisecond, which stays with the next slice */
    CUT_LAST,    /* there, and now; nothing is waited for */
};

/* Since what was taken last; NAN: not known. */
struct slicer_energy {
    double gpu_j, host_j;
    bool has_gpu; /* false: that of GPUs will never be known */
};

struct slicer_result {
    double share; /* of the energy, taken into slices: 0 to 1 */
    bool anew;    /* it is not known for a long time: what was used up to now is given up */
};

struct carbon_slicer {
    double limit_w;   /* of the open slice */
    uint64_t steps;   /* in it */
    int64_t from_ns;  /* its start, UTC */
    int64_t ahead_ns; /* of the date before the monotonic clock */
    struct energy_slice queue[SLICER_QUEUE_MAX];
    uint64_t first, end; /* numbers of slices in it, from `first` to before `end` */
    uint64_t awaiting;   /* of these, the newest, wait for their energy */
    double awaiting_s;
    uint64_t lost; /* oldest ones, where the queue was full */
};

void slicer_init(struct carbon_slicer *slicer, struct mono_time now, struct wall_time date);

/* The moment of the next border, as far as the date does not jump. */
struct mono_time slicer_next(const struct carbon_slicer *slicer);

/* Whether a border has passed, or the date has jumped. */
bool slicer_is_due(const struct carbon_slicer *slicer, struct mono_time now, struct wall_time date);

struct slicer_result slicer_cut(struct carbon_slicer *slicer, enum slicer_cut_kind kind, struct mono_time now,
                                struct wall_time date, const struct slicer_energy *energy);

/* The oldest slice that waits for nothing but to be written; false for none. */
bool slicer_front(const struct carbon_slicer *slicer, struct energy_slice *out_slice, uint64_t *out_number);
void slicer_pop(struct carbon_slicer *slicer, uint64_t number); /* harmless where it is gone */

#endif
