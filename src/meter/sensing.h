/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SENSING_H
#define FLYBALL_METER_SENSING_H

#include "device/device.h"

/*
 * How a device's figures come about, with nothing left open: the facts that its
 * back end states, and where it states none, the worst that boards were seen to
 * do.
 */
struct sensing {
    double counter_period_s, power_period_s, power_window_s;
    /*
     * A counter that sums power readings sums each period for itself, so that it
     * sees their windows; but never an average over several periods, which is made
     * for readers.
     */
    bool counter_from_power;
    double counter_window_s, counter_lag_s; /* of each period, what it sees; how late that comes into it */
    double lag_s;    /* by which the middle of what a power reading averages lies before its being read */
    double sample_s; /* between two samples of ours */
    double apart_s;  /* between two readings that may differ: of samples, or of the sensor where those come
                        faster */
};

/* `average` says that the power read is the average over about a second. Pure. */
struct sensing sensing_of(const struct device_info *info, double sample_s, bool average);

#endif
