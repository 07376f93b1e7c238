/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_PROCESS_STAT_H
#define FLYBALL_BASE_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * What /proc/PID/stat says of a process, as proc(5) has it. Thread-safe.
 *
 *     struct process_stat stat;
 *
 *     if (process_stat_read(pid, &stat) && !process_stat_is_over(&stat))
 *         ...
 */
enum { PROCESS_NAME_MAX = 32 };

struct process_stat {
    char name[PROCESS_NAME_MAX]; /* of its program, at most 15 bytes of it unless the kernel made it */
    pid_t parent;
    char state;               /* 'R', 'S', 'Z' and so on */
    unsigned long long start; /* in ticks since the boot; tells it from a later process with its number */
};

/* Whether there is such a process, one that waits for its parent included. */
bool process_stat_read(pid_t pid, struct process_stat *out_stat);

/* Whether it has ended and only its parent does not know yet. */
bool process_stat_is_over(const struct process_stat *stat);

#endif
