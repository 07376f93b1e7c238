/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_SENSOR_FACTS_H
#define FLYBALL_DEVICE_NVIDIA_SENSOR_FACTS_H

#include <stdbool.h>

#include "device/device.h"

/*
 * What is known of the sensors on NVIDIA's boards, by chip.
 *
 * No function of the driver tells how often a figure changes and how much of the
 * time it has seen; measurements from outside do. The source stands with each
 * row, and where nobody has measured, it says "assumed".
 */

/* Enough to tell the generation of a GPU. Zeros and an empty name: not known. */
struct gpu_chip {
    unsigned architecture; /* enum nvml_architecture, NVML_ARCHITECTURE_UNKNOWN */
    int capability_major, capability_minor;
    const char *name; /* "NVIDIA A100-SXM4-80GB" */
};

/* What nvmlDeviceGetPowerUsage returns. */
enum power_usage_kind {
    POWER_USAGE_ANY,
    POWER_USAGE_INSTANT, /* up to Turing, and on the GA100 of A100 and A30 */
    POWER_USAGE_AVERAGE, /* over one second: the other Amperes and all that came later */
};
enum power_usage_kind gpu_power_usage(const struct gpu_chip *chip);

/*
 * The facts of the counter and the power reading. `has_instant` says whether the
 * instant reading is to be had; the facts are those of the one-second average
 * otherwise. Never fails: an unheard-of chip is taken for one of the newest.
 */
struct sensor_facts gpu_sensor_facts(const struct gpu_chip *chip, bool has_instant);

#endif
