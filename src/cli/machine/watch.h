/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_WATCH_H
#define FLYBALL_CLI_MACHINE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/*
 * One device over time, for `flyball monitor`: the newest reading, the energy since the first,
 * and the last powers.
 *
 *     watch_init(&watch, device);
 *     watch_take(&watch, &reading);
 *
 * The energy is the counter's difference. For a device without a counter, the power is integrated
 * by the trapezoidal rule. For a device that counts energy but reports no power, the power is the
 * mean between two readings. Pure.
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
    double history_w[WATCH_HISTORY]; /* a ring; NAN if a power was not known */
    size_t history_count;            /* how many were ever written */
    uint64_t counter_uj;             /* at the last reading that had a counter */
    struct mono_time counter_at;
    double sensor_w; /* at the last reading that had a power */
    struct mono_time sensor_at;
    bool counted, sensed; /* there was such a reading */
    double sum_j;         /* the known part of the energy */
    bool broken;          /* a part of it was lost */
};

void watch_init(struct watch *watch, const struct device *device);
void watch_take(struct watch *watch, const struct device_reading *reading);

/* Returns the power `back` readings ago; NAN if there was none. */
double watch_history_w(const struct watch *watch, size_t back);

#endif
