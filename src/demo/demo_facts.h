/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_DEMO_FACTS_H
#define FLYBALL_DEMO_DEMO_FACTS_H

/* The demo's constants: its jobs, their target, and the emulated GPU. */
enum {
    DEMO_JOBS = 2,
    DEMO_BATCHES = 8, /* 4, 8, ..., 512 */
    DEMO_SMALLEST_BATCH = 4,
    DEMO_DEFAULT_BATCH = 256,
    DEMO_MAX_EPOCHS = 120,
    DEMO_TARGET = 342, /* of DIGITS_HELD_OUT: 95 % */
    DEMO_CHECK_SEEDS = 20,
    DEMO_RECURRENCES_MAX = 1000,
    DEMO_CONTROL_EVERY = 8, /* of so many recurrences one runs the default, to measure what is saved */
};

extern const double demo_eta;
extern const double demo_beta; /* 3 instead of 2, since equal trainings differ by a fifth from seed to seed */
extern const char demo_gpu[];  /* name of the GPU's shape */

#endif
