/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_SLEEPS_H
#define FLYBALL_EMULATOR_SLEEPS_H

#include <stdint.h>

#include "emulator/settings.h"

/*
 * When the machine is suspended. Its monotonic clock stands still then and nothing is drawn, but dates and
 * the clocks of boards go on: a moment that counts sleep is later than the monotonic one by all that was
 * slept. Pure; times are nanoseconds of the state's clock.
 */
struct sleeps {
    int64_t origin_ns;
    int64_t every_ns; /* monotonic time from the origin to the first sleep, and between two; 0: none */
    int64_t each_ns;  /* how long each takes */
    int64_t more_ns;  /* what was slept beside these */
};

/* Those of the settings, from `origin_ns` on. */
struct sleeps sleeps_of(const struct emulator_settings *settings, int64_t origin_ns);

/* Returns what was slept up to a monotonic moment, that moment's sleep included. */
int64_t sleeps_up_to_ns(const struct sleeps *sleeps, int64_t at_ns);

/* Returns the monotonic moment of one that counts sleep: that of the whole sleep, if it lies in one. */
int64_t sleeps_left_out_ns(const struct sleeps *sleeps, int64_t with_sleep_ns);

#endif
