/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_CEILING_H
#define FLYBALL_KNOB_CEILING_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * What can be known of a ceiling on the GPU clock.
 *
 * Drivers hold a GPU's clock below a ceiling ("locked clocks") and lift that again, but
 * none says whether there is one. What is known is what we set, and what the GPU shows:
 *
 *     before a first ceiling   The driver names a clock setting as what holds the GPU
 *                              back: somebody has set clocks, and they stay. A GPU
 *                              that shows nothing is taken to have no ceiling, and
 *                              none is what it is put back to. A lock that does not
 *                              hold it back at that moment is not seen, and is lost.
 *     under our ceiling        The GPU runs above it, or the driver names a clock setting
 *                              that holds it below: another program has set clocks
 *                              since, and its setting stays. A lower lock that
 *                              does not show so, on an idle GPU say, is not seen, and is
 *                              lifted with ours.
 */

/* Clocks step by some 15 MHz, and a driver may round to either side. */
enum { CEILING_TOLERANCE_MHZ = 30 };

/*
 * Whether the GPU shows nothing that speaks against our ceiling; what cannot be read does not.
 * A clock takes its time to follow: what speaks against it has to do so for half a second,
 * which this waits for in that case only. `out_clock_mhz` is the clock that does, 0 without.
 */
bool ceiling_may_stand(const struct device *device, int64_t ceiling_mhz, int64_t *out_clock_mhz);

/* 0, or FLY_ESTATE where somebody else has set clocks, as far as the GPU shows it. */
int ceiling_check_free(const struct device *device, struct fly_error *out_error);

#endif
