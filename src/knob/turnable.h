/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_TURNABLE_H
#define FLYBALL_KNOB_TURNABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * Decides whether other users' work allows a GPU's knobs to be turned. If it cannot be found out
 * who uses a GPU, nobody may turn it.
 */
struct turnable_options {
    const char *readonly_path;      /* the operator's lock: while this file exists nobody turns anything */
    const char *proc_root;          /* "/proc" */
    const char *mps_pipe_directory; /* the directory through which MPS is reached; counts if it is root's or
                                       this user's, as all that only has the name of MPS */
    const pid_t *allowed;           /* these and their descendants may compute there, */
    size_t allowed_count;           /* besides this process, its descendants and its ancestors */
    bool overrules;                 /* others' work keeps nobody from turning: for an operator */
    bool begins; /* this program's work on the GPU has not begun: who uses it is somebody else (unseen.h) */
    bool contained; /* who cannot be seen is trusted not to be there: the operator says so */
};

/*
 * Returns 0, or FLY_ESTATE (a process of somebody else, MIG, MPS, somebody who cannot be seen), FLY_EPERM
 * (the operator's lock), FLY_EUNSUPPORTED (the GPU offers no limit to set), FLY_EREAD (it is unknown who uses
 * the GPU); the text says which and what to do. Thread-safe.
 */
int turnable_check(const struct turnable_options *options, const struct device *device,
                   struct fly_error *out_error);

#endif
