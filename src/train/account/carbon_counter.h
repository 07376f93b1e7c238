/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_COUNTER_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_COUNTER_H

#include <stdatomic.h>

#include <flyball/meter.h>

#include "base/clock.h"
#include "train/account/carbon_slicer.h"

/*
 * The energy of a run, taken piece by piece from one window of a meter that stays open; for each device it
 * notes how much was taken.
 *
 *     carbon_energy_init(&energy, meter)
 *     look = carbon_energy_look(&energy);      since what was taken last
 *     carbon_energy_take(&energy, 0.75);       three quarters of what that look told
 *
 * Readings of one window add up exactly, where two windows side by side would overlap or leave a gap. When a
 * device's figure changes its source, from its counter to sampled power, the energy in between is that of
 * sampled power, not the difference of the two figures. It does not call the `synchronize` of the meter's
 * owner. The caller locks.
 */
struct carbon_taken;

struct carbon_energy {
    struct fly_meter *meter; /* borrowed; NULL: nothing is known */
    fly_window window;
    bool is_open; /* the window is */
    bool has_gpu;
    size_t count;                      /* of devices */
    struct fly_device_energy *devices; /* owned: their figures at the last look */
    struct carbon_taken *taken;        /* owned */
};

void carbon_energy_deinit(struct carbon_energy *energy);

/*
 * Counts the part of a meter's energy that belongs to an account, cut into slices (carbon_slicer.h): from the
 * start of a program to its end, or to the end of a program that follows it.
 *
 *     counter_init(&counter, clock, meter, true);      it rests: nothing counts
 *     counter_go(&counter);                            a program starts
 *     counter_limit(&counter, limit_w);                a limit stands from now on
 *     counter_rest(&counter);                          it has ended
 *     counter_cut(&counter, CUT_LAST);
 *
 * Energy used while the counter rests counts once it goes on; energy used after the last end does not. Steps
 * told while it rests belong to the program before, limits to the one that follows. The caller locks, except
 * for `steps`.
 */

/* What was used up to a moment. */
struct counter_moment {
    struct mono_time now;
    struct wall_time date;
    struct slicer_energy used;
};

struct carbon_counter {
    const struct clock *clock; /* borrowed */
    _Atomic uint64_t steps;    /* not yet in the slicer */
    struct carbon_slicer slicer;
    struct carbon_energy energy; /* the caller deinits it */
    bool begun, rests;           /* a program has started; none is running */
    struct counter_moment rest;  /* when the rest began */
    double rest_limit_w;         /* which stands by now; NAN: not known */
};

/* Initializes a counter that is all zeros; false without memory. `rests`: nothing counts until counter_go. */
bool counter_init(struct carbon_counter *out_counter, const struct clock *clock, struct fly_meter *meter,
                  bool rests);

/* Calls that change nothing are harmless. */
void counter_go(struct carbon_counter *counter);
void counter_rest(struct carbon_counter *counter);

void counter_cut(struct carbon_counter *counter, enum slicer_cut_kind kind);
/* Whether the limit changed, which ended a slice; NAN: not known. */
bool counter_limit(struct carbon_counter *counter, double limit_w);

/* Reads both clocks at one moment, or nearly so if the thread is held up in between. */
void counter_clocks(const struct clock *clock, struct mono_time *out_now, struct wall_time *out_date);

#endif
