/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_FAULT_H
#define FLYBALL_EMULATOR_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * The fault script: what goes wrong, one fault per line.
 *
 *     # comment
 *     count machine                # calls are counted over all processes; otherwise in each by itself
 *     gpu 0 call nvmlDeviceGetPowerUsage nth 3 return 15
 *     call nvmlInit_v2 return DRIVER_NOT_LOADED
 *     gpu 1 call nvmlDeviceGetTotalEnergyConsumption from 5 slow 200ms
 *     gpu 2 at 3s lost
 *     missing nvmlDeviceGetTotalEnergyConsumption
 *
 * A line is [gpu N] [call FUNCTION] [nth N | from N | every N | at TIME] ACTION. Without `gpu` it applies to
 * all GPUs, without `call` to all functions, without a number to every call. Numbers count the calls that gpu
 * and call select. With `at` the fault depends on time, counted from the emulator's start, and not on calls.
 *
 *     return CODE       the call fails with that code: a number, or a name as GPU_IS_LOST
 *     slow TIME         the call takes that much longer: 200ms, 1.5s, 50us
 *     reset-counter     the energy counter starts again at 0
 *     lost              the GPU falls off the bus: every later call for it says so, in every process
 *     back              a lost GPU is there again, as after a reload of its driver: nothing stands that was
 * set range LOW HIGH    no limit below LOW or above HIGH watts is taken from now on; the one in force stays
 *     step WATTS        limits are rounded down to multiples of that from now on
 *     hot               heat holds the clock down from now on
 *     no-permission     return NO_PERMISSION
 *     missing           return FUNCTION_NOT_FOUND; also `missing FUNCTION`
 */
enum { FAULTS_MAX = 64, FAULT_FUNCTION_MAX = 64, FAULT_TEXT_MAX = 1 << 16 };

enum fault_when { FAULT_ALWAYS, FAULT_NTH, FAULT_FROM, FAULT_EVERY, FAULT_AT };
enum fault_action {
    FAULT_RETURN,
    FAULT_SLOW,
    FAULT_RESET_COUNTER,
    FAULT_LOST,
    FAULT_HOT,
    FAULT_BACK,
    FAULT_RANGE,
    FAULT_STEP
};

struct fault {
    int gpu;                           /* -1: any, and calls without a GPU */
    char function[FAULT_FUNCTION_MAX]; /* "": any */
    enum fault_when when;
    uint64_t number; /* of nth, from, every: 1 or more */
    double at_s;
    enum fault_action action;
    int code;          /* of FAULT_RETURN */
    double slow_s;     /* of FAULT_SLOW */
    unsigned watts[2]; /* of FAULT_RANGE: lowest and highest; of FAULT_STEP: the step */
};

struct fault_list {
    bool per_machine; /* calls are counted over all processes */
    size_t count;
    struct fault faults[FAULTS_MAX];
};

/*
 * Reads a script; messages begin with `name`, then the line's number. Returns FLY_EDATA with file, line, the
 * word and what was expected; FLY_ELIMIT beyond FAULTS_MAX. `out_list` is untouched on failure.
 */
int faults_parse(const char *text, const char *name, struct fault_list *out_list,
                 struct fly_error *out_error);

/*
 * Reads a script from a file; also returns FLY_ENOTFOUND, FLY_EREAD, and FLY_ELIMIT for a file that is too
 * long.
 */
int faults_read(const char *path, struct fault_list *out_list, struct fly_error *out_error);

/* Whether the fault applies to such a call; `gpu` is -1 for calls without one. */
bool fault_selects(const struct fault *fault, const char *function, int gpu);

/* Whether it occurs: at the `met`-th selected call, `age_s` after the start. */
bool fault_strikes(const struct fault *fault, uint64_t met, double age_s);

#endif
