/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_STRANGER_H
#define FLYBALL_KNOB_STRANGER_H

#include <sys/types.h>

#include <flyball/error.h>

#include "knob/knob.h"
#include "knob/repair_record.h"

/*
 * How root treats other users' locks and entries, in a directory to which all users can write.
 *
 * An entry is put back on behalf of its user (behalf.h): only if a knob is still where the entry
 * says it was put, and never to a number from the entry. A limit goes to the driver's default, or
 * to what root has set to stay, workload profiles to none or to that, and the clock is freed. If the
 * user may not turn the knob, he did not turn it either: the entry is moved aside.
 *
 * Root respects a lock if a session stands behind it: an entry of the same user, made by a
 * process of his that is alive, and a user who may turn the GPU's knobs. Otherwise root takes the
 * lock.
 */

/* Takes the lock like gpu_lock_take; for users other than root there is no difference. */
int stranger_lock_take(const char *directory, const struct knob_options *options, const struct device *device,
                       int *out_lock, struct fly_error *out_error);

/* Returns whether this process is root and the entry is another user's. */
bool stranger_made(const char *directory, enum journal_kind kind, const char *uuid);

/* Puts such an entry back, under the lock of its GPU. */
void stranger_repair(const char *directory, const struct knob_options *options, const struct device *device,
                     enum journal_kind kind, struct repair *out_repair);

#endif
