/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_SENSOR_FACTS_H
#define FLYBALL_DEVICE_NVIDIA_SENSOR_FACTS_H

#include <stdbool.h>

#include "device/device.h"

/*
 * Known facts about the sensors on NVIDIA's boards, by chip.
 *
 * No function of the driver tells how often a figure changes and how much of the time it covers;
 * only external measurements do. Each row names its source, "assumed" if nobody has measured.
 */

/* Enough to tell the generation of a GPU. Zeros and an empty name: unknown. */
struct gpu_chip {
    unsigned architecture; /* enum nvml_architecture, NVML_ARCHITECTURE_UNKNOWN */
    int capability_major, capability_minor;
    const char *name; /* "NVIDIA A100-SXM4-80GB" */
};

/* What nvmlDeviceGetPowerUsage returns. */
enum power_usage_kind {
    POWER_USAGE_ANY,
    POWER_USAGE_INSTANT, /* up to Turing, and on the GA100 of A100 and A30 */
    POWER_USAGE_AVERAGE, /* over one second: the other Amperes and all later chips */
};
enum power_usage_kind gpu_power_usage(const struct gpu_chip *chip);

/*
 * Returns the facts of the counter and the power reading. `has_instant` says whether the instant
 * reading is available; otherwise the facts are those of the one-second average. Never fails: an
 * unknown chip is treated as one of the newest.
 */
struct sensor_facts gpu_sensor_facts(const struct gpu_chip *chip, bool has_instant);

#endif
