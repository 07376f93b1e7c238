/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_LOAD_H
#define FLYBALL_CLI_MACHINE_SELFTEST_LOAD_H

#include <stdbool.h>

#include <flyball/error.h>

#include "device/device.h"
#include "device/nvidia/cuda_load.h"

/*
 * The load that `flyball selftest` puts on each device: on NVIDIA's GPUs a kernel through CUDA's
 * driver; on all others whatever runs there already.
 */
struct selftest_load {
    bool started;                  /* our own load ran on the device */
    char text[FLY_ERROR_TEXT_MAX]; /* why it did not run, or why it ended early; "" if neither */
    struct cuda_load load;
};

struct selftest_load_options {
    bool wanted;
    const char *library_path; /* of libcuda, or NULL */
    double duration_max_s;
    const bool *chosen; /* which devices; NULL: all */
};

/*
 * Starts a load for each device of the list; `loads` must be zeroed. Never fails: each load says
 * why it did not start.
 */
void selftest_loads_start(const struct selftest_load_options *options, const struct device_list *devices,
                          struct selftest_load *loads);

/* Ends the loads that run. May be called twice. */
void selftest_loads_stop(const struct device_list *devices, struct selftest_load *loads);

#endif
