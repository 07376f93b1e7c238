/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_METERED_DEVICES_H
#define FLYBALL_CLI_MEASURE_METERED_DEVICES_H

#include <flyball/meter.h>

#include "cli/frame/call.h"
#include "device/device.h"
#include "device/open/selection.h"

/*
 * The devices that a program would see, and a meter for them, for commands that measure a
 * program. Large: keep it in static storage.
 *
 *     static struct metered_devices devices;
 *
 *     if (metered_devices_open(call, &devices, out_error) < 0)
 *         ...
 *     if (devices.meter == NULL)
 *         say devices.fault.text
 *     metered_devices_close(&devices);
 */
struct metered_devices {
    struct device_list list;
    struct fly_meter *meter; /* NULL: nothing is measured, and `fault` says why */
    struct fly_error fault;
    char selection[SELECTION_NOTE_MAX]; /* what hides GPUs; "" for nothing */
    bool opened;                        /* the list is open */
};

/*
 * Opens them by the options of cli/options/device_options.h. A fault is stored. An error is
 * returned only for a list of GPUs that is malformed or names one that does not exist.
 */
int metered_devices_open(const struct cli_call *call, struct metered_devices *out_devices,
                         struct fly_error *out_error);

void metered_devices_close(struct metered_devices *devices);

#endif
