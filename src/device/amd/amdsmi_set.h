/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_SET_H
#define FLYBALL_DEVICE_AMD_AMDSMI_SET_H

#include <stddef.h>
#include <stdint.h>

#include "device/amd/amdsmi_gpu.h"

/*
 * Sets limits and clocks through AMD SMI. Statuses are the library's; one that the library does
 * not offer is AMDSMI_FAIL_LOAD_SYMBOL. The caller must not hold the lock. Thread-safe, allocates
 * nothing.
 */

/* Takes the lowest and the highest clock of the GPU while nothing holds it. */
void amdsmi_take_clocks(struct amdsmi_gpu *gpu);

/*
 * Gives clocks to which the GPU can be held, in MHz, highest first: from the highest down in steps
 * of 25 MHz, and the lowest. The driver takes any clock between. At most `maximum`;
 * AMDSMI_NOT_SUPPORTED if the range is not known.
 */
amdsmi_status amdsmi_clocks_read(const struct amdsmi_gpu *gpu, int64_t *clocks_mhz, size_t maximum,
                                 size_t *out_count);

/* Reads how the GPU chooses its clocks, enum device_level; untouched unless READING_OK. */
enum reading_state amdsmi_level_read(const struct amdsmi_gpu *gpu, int64_t *out_level);

/*
 * Sets a quantity, whose value was checked already. A ceiling on the clock is the library's highest
 * clock; a ceiling of 0 gives the choice of clocks back to the driver, since the library has no
 * other way to lift one.
 */
amdsmi_status amdsmi_set_value(const struct amdsmi_gpu *gpu, enum quantity quantity, int64_t value);

/* Writes why the driver refused, and what to do; returns the error's code. */
int amdsmi_set_error(const struct device_info *info, enum quantity quantity, int64_t value,
                     amdsmi_status status, struct fly_error *out_error);

#endif
