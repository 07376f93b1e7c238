/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_OPERATION_H
#define FLYBALL_KNOB_WAY_OPERATION_H

#include <stdint.h>

#include "device/setting.h"

/*
 * What a site's commands and the public daemon can do to a GPU, by the names that both use for
 * it: tables of the file of commands, and ends of the daemon's addresses.
 *
 *     X(name, parameters)
 */
#define OPERATION_MAP(X)                                                  \
    X(SET_PERSISTENCE_MODE, "set_persistence_mode", PARAMETER_ENABLED)    \
    X(SET_POWER_LIMIT, "set_power_limit", PARAMETER_LIMIT)                \
    X(SET_GPU_LOCKED_CLOCKS, "set_gpu_locked_clocks", PARAMETER_CLOCKS)   \
    X(RESET_GPU_LOCKED_CLOCKS, "reset_gpu_locked_clocks", PARAMETER_NONE) \
    X(SET_MEM_LOCKED_CLOCKS, "set_mem_locked_clocks", PARAMETER_CLOCKS)   \
    X(RESET_MEM_LOCKED_CLOCKS, "reset_mem_locked_clocks", PARAMETER_NONE) \
    X(RESET_LOCKED_CLOCKS, "reset_locked_clocks", PARAMETER_NONE)

/* Parameters besides the GPU. */
enum parameter { PARAMETER_NONE, PARAMETER_ENABLED, PARAMETER_LIMIT, PARAMETER_CLOCKS };

#define OPERATION_ENUM(name, text, parameters) OPERATION_##name,
enum operation { OPERATION_MAP(OPERATION_ENUM) OPERATION_COUNT };
#undef OPERATION_ENUM

struct operation_facts {
    const char *name; /* "set_power_limit" */
    enum parameter parameter;
};
extern const struct operation_facts operation_facts[OPERATION_COUNT];

/* An operation with its values; those that it does not use are 0. */
struct operation_call {
    enum operation operation;
    const struct device_info *gpu; /* borrowed */
    int64_t enabled;               /* 0 or 1 */
    int64_t limit_mw;
    int64_t min_clock_mhz, max_clock_mhz;
};

/*
 * Gives the operation that brings a knob to that value; FLY_EUNSUPPORTED for knobs that only a
 * driver turns.
 */
int operation_for(const struct device *device, enum quantity quantity, const struct setting *value,
                  struct operation_call *out_call, struct fly_error *out_error);

/* Returns the operation of that name, or -1. */
int operation_find(const char *name);

#endif
