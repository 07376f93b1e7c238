/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_FAKE_DEVICE_H
#define FLYBALL_TESTS_LIB_FAKE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/*
 * A device whose true power is known at every moment, seen through a counter and a sensor that are less
 * exact: tests what is made of readings. Time is virtual, or real if `real` is set before the clock is made.
 */

/* Power over time, in steps: the energy is exact at every moment. */
struct fake_load {
    double *start_s, *power_w, *energy_j; /* owned; energy_j up to start_s */
    size_t count, capacity;
    double end_s;
};

void fake_load_init(struct fake_load *load);
void fake_load_deinit(struct fake_load *load);
/* Appends a step. */
void fake_load_add(struct fake_load *load, double duration_s, double power_w);
/* The true energy from 0 to `t_s`; the first and the last step extend for ever. */
double fake_load_energy_j(const struct fake_load *load, double t_s);
double fake_load_power_w(const struct fake_load *load, double t_s);

/* The time of tests. */
struct fake_time {
    int64_t now_ns;
};
struct clock fake_clock(struct fake_time *time);

struct fake_device {
    const struct fake_load *load;
    struct fake_time *time; /* NULL: real time, from `epoch` on */
    struct mono_time epoch;
    double counter_period_s, counter_phase_s;
    bool counter_from_power;
    double power_period_s, power_window_s, power_phase_s;
    int64_t counter_start_uj;
    double latency_s; /* of each reading */
    /* Faults. */
    enum reading_state energy_state, power_state, other_state; /* READING_NOT_READ: no fault */
    double reset_s;                                            /* > 0: when the counter starts again from 0 */
    double stuck_s;                                            /* > 0: when the counter moves no more */
    double lost_s;                                             /* > 0: when the device is gone for good */
    int64_t utilization, throttle, temperature_c;
    /* Sums of the power readings so far, if the counter is made from them. */
    double *sums_j;
    size_t sum_count, sum_capacity;
    _Atomic unsigned long reads, power_reads; /* calls; how often power was asked for */
    double counter_gain;                      /* 0: 1 */
};

extern const struct device_backend fake_backend;

/* Makes a list with one GPU over `fake`, which is borrowed; further calls append. */
void fake_list_add(struct device_list *list, struct fake_device *fake);

/* The current time in the load's seconds. */
double fake_now_s(const struct fake_device *fake);

void fake_device_deinit(struct fake_device *fake);

#endif
