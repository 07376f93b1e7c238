/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_CEILING_H
#define FLYBALL_KNOB_CEILING_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * What can be known of a ceiling on a clock of a GPU: its processors', or its memory's.
 *
 * Drivers hold a clock below a ceiling ("locked clocks") and lift that again, but none says
 * whether there is one. Flyball knows only what it set, and what the GPU shows:
 *
 *     before a first ceiling   If the driver names a clock setting as what slows the GPU, or
 *                              an AMD GPU does not choose its clocks by itself,
 *                              somebody has set clocks, and they stay. If the GPU
 *                              shows nothing, Flyball assumes that it has no ceiling,
 *                              and puts it back to none. A lock that does not
 *                              slow the GPU at that moment is not seen, and is lost.
 *     under our ceiling        If the GPU runs above it, or the driver names a clock setting
 *                              that holds it below, another program has set clocks
 *                              since, and its setting stays. A lower lock that
 *                              does not show, for example on an idle GPU, is not seen,
 *                              and is lifted together with ours.
 *
 * A floor comes and goes with its ceiling. Nothing is made of a clock below it, since heat, the power
 * limit and idleness lower clocks all the same. Of the memory's clock a GPU shows only whether it is above
 * our ceiling.
 */

/* Clocks have steps of about 15 MHz, and a driver may round to either side. */
enum { CEILING_TOLERANCE_MHZ = 30 };

/*
 * Returns whether the GPU shows nothing that contradicts our ceiling on that clock; an unreadable value does
 * not count. A clock takes time to follow, so a contradiction must last for half a second; only
 * in that case this function waits. `out_clock_mhz` is the clock that contradicts it, 0 without.
 */
bool ceiling_may_stand(const struct device *device, enum quantity quantity, int64_t ceiling_mhz,
                       int64_t *out_clock_mhz);

/* Returns 0, or FLY_ESTATE if somebody else has set that clock, as far as the GPU shows that. */
int ceiling_check_free(const struct device *device, enum quantity quantity, struct fly_error *out_error);

#endif
