/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_TURNING_H
#define FLYBALL_METER_SELFTEST_SELFTEST_TURNING_H

#include <stdbool.h>

#include "device/device.h"

/*
 * Tests whether power limits of this machine have the stated effect. Under a load it goes level
 * by level from the highest limit down and measures the mean power, when the readings stay under
 * the limit, and how much work is done. The caller (knob/) decides who may set limits and how
 * they are restored: the code here asks the caller to set each level.
 *
 *     start a load;
 *     selftest_turn(&options, turnings, out_error);      turnings[i].tried: the device takes part
 *     kill a process that holds limits down, and fill in turnings[i].killed;
 *     selftest_findings(...)                             says what it means
 *
 * Not thread-safe.
 */
enum { SELFTEST_LEVELS = 4 };

/*
 * Returns up to which reading a limit counts as kept: 3 % above the limit or, for the noise of
 * sensors, 5 W if that is more.
 */
double selftest_kept_w(double limit_w);

/* What one device did at one limit. Unknown values are NAN. */
struct selftest_level {
    double limit_w; /* what the driver reported after it was set; 0: this level was not reached */
    double mean_power_w, uncertainty_w; /* after the time to settle */
    double mean_reading_w;              /* mean of the power readings in the same time */
    double settled_s;                   /* from setting the limit until the readings stayed under it */
    double clock_mhz;                   /* mean of the readings of the GPU clock */
    double work_per_s;                  /* in steps of the load's kernel */
    double capped_share;                /* of the time, according to the driver */
};

struct selftest_turning {
    bool wanted;       /* limits of this device were to be tested */
    bool tried;        /* they may be set */
    char why_not[320]; /* why they may not, and what to do */
    struct selftest_level levels[SELFTEST_LEVELS];
    bool killed;           /* a process that held this device's limit was killed */
    char not_killed[320];  /* why no process was killed */
    double killed_limit_w; /* the limit that the process held */
    double back_s;         /* from the kill until the earlier limit was back; NAN: not within back_max_s */
    double back_max_s;
    double before_w, after_w; /* the limit before any change, and at the end */
};

struct selftest_turning_options {
    struct device_list *devices;
    const struct clock *clock; /* NULL: clock_real */
    double settle_s;           /* after each change, until the window begins */
    double duration_s;         /* of the window at each level */
    double poll_s;
    /* Sets the limits of level 0, 1, ... of all devices that take part; a negative code ends the test. */
    int (*set)(void *data, int level, struct fly_error *out_error);
    /* Gives the work done on a device so far; false if it is unknown. */
    bool (*work)(void *data, size_t device, double *out_work);
    bool (*go_on)(void *data); /* asked at every poll */
    void *data;
};

/*
 * Fills in the levels of the turnings (one for each device) that are `tried`. Returns the errors
 * of `set`, FLY_ESTATE if go_on ended it, FLY_ENOMEM; levels reached until then stay filled in.
 */
int selftest_turn(const struct selftest_turning_options *options, struct selftest_turning *turnings,
                  struct fly_error *out_error);

#endif
