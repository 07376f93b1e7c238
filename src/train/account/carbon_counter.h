/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_COUNTER_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_COUNTER_H

#include <stdatomic.h>

#include "base/clock.h"
#include "train/account/carbon_energy.h"
#include "train/account/carbon_slicer.h"

/*
 * What of a meter's energy counts for an account, cut into slices (carbon_slicer.h): from the start of a
 * program to its end, and where another one follows to the end of that.
 *
 *     counter_init(&counter, clock, meter, true);      it rests: nothing counts
 *     counter_go(&counter);                            a program starts
 *     counter_limit(&counter, limit_w);                a limit stands from now on
 *     counter_rest(&counter);                          it has ended
 *     counter_cut(&counter, CUT_LAST);
 *
 * Energy that is used while it rests counts where it goes on, and not after the last end. Steps and limits
 * that are told meanwhile are those of before and of afterwards. The caller locks, but for `steps`.
 */

/* What was used by a moment. */
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
    bool begun, rests;           /* a program started; none runs */
    struct counter_moment rest;  /* when that began */
    double rest_limit_w;         /* that stands by now; NAN: not known */
};

/* Of one that is all 0; false without memory. `rests`: until counter_go. */
bool counter_init(struct carbon_counter *out_counter, const struct clock *clock, struct fly_meter *meter,
                  bool rests);

/* Both are harmless where it does so already. */
void counter_go(struct carbon_counter *counter);
void counter_rest(struct carbon_counter *counter);

void counter_cut(struct carbon_counter *counter, enum slicer_cut_kind kind);
/* Whether it is another one, at which a slice ended; NAN: not known. */
bool counter_limit(struct carbon_counter *counter, double limit_w);

/* Both clocks at one moment, or nearly so where the thread is held up in between. */
void counter_clocks(const struct clock *clock, struct mono_time *out_now, struct wall_time *out_date);

#endif
