/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_LOAD_H
#define FLYBALL_CLI_MACHINE_SELFTEST_LOAD_H

#include <stdbool.h>

#include <flyball/error.h>

#include "device/device.h"
#include "device/nvidia/cuda_load.h"

/*
 * The load of `flyball selftest` on each device: a kernel through CUDA's driver
 * on NVIDIA's GPUs, whatever runs on everything else.
 */
struct selftest_load {
    bool started;                  /* our own load ran on the device */
    char text[FLY_ERROR_TEXT_MAX]; /* why it did not, or why it ended early; "" where neither */
    struct cuda_load load;
};

struct selftest_load_options {
    bool wanted;
    const char *library_path; /* of libcuda, or NULL */
    double duration_max_s;
    const bool *chosen; /* which devices; NULL: all */
};

/* One for each device of the list; `loads` is zeroed. Never fails: what cannot be loaded says why. */
void selftest_loads_start(const struct selftest_load_options *options, const struct device_list *devices,
                          struct selftest_load *loads);

/* Ends those that run. Harmless twice. */
void selftest_loads_stop(const struct device_list *devices, struct selftest_load *loads);

#endif
