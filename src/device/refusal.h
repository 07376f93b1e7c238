/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_REFUSAL_H
#define FLYBALL_DEVICE_REFUSAL_H

#include "device/device.h"

/* A driver that did not set what it was asked to, in its own words. All texts are borrowed. */
struct device_refusal {
    enum reading_state state; /* what the driver's code means for the quantity */
    const char *attempt;      /* "setting the power limit to 250 W" */
    const char *interface;    /* "NVML" */
    const char *meaning;      /* of the code, as the interface's manual has it */
    long long code;
    const char *privileged; /* a command that root may run instead; NULL: none */
    const char *look;       /* a command that says more */
};

/*
 * Writes what failed on that GPU, why, and what to do. Returns FLY_EPERM, FLY_EUNSUPPORTED or FLY_EREAD.
 * Thread-safe.
 */
int device_refused(const struct device_info *info, const struct device_refusal *refusal,
                   struct fly_error *out_error);

#endif
