/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_REPAIR_H
#define FLYBALL_KNOB_REPAIR_H

#include "knob/knob.h"
#include "knob/repair_record.h"

/* Puts back, from the journal, what sessions that died left on GPUs. */

/*
 * Puts back what sessions that died left on the GPUs of the list; with `kept` also settings that
 * were meant to outlive their session. Also what this user's daemon left (runtime_directory.h). Returns how
 * many entries there were, of which it describes the first `maximum`, or a negative code: FLY_ESTATE,
 * FLY_EPERM, FLY_EREAD.
 */
int knob_repair(const struct knob_options *options, const struct device_list *list, bool kept,
                struct repair *out_repairs, size_t maximum, struct fly_error *out_error);

/*
 * Does so for one GPU, without kept settings, for a daemon through which users turn: it leaves another user's
 * entry to whoever holds the lock. Returns how many entries it has, at most four, or a
 * negative code.
 */
int knob_repair_device(const struct knob_options *options, const struct device *device,
                       struct repair *out_repairs, size_t maximum, struct fly_error *out_error);

/*
 * Returns whether knob_repair may have something to put back, not counting kept settings. It only
 * looks at one directory, which it does not make.
 */
bool knob_repair_is_due(const struct knob_options *options);

/*
 * Returns whether knob_repair_device may have something to put back: entries that no living session looks
 * after. LATER: somebody holds the GPU's lock, a guard at its work perhaps. It looks at a few names, and asks
 * no driver.
 */
enum repair_due { REPAIR_NOTHING_DUE, REPAIR_DUE_LATER, REPAIR_DUE_NOW };
enum repair_due knob_repair_due_for(const struct knob_options *options, const char *uuid);

/*
 * Puts back what an earlier session left on a GPU whose lock is held, by the ways that the entry
 * names. For root, another user's entry is put back as stranger.h says.
 */
void repair_gpu(const char *directory, const struct knob_options *options, const struct device *device,
                enum journal_kind kind, struct repair *out_repair);

#endif
