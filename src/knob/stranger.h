/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_STRANGER_H
#define FLYBALL_KNOB_STRANGER_H

#include <sys/types.h>

#include <flyball/error.h>

#include "knob/knob.h"
#include "knob/repair_record.h"

/*
 * What root makes of other users' locks and entries, in a directory that all of them write to.
 *
 * An entry is put back on behalf of its user (behalf.h): only where a knob still stands where the
 * entry says it was put, and never to a number of the entry's. A limit goes to the driver's default,
 * or to what root has set to stay, and the clock is freed. Where the user may not turn the
 * knob, he did not turn it either: the entry is moved aside.
 *
 * A lock is respected where a session stands behind it: an entry of the same user's, by a process
 * of his that lives, and who may turn the GPU's knobs. Otherwise root takes it.
 */

/* As gpu_lock_take; for others than root the same. */
int stranger_lock_take(const char *directory, const struct knob_options *options, const struct device *device,
                       int *out_lock, struct fly_error *out_error);

/* Whether root is asked, and the entry is another user's. */
bool stranger_made(const char *directory, enum journal_kind kind, const char *uuid);

/* Puts such an entry back, under the lock of its GPU. */
void stranger_repair(const char *directory, const struct knob_options *options, const struct device *device,
                     enum journal_kind kind, struct repair *out_repair);

#endif
