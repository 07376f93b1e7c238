/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_READING_VIEW_H
#define FLYBALL_CLI_VIEWS_READING_VIEW_H

#include "cli/kit/table.h"
#include "device/device.h"

/* How devices and their readings are shown. Pure. */

/* "emulated", "estimated, MIG": how the device's figures differ from a plain sensor's; "" for not at all. */
enum { DEVICE_LABEL_MAX = 48 };
const char *device_label(const struct device_info *info, char label[DEVICE_LABEL_MAX]);

/* Why there is no value, a clause: "the driver reported an error (code 999)". */
enum { READING_REASON_MAX = 96 };
const char *reading_reason(const struct reading *reading, char reason[READING_REASON_MAX]);

/* Its value, divided, or "-" with the reason why there is none. */
void table_add_reading(struct table *table, const struct reading *reading, double divisor);

/* The device's power: the instant one where it is offered, else the average. */
const struct reading *reading_power(const struct device_reading *reading);

/* The power limit in force: after all limiters where that is known, else as it was set. */
const struct reading *reading_limit(const struct device_reading *reading);

#endif
