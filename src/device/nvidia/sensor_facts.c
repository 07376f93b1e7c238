/* SPDX-License-Identifier: Apache-2.0 */
/* One row for each generation of chips; the first that matches counts. */
#include "device/nvidia/sensor_facts.h"

#include <string.h>

#include "device/nvidia/nvml_abi.h"

/*
 * Yang, Adamek and Armour measured boards of twelve generations with an external power meter
 * ("Part-time Power Measurements: nvidia-smi's Lack of Attention", arXiv:2312.02741; SC24):
 * readings change every 20 ms on a V100 and every 100 ms on an A100 and an H100, and cover about
 * 10 ms and 25 ms of that. They attribute the remaining error to the shunts' tolerance: about 5 %
 * of the reading, a constant that differs from board to board. They report only in passing how
 * often the energy counter changes: about as often as the power reading.
 */
#define MEASURED "Yang, Adamek, Armour 2023, arXiv:2312.02741; counter's period assumed"
#define ASSUMED_AS(chip) "assumed, as for " chip " in arXiv:2312.02741"

struct facts_row {
    unsigned architecture;
    bool ga100_only; /* among Ampere chips, only GA100 */
    struct sensor_facts facts;
};

static const struct facts_row rows[] = {
    {NVML_VOLTA, false, {0.020, 0.020, 0.010, true, 0.05, MEASURED}},
    {NVML_TURING, false, {0.100, 0.100, 0.100, true, 0.05, "assumed"}},
    {NVML_AMPERE, true, {0.100, 0.100, 0.025, true, 0.05, MEASURED}},
    {NVML_AMPERE, false, {0.100, 0.100, 0.100, true, 0.05, "assumed"}},
    {NVML_ADA, false, {0.100, 0.100, 0.100, true, 0.05, "assumed"}},
    {NVML_HOPPER, false, {0.100, 0.100, 0.025, true, 0.05, MEASURED}},
    {NVML_PASCAL, false, {0.0, 0.020, 0.010, false, 0.05, ASSUMED_AS("Volta")}},
    {NVML_MAXWELL, false, {0.0, 0.100, 0.100, false, 0.05, "assumed"}},
    {NVML_KEPLER, false, {0.0, 0.020, 0.020, false, 0.05, "assumed"}},
};

/* For chips newer than the table, or unknown: as the last measured generation. */
static const struct sensor_facts newest = {0.100, 0.100, 0.025, true, 0.05, ASSUMED_AS("Hopper")};

static bool is_known(unsigned architecture)
{
    return architecture != 0 && architecture != NVML_ARCHITECTURE_UNKNOWN;
}

/* GA100, the one Ampere of data centres, has the sensors of its predecessors. */
static bool is_ga100(const struct gpu_chip *chip)
{
    static const char *const names[] = {"A100", "A800", "A30"};

    if (chip->capability_major != 0)
        return chip->capability_major == 8 && chip->capability_minor == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *found = strstr(chip->name, names[i]);

        if (found != NULL && strspn(found + strlen(names[i]), "0123456789") == 0)
            return true;
    }
    return false;
}

/* Drivers that do not report the architecture are older than the first chip that averages. */
enum power_usage_kind gpu_power_usage(const struct gpu_chip *chip)
{
    if (!is_known(chip->architecture) || chip->architecture < NVML_AMPERE)
        return POWER_USAGE_INSTANT;
    return chip->architecture == NVML_AMPERE && is_ga100(chip) ? POWER_USAGE_INSTANT : POWER_USAGE_AVERAGE;
}

static struct sensor_facts instant_facts(const struct gpu_chip *chip)
{
    for (size_t i = 0; is_known(chip->architecture) && i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].architecture == chip->architecture && (!rows[i].ga100_only || is_ga100(chip)))
            return rows[i].facts;
    }
    return newest;
}

struct sensor_facts gpu_sensor_facts(const struct gpu_chip *chip, bool has_instant)
{
    struct sensor_facts facts = instant_facts(chip);

    if (!has_instant) {
        facts.power_period_s = 0.100;
        facts.power_window_s = 1.0;
    }
    return facts;
}
