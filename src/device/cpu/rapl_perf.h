/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_RAPL_PERF_H
#define FLYBALL_DEVICE_CPU_RAPL_PERF_H

#include <stdint.h>

/*
 * How the back end asks the kernel for events, so that tests can answer where no
 * machine does. Each returns a negative errno for a failure.
 */
struct perf_calls {
    /* An event of all processes on one processor: its descriptor, to be closed with close. */
    int (*open)(uint32_t type, uint64_t config, unsigned cpu);
    int (*read)(int file, uint64_t *out_count);
};

/* For devices opened from now on, and for readings; NULL: the kernel. For tests, on one thread. */
void rapl_perf_set_calls(const struct perf_calls *other);

#endif
