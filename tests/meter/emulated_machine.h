/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_METER_EMULATED_MACHINE_H
#define FLYBALL_TESTS_METER_EMULATED_MACHINE_H

#include "coverage.h"
#include "emulator/control.h"
#include "made_loads.h"
#include "meter/meter.h"

/* What a GPU does: draws how much power it wants next, and for how long. */
struct machine_load {
    void (*next)(void *state, double *out_duration_s, double *out_power_w);
    void *state; /* borrowed */
};

/* An emulated machine whose GPUs each run another load. */
struct machine {
    struct emulator *emulator;
    struct clock clock;
    struct device_list list;
    struct fly_meter *meter;
    char path[64];
    unsigned gpus;
    struct made_sequence made[MADE_LOADS];
    struct machine_load loads[MADE_LOADS];
    double planned_s[MADE_LOADS]; /* how far ahead loads are planned */
    uint64_t random;
};

/*
 * Starts it with the emulator's settings ("time=virtual,model=a100,..."), with a counter or without; the
 * meter samples at `sample_hz` (0: its default). `loads`: one for each of the MADE_LOADS GPUs; NULL: the made
 * ones.
 */
void machine_start(struct machine *machine, const char *settings_text, bool counter, double sample_hz,
                   uint64_t seed, const struct machine_load *loads);
void machine_stop(struct machine *machine);

double machine_now_s(const struct machine *machine);

/* Moves virtual time on to `when_s`; the meter samples whenever that is due. */
void machine_move_to(struct machine *machine, double when_s);

/*
 * Measures windows of 50 ms to 60 s in virtual time, as many short as long ones, which begin at random and
 * overlap.
 */
void machine_measure(struct machine *machine, struct coverage *coverage, int windows);

/* Measures short windows in real time, while the meter's own thread samples. */
void machine_measure_real(struct machine *machine, struct coverage *coverage, int windows);

#endif
