/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_PROC_STAT_H
#define FLYBALL_DEVICE_CPU_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The processor time of a machine since it booted, from the first line of
 * /proc/stat, in ticks summed over its processors:
 *
 *     cpu  user nice system idle iowait irq softirq steal guest guest_nice
 *
 * Guests' time is part of user and nice, so it is not added again. Kernels of
 * before 2.6.11 have fewer fields; what a line lacks counts as 0.
 */
struct proc_stat {
    uint64_t busy_ticks;  /* user, nice, system, irq, softirq */
    uint64_t idle_ticks;  /* idle, iowait */
    uint64_t steal_ticks; /* in which the hypervisor ran somebody else */
};

/* Reads that line; `text` may go on behind it. False for anything else, untouched. Thread-safe. */
bool proc_stat_parse(const char *text, struct proc_stat *out_stat);

/* How many processors the lines "cpu0", "cpu1", ... of the whole text name. */
unsigned proc_stat_processors(const char *text);

#endif
