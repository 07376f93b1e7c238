/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_CROWD_H
#define FLYBALL_DEVICE_AMD_AMDSMI_CROWD_H

#include "device/amd/amdsmi_gpu.h"

/*
 * The GPUs that AMD SMI shows, with who they are, before any of their figures is
 * looked at. Listed as HIP numbers them, so that indices of ROCR_VISIBLE_DEVICES
 * fit, each with the UUID that this variable names or else with one of its own.
 */
enum amdsmi_sharing {
    AMDSMI_ALONE,
    AMDSMI_FIRST_DIE,
    AMDSMI_SECOND_DIE,
    AMDSMI_FIRST_PARTITION,
    AMDSMI_PARTITION,
    AMDSMI_SHARING_COUNT
};

struct amdsmi_candidate {
    struct amdsmi_gpu gpu;
    uint64_t bdf;
    uint64_t order; /* HIP's number, or the node that it is made from; UINT32_MAX: not known */
    struct device_info info;
    struct amdsmi_trial trial;
    enum amdsmi_sharing sharing;
    size_t partner; /* the other die, or the partition that counts; SIZE_MAX */
};

struct amdsmi_crowd {
    struct amdsmi_library *library;
    size_t count;
    struct amdsmi_candidate candidates[DEVICES_MAX];
};

/*
 * Finds them through `crowd->library`; what stands below `root` tells what the
 * library does not. FLY_EPERM, FLY_EREAD, FLY_ELIMIT.
 */
int amdsmi_crowd_find(struct amdsmi_crowd *crowd, const char *root, struct fly_error *out_error);

#endif
