/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TRACKING_H
#define FLYBALL_METER_TRACKING_H

#include "meter/account.h"

/*
 * Tracks the updates of an account's counter by a reading. Fills in the edge's age, expected power and
 * change, and gives the begins of open windows the updates that follow them. The caller holds the lock.
 */
void tracking_take(struct account *account, const struct device_reading *reading, struct account_edge *edge);

#endif
