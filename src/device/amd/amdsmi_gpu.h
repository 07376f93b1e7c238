/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_GPU_H
#define FLYBALL_DEVICE_AMD_AMDSMI_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "device/amd/amdsmi_library.h"
#include "device/device.h"

/*
 * One GPU behind AMD SMI, and what was found out about its figures when it was
 * opened.
 *
 * The energy counter is checked there against the power reading, since on some
 * GPUs it is absent, stands still or counts in other units; one that disagrees is
 * not offered, and the meter integrates the power instead.
 *
 * Cards with two dies (MI250, MI250X) show as two GPUs, and the driver reports
 * power, energy and limits of the whole card with the first die, and zeros with
 * the second. So the second offers none of them and says with which GPU its
 * energy is counted; the first says that it counts both. Partitions of one GPU
 * (MI300 in its modes DPX to CPX) each report the power of the whole, so the first
 * of them counts and the others say so.
 */
struct amdsmi_gpu {
    struct amdsmi_library *library; /* one use of it */
    amdsmi_processor handle;
    bool elsewhere;   /* what it draws is counted with another GPU */
    bool counter_off; /* its energy counter cannot be relied on */
};

/* What was seen of a GPU's counter and power over a short while. */
struct amdsmi_trial {
    double time_s;
    struct reading energy_before, energy_after; /* uJ */
    struct reading power_before, power_after;   /* mW */
};

enum amdsmi_verdict {
    AMDSMI_COUNTER_GOOD,      /* it rose as the power says, within a factor of four */
    AMDSMI_COUNTER_ABSENT,    /* there is none */
    AMDSMI_COUNTER_WRONG,     /* it fell, stood still or rose by something else */
    AMDSMI_COUNTER_UNCHECKED, /* there is no power to compare with */
    AMDSMI_VERDICT_COUNT
};

/* Four is wide, since the two readings of power need not be those in between; wrong units are off by more. */
enum amdsmi_verdict amdsmi_judge(const struct amdsmi_trial *trial);

/* Whether a GPU of that name is one of two dies of a card, whose second one reports zeros. */
bool amdsmi_two_dies(const char *name);

/* Whether it is the second: its power reads as zero or not at all, and nothing is counted. */
bool amdsmi_is_second_die(const char *name, const struct amdsmi_trial *trial);

#endif
