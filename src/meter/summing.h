/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SUMMING_H
#define FLYBALL_METER_SUMMING_H

#include <stdbool.h>

/*
 * Does a counter sum the power readings? If it does, it rises from one sample to the next by a
 * reading times the sensor's period, to the millijoule, or by two or none where its updates and
 * the samples part. A rise that is none of these shows that the counter sees the power by itself.
 * Then it misses nothing of what the sensor does not look at. Plain values, no locks.
 */
enum { SUMMING_KINDS = 2, SUMMING_READINGS = 3 };

struct summing {
    double readings_w[SUMMING_KINDS][SUMMING_READINGS]; /* instant and average; newest first; NAN: none */
    double checked, missed;                             /* samples, fading over a minute */
};

void summing_init(struct summing *summing);

/*
 * Adds a sample: what the counter rose by since the last one (NAN: unknown), and both kinds of
 * readings (NAN: none). Samples are taken once in a period of the sensor.
 */
void summing_take(struct summing *summing, double rise_j, double instant_w, double average_w,
                  double period_s);

/* Returns whether the counter has shown that it does not sum readings. */
bool summing_is_disproved(const struct summing *summing);

#endif
