/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_SETTING_H
#define FLYBALL_DEVICE_SETTING_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * The value of something that can be set: a number in the quantity's unit or, for
 * QUANTITY_WORKLOADS, the set of requested profiles. With a ceiling on a clock comes the floor under it,
 * since drivers set both at once. Other members are empty, so two settings of one quantity are compared
 * whatever it is.
 */
struct setting {
    int64_t number;
    int64_t floor_mhz; /* of a ceiling on a clock; 0: none */
    struct workload_set workloads;
};

static inline struct setting setting_number(int64_t number)
{
    return (struct setting){.number = number};
}

/* Returns whether the quantity is a ceiling on a clock, which no driver reports. */
static inline bool setting_is_clock(enum quantity quantity)
{
    return quantity == QUANTITY_CLOCK_CEILING || quantity == QUANTITY_MEMORY_CLOCK_CEILING;
}

bool setting_equals(const struct setting *one, const struct setting *other);

/*
 * Reads what is set now. READING_UNSUPPORTED for a quantity that no driver reports, as the ceiling on
 * the clock; the setting is then left as it is, as with every state but READING_OK. Thread-safe.
 */
enum reading_state setting_read(const struct device *device, enum quantity quantity,
                                struct setting *out_setting);

/*
 * Gives the setting nearest to the wanted one that the device takes at present: a limit within its range, of
 * workload profiles those that it offers, any other as it is. So is one whose range cannot be read.
 * Thread-safe.
 */
struct setting setting_nearest(const struct device *device, enum quantity quantity,
                               const struct setting *wanted);

/* Do what device_check_set and device_set do, for any quantity. Thread-safe. */
int setting_check(const struct device *device, enum quantity quantity, const struct setting *setting,
                  struct fly_error *out_error);
int setting_make(const struct device *device, enum quantity quantity, const struct setting *setting,
                 struct fly_error *out_error);

#endif
