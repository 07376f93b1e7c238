/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_DEMO_MACHINE_H
#define FLYBALL_DEMO_DEMO_MACHINE_H

#include <flyball/tuner.h>

#include "base/clock.h"
#include "device/device.h"
#include "meter/meter.h"
#include "model/gpu_model.h"

/*
 * The machine that the demo trains on: one GPU, made of a shape and a load (gpu_model.h), in
 * virtual time that passes only while it works. A session takes its meter, power limit and clock
 * in place of hardware. Its counter is exact to a microjoule, so the same steps give the same
 * figures.
 *
 *     demo_machine_open(&machine, shape, &load, out_error);
 *     options.meter = machine.meter;
 *     options.turner = &demo_machine_turner, options.turner_data = &machine;
 *     parts.clock = &machine.clock;
 *     ...
 *     demo_machine_work(&machine, batch_size, samples);
 *     demo_machine_close(&machine);
 *
 * For one thread. Do not move it while it is open.
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

extern const struct fly_turner demo_machine_turner; /* sets the power limit; its data is the machine */

/* Opens the machine. FLY_ENOMEM. Call demo_machine_close only after success. */
int demo_machine_open(struct demo_machine *machine, const struct gpu_shape *shape,
                      const struct gpu_load *load, struct fly_error *out_error);
void demo_machine_close(struct demo_machine *machine);

/* Advances the time by what so many samples take in batches of that size under the current limit. */
void demo_machine_work(struct demo_machine *machine, uint32_t batch_size, double samples);

#endif
