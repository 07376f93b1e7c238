/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_MONITORED_H
#define FLYBALL_CLI_MACHINE_MONITORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "meter/counter.h"

/*
 * Writes why a GPU runs below its highest clock: "power cap, heat". Leaves out reasons that do
 * not hold the GPU down (idle, clocks that were asked for). "none" if no other is left. Returns
 * `text`.
 */
enum { THROTTLE_TEXT_MAX = 96 };

char *throttle_text(int64_t reasons, char text[THROTTLE_TEXT_MAX]);

/*
 * One device over time, for `flyball monitor`: the newest reading, the energy since the first,
 * and the last powers.
 *
 *     monitored_init(&watch, device);
 *     monitored_take(&watch, &reading);
 *
 * The energy is the counter's difference, without readings that it cannot have reached (meter/counter.h).
 * For a device without a counter, the power is integrated
 * by the trapezoidal rule. For a device that counts energy but reports no power, the power is the
 * mean between two readings. Pure.
 */
enum { MONITORED_HISTORY = 240, MONITORED_REASON_MAX = 96 };

struct monitored {
    const struct device *device; /* borrowed */
    struct device_reading reading;
    size_t readings;
    double power_w; /* NAN: not known, because of `power_reason` */
    char power_reason[MONITORED_REASON_MAX];
    double energy_j; /* NAN: not known, because of `energy_reason` */
    char energy_reason[MONITORED_REASON_MAX];
    const char *source; /* of the energy: "counter", "integrated", "estimated"; NULL not known */
    double history_w[MONITORED_HISTORY]; /* a ring; NAN if a power was not known */
    size_t history_count;                /* how many were ever written */
    struct counter counter;
    uint64_t first_uj;         /* its total at the first reading that had a counter */
    struct mono_time moved_at; /* of the last reading in which it had changed */
    double sensor_w;           /* at the last reading that had a power */
    struct mono_time sensor_at;
    bool sensed;  /* there was such a reading */
    double sum_j; /* the known part of the energy of a device without a counter */
    bool broken;  /* a part of it was lost */
};

void monitored_init(struct monitored *watch, const struct device *device);
void monitored_take(struct monitored *watch, const struct device_reading *reading);

/* Returns the power `back` readings ago; NAN if there was none. */
double monitored_history_w(const struct monitored *watch, size_t back);

#endif
