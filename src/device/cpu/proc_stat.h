/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_PROC_STAT_H
#define FLYBALL_DEVICE_CPU_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The processor time of a machine since it booted, from the first line of /proc/stat, in ticks
 * summed over its processors:
 *
 *     cpu  user nice system idle iowait irq softirq steal guest guest_nice
 *
 * Guests' time is part of user and nice, so it is not added again. Kernels before 2.6.11 have
 * fewer fields; missing fields count as 0.
 */
struct proc_stat {
    uint64_t busy_ticks;  /* user, nice, system, irq, softirq */
    uint64_t idle_ticks;  /* idle, iowait */
    uint64_t steal_ticks; /* while the hypervisor ran other guests */
};

/* Parses that line; `text` may go on after it. False for anything else, then untouched. Thread-safe. */
bool proc_stat_parse(const char *text, struct proc_stat *out_stat);

/* Returns how many processors the lines "cpu0", "cpu1", ... of the whole text name. */
unsigned proc_stat_processors(const char *text);

#endif
