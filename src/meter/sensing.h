/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SENSING_H
#define FLYBALL_METER_SENSING_H

#include "device/device.h"

/*
 * How a device's figures are made, with no fact left unknown: the facts that its back end states,
 * and otherwise the worst behaviour that was observed on any board.
 */
struct sensing {
    double counter_period_s, power_period_s, power_window_s;
    /*
     * A counter that sums power readings adds up each period separately, so it is limited by their
     * windows. It never sums an average over several periods, since that is made only for readers.
     */
    bool counter_from_power;
    double counter_window_s, counter_lag_s; /* the part of each period that it sees; its lag */
    double lag_s;    /* from the middle of the time that a power reading averages to the moment when it is
                      * read */
    double sample_s; /* between two samples of the meter */
    double apart_s;  /* between two readings that may differ: of samples, or of the sensor if that is
                      * faster */
};

/* `average` says that the power read is the average over about a second. Pure. */
struct sensing sensing_of(const struct device_info *info, double sample_s, bool average);

#endif
