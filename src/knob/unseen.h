/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_UNSEEN_H
#define FLYBALL_KNOB_UNSEEN_H

#include "knob/turnable.h"

/*
 * Looks for users of a GPU that cannot be seen. In a container the driver lists only the processes of the
 * container, so an empty list says nothing of others. What is left as evidence is what they do to the GPU:
 *
 * - memory in use that is of no listed process, beyond what a driver keeps for itself;
 * - work on the GPU while no process is listed. Of emulated GPUs this does not count: a script may load them.
 *
 * Both must last for a second. This is to be asked before this program's own work begins, since a driver may
 * not list that either. A user who comes later, or who holds no memory and rests at that moment, is not
 * found.
 *
 * Returns 0 outside of a container, where the list is whole, or where nothing speaks for others; FLY_ESTATE
 * if something does; FLY_EREAD if neither memory nor work can be read. May take a second. Thread-safe.
 */
int unseen_check(const struct turnable_options *options, const struct device *device,
                 struct fly_error *out_error);

#endif
