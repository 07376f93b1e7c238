/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_UNCERTAINTY_H
#define FLYBALL_METER_UNCERTAINTY_H

/*
 * How far a figure may be from the truth: half widths of intervals that hold the truth in 95 of
 * 100 cases. docs/explanation/metering.md derives the formulas. Pure.
 */

/* One edge of a window over a counter: the power around it, and the limits of the age of the last update. */
struct uncertainty_edge {
    double power_w;
    double age_low_s, age_high_s;
};

/* Returns what a counter may miss at the begin and have too much at the end, or the other way round. */
double uncertainty_ages_j(const struct uncertainty_edge *begin, const struct uncertainty_edge *end);

/* How a sensor samples the power, and how that power varies. */
struct uncertainty_sensor {
    double period_s; /* between two readings that are summed */
    double window_s; /* the part of each period that the sensor sees */
    double apart_s;  /* time between the samples that give the variances */
    double local_w2; /* variance among neighbouring samples */
    double noise_w2; /* the part of it that rises and falls again at once */
};

/* Returns what readings summed over `length_s` miss between them. */
double uncertainty_unseen_j(const struct uncertainty_sensor *sensor, double length_s);

#endif
