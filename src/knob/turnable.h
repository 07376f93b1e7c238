/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_TURNABLE_H
#define FLYBALL_KNOB_TURNABLE_H

#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * Whether a GPU's knobs may be turned, as far as others are concerned. Where it cannot
 * be found out who uses a GPU, nobody turns it.
 */
struct turnable_options {
    const char *readonly_path;      /* the operator's lock: nobody turns anything while it is there */
    const char *proc_root;          /* "/proc" */
    const char *mps_pipe_directory; /* where MPS is reached */
    const pid_t *allowed;           /* these and their descendants may compute there, */
    size_t allowed_count;           /* beside this process, its descendants and its ancestors */
};

/*
 * 0, or FLY_ESTATE (a process of somebody else, MIG, MPS), FLY_EPERM (the operator's
 * lock), FLY_EUNSUPPORTED (it offers no limit to set), FLY_EREAD (it is not known who uses
 * it); the text says which and what to do. Thread-safe.
 */
int turnable_check(const struct turnable_options *options, const struct device *device,
                   struct fly_error *out_error);

#endif
