/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_WATCH_H
#define FLYBALL_CLI_MACHINE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/*
 * What one device said over time, for `flyball monitor`: the newest reading, the
 * energy since the first, and the last powers.
 *
 *     watch_init(&watch, device);
 *     watch_take(&watch, &reading);
 *
 * The energy is the counter's difference; a device without one has its power
 * summed by the trapezoidal rule. A device that counts energy and says no power
 * has the mean power between two readings. Pure.
 */
enum { WATCH_HISTORY = 240, WATCH_REASON_MAX = 96 };

struct watch {
    const struct device *device; /* borrowed */
    struct device_reading reading;
    size_t readings;
    double power_w; /* NAN: not known, because of `power_reason` */
    char power_reason[WATCH_REASON_MAX];
    double energy_j; /* NAN: not known, because of `energy_reason` */
    char energy_reason[WATCH_REASON_MAX];
    const char *source;              /* of the energy: "counter", "integrated", "estimated"; NULL not known */
    double history_w[WATCH_HISTORY]; /* a ring; NAN where a power was not known */
    size_t history_count;            /* ever written */
    uint64_t counter_uj;             /* at the last reading that had it */
    struct mono_time counter_at;
    double sensor_w; /* at the last reading that had it */
    struct mono_time sensor_at;
    bool counted, sensed; /* there was such a reading */
    double sum_j;         /* the energy as far as it is known */
    bool broken;          /* a part of it is lost */
};

void watch_init(struct watch *watch, const struct device *device);
void watch_take(struct watch *watch, const struct device_reading *reading);

/* The power `back` readings ago; NAN when there was none. */
double watch_history_w(const struct watch *watch, size_t back);

#endif
