/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_METER_WINDOW_LOADS_H
#define FLYBALL_TESTS_METER_WINDOW_LOADS_H

#include <stdbool.h>
#include <stdint.h>

/* Loads for judging the energy of short windows: endless sequences of how much power is wanted for how long.
 */
enum window_load_kind {
    WINDOW_STEADY,   /* a level that changes once a minute or so */
    WINDOW_RAMPING,  /* from level to level in 1 to 6 s, in steps of 20 ms */
    WINDOW_BURSTY,   /* bursts of 0.3 s and pauses of 0.7 s in the mean, exponentially distributed */
    WINDOW_PERIODIC, /* steps of 0.12 to 3 s, each off by up to 5 %, mostly at work */
    /* Steps that keep time exactly, with periods that beat with a one-second average or a part-time sensor.
     */
    WINDOW_EVERY_530_MS,
    WINDOW_EVERY_610_MS,
    WINDOW_EVERY_1070_MS,
    WINDOW_LOADS
};

/* "steady"; "every 0.53 s". Static storage. */
const char *window_load_name(enum window_load_kind kind);

struct window_load {
    enum window_load_kind kind;
    double scale_w; /* what the board draws at most */
    uint64_t random;
    bool high;
    double level_w, target_w, step_w; /* of a ramp */
    double period_s, duty, low_w, high_w;
};

/* Draws a load of that kind; the same for the same seed. */
struct window_load window_load_draw(enum window_load_kind kind, double scale_w, uint64_t seed);

/* Draws the next stretch; `state` is a struct window_load. */
void window_load_next(void *state, double *out_duration_s, double *out_power_w);

#endif
