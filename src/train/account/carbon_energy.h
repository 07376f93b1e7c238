/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_ENERGY_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_ENERGY_H

#include <flyball/meter.h>

#include "train/account/carbon_slicer.h"

/*
 * The energy of a run, taken piece by piece from one window of a meter that stays open; for each device it
 * notes how much was taken.
 *
 *     carbon_energy_init(&energy, meter)
 *     look = carbon_energy_look(&energy);      since what was taken last
 *     carbon_energy_take(&energy, 0.75);       three quarters of what that look told
 *
 * Readings of one window add up exactly, where two windows side by side would overlap or leave a gap. When a
 * device's figure changes its source, from its counter to sampled power, the energy in between is that of
 * sampled power, not the difference of the two figures. It does not call the `synchronize` of the meter's
 * owner. The caller locks.
 */
struct carbon_taken;

struct carbon_energy {
    struct fly_meter *meter; /* borrowed; NULL: nothing is known */
    fly_window window;
    bool is_open; /* the window is */
    bool has_gpu;
    size_t count;                      /* of devices */
    struct fly_device_energy *devices; /* owned: their figures at the last look */
    struct carbon_taken *taken;        /* owned */
};

/* Returns false without memory. */
bool carbon_energy_init(struct carbon_energy *energy, struct fly_meter *meter);
void carbon_energy_deinit(struct carbon_energy *energy);

struct slicer_energy carbon_energy_look(struct carbon_energy *energy);
void carbon_energy_take(struct carbon_energy *energy, double share);

/* Gives up what was used up to now. */
void carbon_energy_anew(struct carbon_energy *energy);

#endif
