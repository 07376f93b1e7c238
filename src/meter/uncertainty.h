/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_UNCERTAINTY_H
#define FLYBALL_METER_UNCERTAINTY_H

/*
 * How far a figure may lie from the truth: half widths of intervals that hold
 * it in 95 of 100 cases. docs/metering.md derives the formulas. Pure.
 */

/* One edge of a window over a counter: power around it, and between what the age of the last update lies. */
struct uncertainty_edge {
    double power_w;
    double age_low_s, age_high_s;
};

/* What a counter misses at the begin and has too much at the end, or the other way round. */
double uncertainty_ages_j(const struct uncertainty_edge *begin, const struct uncertainty_edge *end);

/* How a sensor looks at the power, and at what it looks. */
struct uncertainty_sensor {
    double period_s; /* between two readings that are summed up */
    double window_s; /* of each period, what is seen */
    double apart_s;  /* of the samples that the variances are from */
    double local_w2; /* variance among neighbouring samples */
    double noise_w2; /* of that, what goes up and down again at once */
};

/* What readings summed over `length_s` miss between them. */
double uncertainty_unseen_j(const struct uncertainty_sensor *sensor, double length_s);

#endif
