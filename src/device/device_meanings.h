/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_DEVICE_MEANINGS_H
#define FLYBALL_DEVICE_DEVICE_MEANINGS_H

#include "shapes/meaning.h"

/*
 * What the figures of a device mean where they are shown, in the units that people read: one row
 * for each figure. quantity.h has what drivers and recordings give, in mW and uJ.
 */

/* Which device it is. */
#define DEVICE_KIND                                                                                      \
    {                                                                                                    \
        "kind", "kind", MEANING_TEXT, 0, NULL, MEANING_FACT, "What the device is: a GPU, a CPU, memory." \
    }
#define DEVICE_INDEX(title)                                   \
    {                                                         \
        "index", title, MEANING_WHOLE, 0, NULL, MEANING_FACT, \
            "Number of the device among those of its kind."   \
    }
#define DEVICE_NAME                                                                             \
    {                                                                                           \
        "name", "name", MEANING_TEXT, 0, NULL, MEANING_FACT, "Product, as the driver names it." \
    }
#define DEVICE_UUID                                                                                         \
    {                                                                                                       \
        "uuid", "UUID", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the device that no other device has." \
    }
#define DEVICE_PCI                                                                               \
    {                                                                                            \
        "pci", "PCI", MEANING_TEXT, 0, NULL, MEANING_FACT, "Place of the device on the PCI bus." \
    }
#define DEVICE_DRIVER                                                                     \
    {                                                                                     \
        "driver", "driver", MEANING_TEXT, 0, NULL, MEANING_FACT, "Version of its driver." \
    }
#define DEVICE_LABEL                                                                              \
    {                                                                                             \
        "label", "is", MEANING_TEXT, 0, NULL, MEANING_FACT,                                       \
            "What is not a plain sensor: an emulated device, an estimate, a module's power, MIG." \
    }
#define DEVICE_BACKEND                                             \
    {                                                              \
        "backend", "through", MEANING_TEXT, 0, NULL, MEANING_FACT, \
            "Driver interface that it is read through."            \
    }
#define DEVICE_NOTE                                                                                \
    {                                                                                              \
        "note", "note", MEANING_TEXT, 0, NULL, MEANING_FACT, "What is to be known of its figures." \
    }
#define DEVICE_MEMORY                                                                    \
    {                                                                                    \
        "memory_bytes", "memory (B)", MEANING_WHOLE, 0, "B", MEANING_FACT, "Its memory." \
    }

/* What it reports now. */
#define DEVICE_POWER                                                                                \
    {                                                                                               \
        "power_w", "power (W)", MEANING_REAL, 1, "W", MEANING_GAUGE, "Power that the device draws." \
    }
#define DEVICE_ENERGY_COUNTED                                                        \
    {                                                                                \
        "energy_counter", "counter", MEANING_TEXT, 0, NULL, MEANING_FACT,            \
            "Whether it counts its energy itself: 'yes', 'no', or as an 'estimate'." \
    }
#define DEVICE_ENERGY_COUNTER                                                     \
    {                                                                             \
        "energy_counter_j", "counter (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, \
            "Where its energy counter stands; since when, its driver decides."    \
    }
#define DEVICE_TEMPERATURE                                                                             \
    {                                                                                                  \
        "temperature_c", "heat (C)", MEANING_REAL, 0, "C", MEANING_GAUGE, "Temperature of the device." \
    }
#define DEVICE_UTILIZATION                                                     \
    {                                                                          \
        "utilization_percent", "use (%)", MEANING_REAL, 0, "%", MEANING_GAUGE, \
            "Share of the time with work on the device."                       \
    }
#define DEVICE_CLOCK                                                                                      \
    {                                                                                                     \
        "clock_gpu_mhz", "clock (MHz)", MEANING_REAL, 0, "MHz", MEANING_GAUGE, "Clock of its processors." \
    }
#define DEVICE_CLOCK_MAX                                                            \
    {                                                                               \
        "clock_gpu_max_mhz", "highest (MHz)", MEANING_REAL, 0, "MHz", MEANING_FACT, \
            "Highest clock of its processors."                                      \
    }
#define DEVICE_CLOCK_MEMORY                                                                               \
    {                                                                                                     \
        "clock_memory_mhz", "memory (MHz)", MEANING_REAL, 0, "MHz", MEANING_GAUGE, "Clock of its memory." \
    }
#define DEVICE_THROTTLE                                                  \
    {                                                                    \
        "throttle", "throttled by", MEANING_TEXT, 0, NULL, MEANING_FACT, \
            "Why it runs below its highest clock."                       \
    }

/* How it is set. */
#define DEVICE_LIMIT                                                                                     \
    {                                                                                                    \
        "power_limit_w", "limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit that holds now." \
    }
#define DEVICE_LIMIT_ENFORCED                                                          \
    {                                                                                  \
        "power_limit_enforced_w", "enforced (W)", MEANING_REAL, 0, "W", MEANING_GAUGE, \
            "Power limit that the driver enforces, after all limiters."                \
    }
#define DEVICE_LIMIT_MIN                                                     \
    {                                                                        \
        "power_limit_min_w", "from (W)", MEANING_REAL, 0, "W", MEANING_FACT, \
            "Lowest power limit that it takes."                              \
    }
#define DEVICE_LIMIT_MAX                                                   \
    {                                                                      \
        "power_limit_max_w", "to (W)", MEANING_REAL, 0, "W", MEANING_FACT, \
            "Highest power limit that it takes."                           \
    }
#define DEVICE_LIMIT_DEFAULT                                                        \
    {                                                                               \
        "power_limit_default_w", "default (W)", MEANING_REAL, 0, "W", MEANING_FACT, \
            "Power limit by default."                                               \
    }
#define DEVICE_WORKLOADS_SUPPORTED                                                              \
    {                                                                                           \
        "workload_profiles_supported", "profiles offered", MEANING_LIST, 0, NULL, MEANING_FACT, \
            "Workload power profiles that it offers, by name, or by number without one."        \
    }
#define DEVICE_WORKLOADS_REQUESTED                                                                \
    {                                                                                             \
        "workload_profiles_requested", "profiles requested", MEANING_LIST, 0, NULL, MEANING_FACT, \
            "Those that are requested."                                                           \
    }
#define DEVICE_WORKLOADS_ENFORCED                                                               \
    {                                                                                           \
        "workload_profiles_enforced", "profiles enforced", MEANING_LIST, 0, NULL, MEANING_FACT, \
            "Those of them that the driver enforces: without those that conflict with another." \
    }
#define DEVICE_POWER_MODULE                                                                       \
    {                                                                                             \
        "power_module_w", "module (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,                      \
            "Power of the module on which the GPU is, with its CPU; it contains the GPU's power." \
    }
#define DEVICE_ENERGY_MODULE                                                            \
    {                                                                                   \
        "energy_module_j", "module counter (J)", MEANING_REAL, 1, "J", MEANING_COUNTER, \
            "Energy counter of that module; it contains the GPU's energy."              \
    }
#define DEVICE_PERFORMANCE_LEVEL                                           \
    {                                                                      \
        "performance_level", "level", MEANING_TEXT, 0, NULL, MEANING_FACT, \
            "Performance level of an AMD GPU: how it chooses its clocks."  \
    }
#define DEVICE_PERSISTENCE                                                             \
    {                                                                                  \
        "persistence_mode", "persistence", MEANING_REAL, 0, NULL, MEANING_FACT,        \
            "1 if the driver keeps the device ready while no program uses it, else 0." \
    }
#define DEVICE_MIG                                                   \
    {                                                                \
        "mig_mode", "MIG mode", MEANING_REAL, 0, NULL, MEANING_FACT, \
            "1 if it is divided into MIG instances, else 0."         \
    }

#endif
