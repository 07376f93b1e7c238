/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_PROCESS_STAT_H
#define FLYBALL_BASE_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * What /proc/PID/stat says about a process, as proc(5) documents it. Thread-safe.
 *
 *     struct process_stat stat;
 *
 *     if (process_stat_read(pid, &stat) && !process_stat_is_over(&stat))
 *         ...
 */
enum { PROCESS_NAME_MAX = 32 };

struct process_stat {
    char name[PROCESS_NAME_MAX]; /* of its program, cut to 15 bytes except for those of the kernel */
    pid_t parent;
    char state;               /* 'R', 'S', 'Z' and so on */
    unsigned long long start; /* in ticks since the boot; identifies the process together with its number */
};

/* Reads the text of such a file. Returns false if it is of another form. Pure. */
bool process_stat_parse(const char *text, struct process_stat *out_stat);

/* Returns whether the process exists, even if it has ended and its parent has not yet waited for it. */
bool process_stat_read(pid_t pid, struct process_stat *out_stat);

/* Returns whether the process has ended and its parent has not yet waited for it. */
bool process_stat_is_over(const struct process_stat *stat);

#endif
