/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_MADE_LOADS_H
#define FLYBALL_TESTS_MADE_LOADS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where a load repeats about as often as a part-time sensor looks, it beats with
 * it, and readings show another load, slow and smooth. Where its period divides
 * the second of an average, readings show a constant one.
 */
enum made_sensor { MADE_PART_TIME = 1, MADE_SECOND = 2 };

/*
 * Made-up loads of a GPU, step by step: what power is wanted, for how long. Each
 * is a sequence drawn from a seed, without an end.
 */
struct made_load {
    const char *name;        /* NULL: drawn at random */
    unsigned hidden_from;    /* bits of enum made_sensor: whose readings cannot show what it does */
    double period_s, jitter; /* of what repeats; each period is off by at most this share */
    double duty;             /* of the period, the share at high power */
    double low_w, high_w;
    double pause_every_s, pause_s, pause_w; /* 0: never; each drawn from an exponential distribution */
};

extern const struct made_load *made_loads; /* each of a kind of its own, unless others were drawn */
enum { MADE_LOADS = 16 };

/*
 * Puts trainings at random in their place, the same for the same seed: steps of
 * 50 ms to 5 s that are off by 2 to 30 %, half to nearly all of them at work, with
 * pauses or without. Which of them a sensor hides, nobody says.
 */
void made_loads_draw(uint64_t seed);

/* Where a sequence stands. */
struct made_sequence {
    const struct made_load *load;
    uint64_t random;
    bool high, pausing;
    double until_pause_s, period_s;
};

struct made_sequence made_sequence(const struct made_load *load, uint64_t seed);

/* The next step. */
void made_sequence_next(struct made_sequence *sequence, double *out_duration_s, double *out_power_w);

#endif
