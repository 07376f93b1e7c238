/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_RAPL_PERF_H
#define FLYBALL_DEVICE_CPU_RAPL_PERF_H

#include <stdint.h>

/*
 * The calls with which the back end asks the kernel for events, so that tests can replace them on
 * any machine. Each returns a negative errno on failure.
 */
struct perf_calls {
    /* Opens an event for all processes on one processor; returns its descriptor, to be closed with close. */
    int (*open)(uint32_t type, uint64_t config, unsigned cpu);
    int (*read)(int file, uint64_t *out_count);
};

/*
 * Replaces the calls for devices opened from now on, and for readings; NULL: the kernel. For
 * tests, on one thread.
 */
void rapl_perf_set_calls(const struct perf_calls *other);

#endif
