/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_OPEN_BACKENDS_H
#define FLYBALL_DEVICE_OPEN_BACKENDS_H

#include "device/backend.h"

/*
 * All back ends, ended by NULL, in the order in which they are opened. A recording
 * (device_backend_replay) takes the place of them all, and is none of them.
 */
extern const struct device_backend *const device_backends[];

/*
 * Opens every back end, or the recording of the options in their place. Returns 0 also
 * when nothing is found: `reports` says why. FLY_ELIMIT beyond DEVICES_MAX devices; a
 * recording that cannot be replayed is an error. `out_list` needs closing only after
 * success.
 */
int device_list_open(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error);

#endif
