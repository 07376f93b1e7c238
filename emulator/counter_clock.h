/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_COUNTER_CLOCK_H
#define FLYBALL_EMULATOR_COUNTER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "emulator/sleeps.h"

/*
 * When an energy counter is updated.
 *
 * Update k is due at phase + k * period of the counter's own clock. A moment c of that clock is the moment
 *
 *     c + drift (c - origin) + slew(c - origin)
 *
 * of the machine's, where the slew changes the period to and fro: as a sine, or at once every half
 * `slew_s`. An update comes up to `jitter_ns` late, each by itself, and a share of them does not come at
 * all. The counter's clock goes on while the machine sleeps: its phase is another one afterwards.
 *
 * All of it is a closed form of time and seed. Times are nanoseconds of the state's clock.
 */
struct counter_clock {
    int64_t period_ns; /* 0: every answer is fresh */
    int64_t phase_ns;
    int64_t origin_ns;       /* where drift and slew begin */
    double drift_ppm;        /* how much longer the period is than stated; below 0: shorter */
    double slew_ppm, slew_s; /* by how much that changes to either side, and how long both sides take */
    bool slew_steps;         /* from one side to the other at once */
    int64_t jitter_ns;       /* no more than the period counts */
    double skipped;          /* share of the updates that do not come, below 1 */
    struct sleeps sleeps;
    uint32_t seed, gpu; /* of jitter and skipped updates */
};

/* Returns the moment of the last update at or before `at_ns`; `at_ns` itself for a period of 0. Pure. */
int64_t counter_clock_made_ns(const struct counter_clock *clock, int64_t at_ns);

#endif
