/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_H
#define FLYBALL_METER_SELFTEST_SELFTEST_H

#include <stdbool.h>

#include "device/device.h"
#include "meter/account.h"
#include "meter/selftest/selftest_finding.h"
#include "meter/selftest/selftest_turning.h"
#include "meter/selftest/spread.h"
#include "meter/selftest/updates.h"

/*
 * Tests how good the devices of this machine are as instruments: how long their calls take, how
 * often their readings change, and whether the energy counter and the integrated power agree,
 * idle and under load. Nothing is ever set here; meter/selftest/selftest_turning.h sets limits,
 * if the user asks for it.
 *
 *     selftest_latencies(list, clock, device, &result[device]);
 *     selftest_measure(&options, SELFTEST_IDLE, results, out_error);
 *     start a load;
 *     selftest_measure(&options, SELFTEST_LOADED, results, out_error);
 *     selftest_findings(&list->devices[i].info, &results[i], ...);
 *
 * The devices are measured together, as they are in use. Not thread-safe.
 */
enum selftest_stage { SELFTEST_IDLE, SELFTEST_LOADED, SELFTEST_STAGE_COUNT };

/* Returns "idle" or "loaded". */
const char *selftest_stage_name(enum selftest_stage stage);

/* The quantities whose updates are watched. */
enum { SELFTEST_WATCHED = 3 };
extern const enum quantity selftest_watched[SELFTEST_WATCHED];

/* What one device did in one stage. Unknown values are NAN. */
struct selftest_window {
    bool measured;
    double time_s;
    double counter_j, counter_uncertainty_j;
    double integral_j;
    double integral_excess; /* of the integral over the counter, as a fraction of the counter */
    double mean_power_w;
    double utilization; /* mean share of time with work on the device */
    double temperature_max_c;
    char note[160]; /* from the meter: why there is no energy, or what limits it */
    struct update_finding updates[SELFTEST_WATCHED];
    struct account_counter counter; /* as the meter saw it */
};

struct selftest_latency {
    struct reading reading; /* the last one: its state says whether the call works */
    struct spread seconds;  /* of the calls */
};

struct selftest_result {
    bool load_ran; /* set by the caller: the test's own load ran in the second stage */
    struct selftest_latency latencies[QUANTITY_COUNT];
    struct selftest_window windows[SELFTEST_STAGE_COUNT];
    struct selftest_turning turning;
};

/* How many calls of each quantity are timed. */
enum { SELFTEST_CALLS = 200 };

/* Times the calls of one device, each for at most a second. */
void selftest_latencies(const struct device *device, const struct clock *clock,
                        struct selftest_result *result);

struct selftest_options {
    struct device_list *devices;
    const struct clock *clock; /* NULL: clock_real */
    double duration_s;         /* of a stage */
    double poll_s;             /* between looks for updates; slow drivers make it longer */
    bool (*go_on)(void *data); /* asked at every poll; NULL: always */
    void *data;
};

/*
 * Measures all devices for a while, into results[device].windows[which]. Returns FLY_ESTATE if
 * go_on interrupted it.
 */
int selftest_measure(const struct selftest_options *options, enum selftest_stage which,
                     struct selftest_result *results, struct fly_error *out_error);

/*
 * Says what the figures mean, one clause each: of the counter against the integral, of measured
 * periods against the stated ones, and of what could not be told. Returns the number of findings,
 * at most SELFTEST_FINDINGS_MAX.
 */
size_t selftest_findings(const struct device_info *info, const struct selftest_result *result,
                         struct selftest_finding findings[SELFTEST_FINDINGS_MAX]);

#endif
