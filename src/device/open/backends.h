/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_OPEN_BACKENDS_H
#define FLYBALL_DEVICE_OPEN_BACKENDS_H

#include "device/backend.h"

/*
 * All back ends, ended by NULL, in the order in which they are opened. A recording
 * (device_backend_replay) replaces them all and is not among them.
 */
extern const struct device_backend *const device_backends[];

/*
 * Opens every back end or, if the options name one, a recording instead. Returns 0 also if
 * nothing is found: `reports` says why. FLY_ELIMIT beyond DEVICES_MAX devices; a recording that
 * cannot be replayed is an error. Close `out_list` only after success.
 */
int device_list_open(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error);

#endif
