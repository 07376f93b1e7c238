/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_TURNING_H
#define FLYBALL_METER_SELFTEST_SELFTEST_TURNING_H

#include <stdbool.h>

#include "device/device.h"

/*
 * Whether power limits of this machine do what they say: under a load, level by level
 * from the highest limit down, the mean power, when its readings stay under the limit,
 * and how much work is done. Who may turn limits, and how they come back, is the
 * caller's (knob/): the measuring here calls him to set each level.
 *
 *     start a load;
 *     selftest_turn(&options, turnings, out_error);      turnings[i].tried: the device takes part
 *     kill a process that holds limits down, and fill in turnings[i].killed;
 *     selftest_findings(...)                             says what it means
 *
 * Not thread-safe.
 */
enum { SELFTEST_LEVELS = 4 };

/* Up to where a reading still keeps a limit: 3 % above it, or 5 W for the noise of sensors where that is
 * more. */
double selftest_kept_w(double limit_w);

/* What one device did at one limit. What is not known is NAN. */
struct selftest_level {
    double limit_w; /* what the driver said after it was set; 0: this level was not reached */
    double mean_power_w, uncertainty_w; /* once the time to settle was over */
    double mean_reading_w;              /* of the readings of power, in the same time */
    double settled_s;                   /* from when it was set until its readings stayed under it */
    double clock_mhz;                   /* mean of the GPU clock's readings */
    double work_per_s;                  /* in steps of the load's kernel */
    double capped_share;                /* of the time, as the driver has it */
};

struct selftest_turning {
    bool wanted;       /* limits of this device were to be tried */
    bool tried;        /* they may be turned */
    char why_not[320]; /* ... or why not, with what to do */
    struct selftest_level levels[SELFTEST_LEVELS];
    bool killed;           /* a process that held this device's limit was killed; or */
    char not_killed[320];  /* why not */
    double killed_limit_w; /* at which it held it */
    double back_s;         /* from the kill until what stood before stood again; NAN: not within back_max_s */
    double back_max_s;
    double before_w, after_w; /* the limit before anything was turned, and at the end */
};

struct selftest_turning_options {
    struct device_list *devices;
    const struct clock *clock; /* NULL: clock_real */
    double settle_s;           /* after each set, until the window begins */
    double duration_s;         /* of a level's window */
    double poll_s;
    /* Sets the limits of level 0, 1, ... of all devices that take part; a negative code ends it all. */
    int (*set)(void *data, int level, struct fly_error *out_error);
    /* The work done on a device so far; false where it is not known. */
    bool (*work)(void *data, size_t device, double *out_work);
    bool (*go_on)(void *data); /* asked at every poll */
    void *data;
};

/*
 * Fills in the levels of the turnings (one for each device) that are `tried`. The
 * errors of `set`, FLY_ESTATE when go_on ended it, FLY_ENOMEM; levels reached until then stay.
 */
int selftest_turn(const struct selftest_turning_options *options, struct selftest_turning *turnings,
                  struct fly_error *out_error);

#endif
