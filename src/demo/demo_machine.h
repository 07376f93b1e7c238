/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_DEMO_MACHINE_H
#define FLYBALL_DEMO_DEMO_MACHINE_H

#include <flyball/tuner.h>

#include "base/clock.h"
#include "device/device.h"
#include "meter/meter.h"
#include "model/gpu_model.h"

/*
 * The machine that the demo trains on: one GPU, made of a shape and a load
 * (gpu_model.h), in a time of its own that passes only while it works. Meter, power
 * limit and clock are what a session takes in the place of hardware; its counter is exact
 * to a microjoule, so that the same steps give the same figures.
 *
 *     demo_machine_open(&machine, shape, &load, out_error);
 *     options.meter = machine.meter;
 *     options.turner = &demo_machine_turner, options.turner_data = &machine;
 *     parts.clock = &machine.clock;
 *     ...
 *     demo_machine_work(&machine, batch_size, samples);
 *     demo_machine_close(&machine);
 *
 * For one thread; not to be moved while it is open.
 */
struct demo_machine {
    const struct gpu_shape *shape;
    const struct gpu_load *load; /* borrowed */
    int64_t now_ns;
    double energy_uj, power_w, limit_w;
    bool capped; /* the limit binds */
    struct clock clock;
    struct device_list *list; /* owned */
    struct fly_meter *meter;  /* owned */
};

extern const struct fly_turner demo_machine_turner; /* of the power limit; its data is the machine */

/* FLY_ENOMEM. Needs demo_machine_close only after success. */
int demo_machine_open(struct demo_machine *machine, const struct gpu_shape *shape,
                      const struct gpu_load *load, struct fly_error *out_error);
void demo_machine_close(struct demo_machine *machine);

/* Lets the time pass that so many samples take in batches of that size, under the limit that stands. */
void demo_machine_work(struct demo_machine *machine, uint32_t batch_size, double samples);

#endif
