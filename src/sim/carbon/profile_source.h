/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_PROFILE_SOURCE_H
#define FLYBALL_SIM_CARBON_PROFILE_SOURCE_H

#include <stddef.h>

#include <flyball/error.h>
#include <flyball/power_profile.h>

/*
 * Reads a power profile for a simulation from one of these:
 *
 *     traces:DIR,gpu,workload,batch   the power trace of a recorded job
 *     FILE.csv    windows under one limit each: window_name (ends in _LIMIT), elapsed_time
 *                 in s, gpuN_energy in J; or limit_w, power_w and step_time_s
 *     FILE.json   what `flyball profile` saved or printed
 *
 * A source with only one measurement of a limit says nothing of its spread.
 */
enum { PROFILE_SOURCE_POINTS_MAX = 64, PROFILE_SOURCE_GPUS_MAX = 16 };

struct profile_source {
    struct fly_power_point points[PROFILE_SOURCE_POINTS_MAX]; /* ascending limits */
    size_t count;
    size_t gpus; /* how many GPUs' powers each figure sums up */
};

/*
 * Reads it. FLY_ENOTFOUND, FLY_EREAD, FLY_EDATA; FLY_EUSAGE for a source in none of the forms
 * above; FLY_ELIMIT for too many limits.
 */
int profile_source_read(const char *source, struct profile_source *out_profile, struct fly_error *out_error);

/* Parses the JSON form from a text; `name` is for errors. */
int profile_source_parse(const char *name, const char *text, size_t length,
                         struct profile_source *out_profile, struct fly_error *out_error);

#endif
