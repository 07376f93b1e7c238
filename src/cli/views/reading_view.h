/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_READING_VIEW_H
#define FLYBALL_CLI_VIEWS_READING_VIEW_H

#include "device/device.h"
#include "shapes/table.h"

/* How devices and their readings are displayed. Pure. */

/*
 * Writes how the device's figures differ from a plain sensor's: "emulated", "estimated, MIG"; ""
 * if they do not.
 */
enum { DEVICE_LABEL_MAX = 48 };
const char *device_label(const struct device_info *info, char label[DEVICE_LABEL_MAX]);

/* Writes why there is no value, a clause: "the driver reported an error (code 999)". */
enum { READING_REASON_MAX = 96 };
const char *reading_reason(const struct reading *reading, char reason[READING_REASON_MAX]);

/* Adds a reading's value, divided by `divisor`, or "-" with the reason why there is none. */
void table_add_reading(struct table *table, const struct reading *reading, double divisor);

/* Returns the device's power: the momentary one if it has that, else the average. */
const struct reading *reading_power(const struct device_reading *reading);

/* Returns the power limit in force: after all limiters if that is known, else as it was set. */
const struct reading *reading_limit(const struct device_reading *reading);

#endif
