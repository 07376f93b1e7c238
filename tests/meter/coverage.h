/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_METER_COVERAGE_H
#define FLYBALL_TESTS_METER_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/meter.h>

/*
 * Checks whether stated intervals contain the truth, and whether they are narrow enough to be useful. It
 * collects windows of random length, grouped by their load and by the decade of their length.
 */
enum { COVERAGE_LOADS_MAX = 24, COVERAGE_DECADES = 4 };

/* One device in one window. */
struct coverage_window {
    unsigned load;
    double length_s, truth_j;
    bool figure;   /* an energy was stated */
    bool disputed; /* it is a counter's, and sampled power disagrees */
    double energy_j, half_j;
};

struct coverage {
    unsigned sensor;                 /* of enum made_sensor */
    struct coverage_window *windows; /* owned */
    size_t count, capacity;
};

void coverage_add(struct coverage *coverage, unsigned load, double truth_j,
                  const struct fly_device_energy *energy);
void coverage_deinit(struct coverage *coverage);

/* The windows of one load (-1: all that the sensor can see) and one decade (-1: all). */
struct coverage_finding {
    size_t windows, figures, disputed;
    double covered;  /* share of the figures whose interval contains the truth */
    double half_j;   /* median */
    double error_j;  /* 95th percentile */
    double energy_j; /* median */
};
struct coverage_finding coverage_find(const struct coverage *coverage, int load, int decade);

/* Prints the table, a line per load, as comments of the test's output. */
void coverage_print(const struct coverage *coverage, const char *title);

#endif
