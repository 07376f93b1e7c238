/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_VERDICT_H
#define FLYBALL_METER_VERDICT_H

#include "meter/account.h"

/*
 * States the result for one device in one window, from everything known of it: the source, the
 * energy, how certain it is, and in the note what speaks against it. Pure.
 */
void verdict_give(const struct device_info *info, const struct account_window *window,
                  struct fly_device_energy *out_energy);

/* States that nothing is known of a device. */
void verdict_unknown(struct fly_device_energy *out_energy, const char *note);

#endif
