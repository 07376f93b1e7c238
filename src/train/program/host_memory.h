/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_HOST_MEMORY_H
#define FLYBALL_TRAIN_PROGRAM_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * How many processes the kernel has killed for want of memory in the cgroup of a process:
 * `oom_kill` in memory.events (version 2) or memory.oom_control (version 1). Where its number rises
 * while a program runs, one of its cgroup was killed: of the program's own, or of whatever else
 * shares the cgroup. A status of 137 alone says less, since anybody may send SIGKILL.
 *
 *     struct host_memory memory = {.root = ""};
 *
 *     host_memory_look(&memory, pid);       now and then while it runs: it may change its cgroup
 *     ...
 *     if (host_memory_kills(&memory) > 0)   after its end
 *
 * Reads files alone; what is not there counts nothing.
 */
enum { HOST_MEMORY_PATH_MAX = 4096 };

struct host_memory {
    const char *root; /* before /proc and the mount points, "" for the machine's; borrowed */
    char cgroups[HOST_MEMORY_PATH_MAX]; /* of the process, as the kernel tells them */
    char file[HOST_MEMORY_PATH_MAX];    /* "": none known */
    uint64_t before, newest;            /* in this cgroup */
    uint64_t elsewhere;                 /* in those that it left */
};

void host_memory_look(struct host_memory *memory, pid_t pid);

/* Since the first look, in all cgroups that it was in. */
uint64_t host_memory_kills(struct host_memory *memory);

/*
 * For tests: the file that counts for a process, from the texts of its /proc/PID/cgroup and of
 * /proc/self/mountinfo; false where there is none. Version 2 goes before version 1 where both
 * have a place for it, unless memory is version 1's. Pure.
 */
bool host_memory_find(const char *cgroups, const char *mounts, char out_file[HOST_MEMORY_PATH_MAX]);

#endif
