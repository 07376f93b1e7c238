/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_METER_HANDLE_H
#define FLYBALL_METER_METER_HANDLE_H

#include "meter/claim.h"
#include "meter/meter.h"
#include "meter/sampler.h"
#include "meter/windows.h"

/* The parts of a meter; only for the files of the meter. */
struct fly_meter {
    uint64_t forks; /* identifies the process that made it */
    struct device_list *devices;
    struct device_list *owned;   /* NULL, or closed and freed with the meter */
    struct claims *owned_claims; /* NULL, or released and freed with the meter */
    const struct claims *claims; /* which process counts; NULL: this one counts all */
    char *nvml_path;             /* NULL, or owned */
    char *amdsmi_path;           /* NULL, or owned */
    const struct clock *clock;
    void (*synchronize)(void *data);
    void *synchronize_data;
    struct account *accounts; /* one for each device */
    struct windows windows;
    struct sampler sampler;
};

/* Frees the samples that are kept, once no thread takes any. */
void meter_free_samples(struct fly_meter *meter);

#endif
