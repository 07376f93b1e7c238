/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_METER_MADE_LOADS_H
#define FLYBALL_TESTS_METER_MADE_LOADS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where these sensors fail: when a load repeats about as often as a part-time sensor looks, the two beat, and
 * readings show another load, slow and smooth. When a load's period divides the second of an average,
 * readings show a constant load.
 */
enum made_sensor { MADE_PART_TIME = 1, MADE_SECOND = 2 };

/*
 * Made-up loads of a GPU, step by step: how much power is wanted, and for how long. Each is an endless
 * sequence drawn from a seed.
 */
struct made_load {
    const char *name;        /* NULL: drawn at random */
    unsigned hidden_from;    /* bits of enum made_sensor: sensors whose readings cannot show what it does */
    double period_s, jitter; /* of what repeats; each period deviates by at most this share */
    double duty;             /* share of the period at high power */
    double low_w, high_w;
    double pause_every_s, pause_s, pause_w; /* 0: never; each drawn from an exponential distribution */
};

extern const struct made_load *made_loads; /* one of each kind, unless others were drawn */
enum { MADE_LOADS = 16 };

/*
 * Replaces the loads by random trainings, the same for the same seed: steps of 50 ms to 5 s that deviate by 2
 * to 30 %, half to nearly all of them at work, with pauses or without. It is not told which of them a sensor
 * hides.
 */
void made_loads_draw(uint64_t seed);

/* The position in a sequence. */
struct made_sequence {
    const struct made_load *load;
    uint64_t random;
    bool high, pausing;
    double until_pause_s, period_s;
};

struct made_sequence made_sequence(const struct made_load *load, uint64_t seed);

/* Draws the next step. */
void made_sequence_next(struct made_sequence *sequence, double *out_duration_s, double *out_power_w);

#endif
