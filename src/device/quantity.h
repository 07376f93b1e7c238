/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_QUANTITY_H
#define FLYBALL_DEVICE_QUANTITY_H

#include <stdint.h>

#include "shapes/meaning.h"

/*
 * What can be read from a device, and what a reading gives.
 *
 * One table names every quantity: readers, recordings, `flyball devices`, `doctor` and `monitor`
 * loop over it instead of naming each.
 *
 *     X(name, key with unit, name for people, unit, course, help)
 */
/* clang-format off */
#define QUANTITY_MAP(X)                                                                                   \
    X(ENERGY, "energy_uj", "energy counter", "uJ", MEANING_COUNTER,                                       \
      "Energy since some moment; the counter may wrap.")                                                  \
    X(POWER_INSTANT, "power_mw", "power, instant", "mW", MEANING_GAUGE,                                   \
      "Power over the sensor's own short window.")                                                        \
    X(POWER_AVERAGE, "power_average_mw", "power, average", "mW", MEANING_GAUGE,                           \
      "Power over about a second.")                                                                       \
    X(POWER_LIMIT, "power_limit_mw", "power limit", "mW", MEANING_GAUGE, "Power limit as it was set.")    \
    X(POWER_LIMIT_ENFORCED, "power_limit_enforced_mw", "power limit enforced", "mW", MEANING_GAUGE,       \
      "Power limit after all limiters.")                                                                  \
    X(POWER_LIMIT_DEFAULT, "power_limit_default_mw", "power limit by default", "mW", MEANING_FACT,        \
      "Power limit by default.")                                                                          \
    X(POWER_LIMIT_MIN, "power_limit_min_mw", "lowest power limit", "mW", MEANING_FACT,                    \
      "Lowest power limit that the device takes.")                                                        \
    X(POWER_LIMIT_MAX, "power_limit_max_mw", "highest power limit", "mW", MEANING_FACT,                   \
      "Highest power limit that the device takes.")                                                       \
    X(CLOCK_GPU, "clock_gpu_mhz", "GPU clock", "MHz", MEANING_GAUGE, "Clock of its processors.")          \
    X(CLOCK_GPU_MAX, "clock_gpu_max_mhz", "highest GPU clock", "MHz", MEANING_FACT,                       \
      "Highest clock of its processors.")                                                                 \
    X(CLOCK_MEMORY, "clock_memory_mhz", "memory clock", "MHz", MEANING_GAUGE, "Clock of its memory.")     \
    X(TEMPERATURE, "temperature_c", "temperature", "C", MEANING_GAUGE, "Temperature of the device.")      \
    X(UTILIZATION, "utilization_percent", "utilisation", "%", MEANING_GAUGE,                              \
      "Share of the time with work on the device.")                                                       \
    X(UTILIZATION_MEMORY, "utilization_memory_percent", "memory utilisation", "%", MEANING_GAUGE,         \
      "Share of the time in which its memory was read or written.")                                       \
    X(THROTTLE, "throttle", "throttle reasons", "bits", MEANING_GAUGE,                                    \
      "Why it runs below its highest clock, a bit for each reason.") /* enum throttle_reason */           \
    X(PERSISTENCE, "persistence_mode", "persistence mode", "0 or 1", MEANING_FACT,                        \
      "Whether the driver keeps the device ready while no program uses it.")                              \
    X(MIG, "mig_mode", "MIG mode", "0 or 1", MEANING_FACT, "Whether it is divided into MIG instances.")        \
    X(POWER_MODULE, "power_module_mw", "module power", "mW", MEANING_GAUGE,                               \
      "Power of the module on which the GPU is, with the CPU and memory there; contains the GPU's.")      \
    X(ENERGY_MODULE, "energy_module_uj", "module energy counter", "uJ", MEANING_COUNTER,                  \
      "Energy of that module since some moment; contains the GPU's.")

/*
 * What can be set, and is no number that can be read. No driver reports between which clocks a GPU is
 * held, so that an unknown ceiling cannot be mistaken for a real one; 0 means none. A floor is set together
 * with the ceiling of its clock (setting.h). Workload power profiles are a set, which
 * device_read_workloads reads; device_read_level reads how an AMD GPU chooses its clocks.
 */
#define SETTING_MAP(X)                                                                                    \
    X(CLOCK_CEILING, "clock_ceiling_mhz", "ceiling on the GPU clock", "MHz", MEANING_GAUGE,               \
      "Highest clock that it may run at.")                                                                \
    X(WORKLOADS, "workload_profiles", "workload power profiles", NULL, MEANING_FACT,                      \
      "Workload power profiles that are requested.")                                                    \
    X(PERFORMANCE_LEVEL, "performance_level", "performance level", NULL, MEANING_FACT,                    \
      "How an AMD GPU chooses its clocks, by the number of device_level_word.")                           \
    X(MEMORY_CLOCK_CEILING, "memory_clock_ceiling_mhz", "ceiling on the memory clock", "MHz", MEANING_GAUGE, \
      "Highest clock that its memory may run at.")                                                        \
    X(CLOCK_FLOOR, "clock_floor_mhz", "floor under the GPU clock", "MHz", MEANING_GAUGE,                  \
      "Lowest clock that it is held to.")                                                                 \
    X(MEMORY_CLOCK_FLOOR, "memory_clock_floor_mhz", "floor under the memory clock", "MHz", MEANING_GAUGE, \
      "Lowest clock that its memory is held to.")
/* clang-format on */

/* Quantities whose readings are numbers come first, QUANTITY_COUNT of them; then the others that can be set.
 */
#define QUANTITY_ENUM(name, key, title, unit, course, help) QUANTITY_##name,
enum quantity {
    QUANTITY_MAP(QUANTITY_ENUM) QUANTITY_COUNT,
    QUANTITY_LAST_READ = QUANTITY_COUNT - 1,
    SETTING_MAP(QUANTITY_ENUM) QUANTITY_NAMED_COUNT
};
#undef QUANTITY_ENUM

/* A set of quantities, one bit each. */
typedef uint32_t quantity_set;
#define QUANTITY_BIT(quantity) ((quantity_set)1 << (quantity))
#define QUANTITY_ALL (QUANTITY_BIT(QUANTITY_COUNT) - 1)
_Static_assert(QUANTITY_NAMED_COUNT < 32, "a set of quantities has 32 bits");

/* Keys are for programs and include the unit, as in recordings: "power_mw". */
extern const struct meaning quantity_facts[QUANTITY_NAMED_COUNT];

/* The quantities that can be read, as one table. */
extern const struct quantities device_quantities;

/* Returns the quantity of that key, or -1; only of those that can be read. */
int quantity_find(const char *key);
/* Does the same, including the others that can be set. */
int quantity_find_named(const char *key);

/* Why a GPU runs below its highest clock; the bits are those of NVML, to which other back ends translate. */
enum throttle_reason {
    THROTTLE_IDLE = 0x1,
    THROTTLE_APPLICATION_CLOCKS = 0x2,
    THROTTLE_POWER_CAP = 0x4, /* the power limit binds */
    THROTTLE_HARDWARE = 0x8,
    THROTTLE_SYNC_BOOST = 0x10,
    THROTTLE_HEAT_SOFTWARE = 0x20,
    THROTTLE_HEAT_HARDWARE = 0x40,
    THROTTLE_POWER_BRAKE = 0x80, /* from outside the board */
    THROTTLE_DISPLAY = 0x100,
};

/*
 * The state of a reading. A value is valid only with READING_OK; every other state says why there
 * is no value, and so does a zeroed reading.
 *
 *     X(state, word for programs, clause for people)
 */
#define READING_MAP(X)                                                      \
    X(NOT_READ, "not_read", "it was not read")                              \
    X(OK, "ok", "it was read")                                              \
    X(UNSUPPORTED, "unsupported", "the device does not offer it")           \
    X(MISSING, "missing_function", "the driver library lacks the function") \
    X(DENIED, "no_permission", "permission is missing")                     \
    X(LOST, "device_lost", "the device is gone")                            \
    X(ENDED, "recording_ended", "the recording has ended")                  \
    X(FAILED, "failed", "the driver reported an error")                     \
    X(IMPOSSIBLE, "impossible_value", "the driver gave a value that no device has")

#define READING_ENUM(name, word, clause) READING_##name,
enum reading_state { READING_MAP(READING_ENUM) READING_STATE_COUNT };
#undef READING_ENUM

/* Return "no_permission", and "permission is missing". Static storage. */
const char *reading_state_word(enum reading_state state);
const char *reading_state_clause(enum reading_state state);

/* Returns the state of that word, or -1. */
int reading_state_find(const char *word);

struct reading {
    int64_t value; /* in the quantity's unit; valid only with READING_OK */
    enum reading_state state;
    int code; /* of the driver, errno for files; 0 if there is none */
};

/* Sets each wanted reading to that state, without a value. */
void readings_fail(struct reading *values, quantity_set wanted, enum reading_state state, int code);

#endif
