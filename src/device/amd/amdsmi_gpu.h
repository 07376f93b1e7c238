/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_GPU_H
#define FLYBALL_DEVICE_AMD_AMDSMI_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "device/amd/amdsmi_library.h"
#include "device/device.h"
#include "device/sysfs.h"

/*
 * One GPU behind AMD SMI, and what was found out about its figures when it was opened.
 *
 * Opening checks the energy counter against the power reading, since on some GPUs the counter is
 * absent, stands still or counts in other units. A counter that disagrees is not offered, and the
 * meter integrates the power instead.
 *
 * Cards with two dies (MI250, MI250X) show as two GPUs, and the driver reports power, energy and
 * limits of the whole card with the first die, and zeros with the second. So the second offers
 * none of them and names the GPU that counts its energy; the first says that it counts both.
 * Partitions of one GPU (MI300 in its modes DPX to CPX) each report the power of the whole, so
 * the first of them counts and the others say so. The limit of the one that counts holds for all of
 * them.
 */
enum { AMDSMI_SHARERS_MAX = 16 };

struct amdsmi_gpu {
    struct amdsmi_library *library; /* one use of it */
    amdsmi_processor handle;
    bool elsewhere;                    /* its energy is counted with another GPU */
    bool counter_off;                  /* its energy counter is not reliable */
    int64_t lowest_mhz, highest_mhz;   /* its clocks; a highest of 0: unknown */
    uint64_t kfds[AMDSMI_SHARERS_MAX]; /* the kernel's numbers of the GPUs for which its limit holds */
    size_t kfd_count;                  /* 0: they are not all known */
    char root[SYSFS_PATH_MAX];         /* what precedes "/sys" */
};

/* What was observed of a GPU's counter and power over a short time. */
struct amdsmi_trial {
    double time_s;
    struct reading energy_before, energy_after; /* uJ */
    struct reading power_before, power_after;   /* mW */
};

enum amdsmi_verdict {
    AMDSMI_COUNTER_GOOD,      /* it rose as the power predicts, within a factor of four */
    AMDSMI_COUNTER_ABSENT,    /* there is none */
    AMDSMI_COUNTER_WRONG,     /* it fell, stood still or rose by too much or too little */
    AMDSMI_COUNTER_UNCHECKED, /* there is no power reading to compare with */
    AMDSMI_VERDICT_COUNT
};

/*
 * Judges the counter. The factor of four is wide, because the power between the two readings may
 * have differed; wrong units are off by more.
 */
enum amdsmi_verdict amdsmi_judge(const struct amdsmi_trial *trial);

/* Returns whether a GPU of that name is one of the two dies of a card whose second die reports zeros. */
bool amdsmi_two_dies(const char *name);

/* Returns whether it is the second die: its power reads as zero or not at all, and nothing is counted. */
bool amdsmi_is_second_die(const char *name, const struct amdsmi_trial *trial);

#endif
