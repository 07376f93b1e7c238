/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_REPAIR_H
#define FLYBALL_KNOB_REPAIR_H

#include "knob/knob.h"
#include "knob/repair_record.h"

/* What sessions that have died left on GPUs, put back from the journal. */

/*
 * Puts back what sessions that have died left on the GPUs of the list; with `kept` also
 * what was set to outlive its session. Returns how many entries there were, of which
 * the first `maximum` are described, or a negative code: FLY_ESTATE, FLY_EPERM, FLY_EREAD.
 */
int knob_repair(const struct knob_options *options, const struct device_list *list, bool kept,
                struct repair *out_repairs, size_t maximum, struct fly_error *out_error);

/*
 * Whether there may be something for knob_repair to put back, other than what is kept. A look at
 * one directory, which is not made.
 */
bool knob_repair_is_due(const struct knob_options *options);

/* Puts back what an earlier session left on a GPU whose lock is held; its ways are those of the entry.
 * Another user's entry is put back for root as stranger.h says. */
void repair_gpu(const char *directory, const struct knob_options *options, const struct device *device,
                enum journal_kind kind, struct repair *out_repair);

#endif
