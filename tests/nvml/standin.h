/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_NVML_STANDIN_H
#define FLYBALL_TESTS_NVML_STANDIN_H

#include "device/nvidia/nvml_library.h"

/*
 * A driver library whose every answer a test decides. The test opens the same
 * file and finds this struct in it under the name `standin`; the library answers
 * from it and counts its calls there.
 *
 * Built twice: `nvml_new` has the functions of today, `nvml_old` only those that
 * drivers had before any of their names ended in a number.
 */

/* A code and a count of calls for every slot that the back end knows. */
#define STANDIN_SLOT(slot, ...) STANDIN_##slot,
enum standin_slot { NVML_CALLS(STANDIN_SLOT) STANDIN_SLOTS };
#undef STANDIN_SLOT

enum { STANDIN_GPUS = 4, STANDIN_FIELDS = 256, STANDIN_PROCESSES = 300, STANDIN_PARTS = 20 };

/* A list of processes: `count` of them with pids from `first_pid` on, in an instance. */
struct standin_list {
    unsigned count, first_pid, instance;
};

/* A compute instance of a GPU that MIG has divided. */
struct standin_part {
    int code; /* what asking for its handle returns */
    unsigned instance, slices, multiprocessors, memory_mib;
};

struct standin {
    int codes[STANDIN_SLOTS]; /* what a function returns; 0: it answers */
    _Atomic unsigned calls[STANDIN_SLOTS];
    unsigned gpus;
    int handle_codes[STANDIN_GPUS];
    int field_codes[4][STANDIN_FIELDS]; /* by scope */
    bool empty_scopes[4];               /* success, and a value of 0 */
    unsigned field_type;                /* of their values, enum nvml_value_type */
    unsigned architecture;
    int capability_major, capability_minor;
    unsigned mig;
    unsigned processes;
    unsigned arriving; /* so many more at each call */
    struct standin_list graphics, mps;
    unsigned sample_count;
    struct nvml_process_utilization samples[STANDIN_PROCESSES];
    unsigned part_count;
    struct standin_part parts[STANDIN_PARTS];
    const char *driver, *name;
};

/* What it answers, where a test does not say otherwise. */
enum {
    STANDIN_ENERGY_MJ = 123456,
    STANDIN_MODULE_ENERGY_MJ = 223456,
    STANDIN_POWER_MW = 98765,
    STANDIN_INSTANT_MW = 99001,
    STANDIN_AVERAGE_MW = 99002,
    STANDIN_MODULE_MW = 199003,
    STANDIN_LIMIT_MW = 250000,
    STANDIN_DEFAULT_MW = 300000,
    STANDIN_ENFORCED_MW = 240000,
    STANDIN_LOWEST_MW = 100000,
    STANDIN_HIGHEST_MW = 350000,
    STANDIN_CLOCK_MHZ = 1410,
    STANDIN_CLOCK_MAX_MHZ = 1980,
    STANDIN_MEMORY_MHZ = 1593,
    STANDIN_TEMPERATURE_C = 41,
    STANDIN_BUSY_PERCENT = 87,
    STANDIN_MEMORY_PERCENT = 31,
    STANDIN_MEMORY_GIB = 80,
    STANDIN_REASONS = 0x24,
};

#endif
