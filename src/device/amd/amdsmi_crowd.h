/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_CROWD_H
#define FLYBALL_DEVICE_AMD_AMDSMI_CROWD_H

#include "device/amd/amdsmi_gpu.h"

/*
 * The GPUs that AMD SMI shows and their identities, before any of their figures is read. They are
 * listed as HIP numbers them, so that indices of ROCR_VISIBLE_DEVICES are valid, each with the
 * UUID that this variable uses or else with one made here.
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
    uint64_t kfd;   /* the kernel's number of the GPU; 0: unknown */
    uint64_t order; /* HIP's number, or the node from which it is made; UINT32_MAX: unknown */
    struct device_info info;
    struct amdsmi_trial trial;
    enum amdsmi_sharing sharing;
    size_t partner; /* index of the other die, or of the partition that counts; SIZE_MAX: none */
};

struct amdsmi_crowd {
    struct amdsmi_library *library;
    size_t count;
    struct amdsmi_candidate candidates[DEVICES_MAX];
};

/*
 * Finds the GPUs through `crowd->library`, and through files below `root` for what the library
 * does not tell. FLY_EPERM, FLY_EREAD, FLY_ELIMIT.
 */
int amdsmi_crowd_find(struct amdsmi_crowd *crowd, const char *root, struct fly_error *out_error);

#endif
