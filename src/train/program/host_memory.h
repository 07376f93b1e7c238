/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_HOST_MEMORY_H
#define FLYBALL_TRAIN_PROGRAM_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Counts how many processes the kernel has killed for lack of memory in a process's cgroup: `oom_kill` in
 * memory.events (version 2) or memory.oom_control (version 1). When this number rises while a program runs, a
 * process in its cgroup was killed: one of the program's own, or another that shares the cgroup. An exit
 * status of 137 alone says less, since anybody may send SIGKILL.
 *
 *     struct host_memory memory = {.root = ""};
 *
 *     host_memory_look(&memory, pid);       now and then while it runs: it may change its cgroup
 *     ...
 *     if (host_memory_kills(&memory) > 0)   after its end
 *
 * It only reads files; a missing file counts nothing.
 */
enum { HOST_MEMORY_PATH_MAX = 4096 };

struct host_memory {
    const char *root; /* prefix of /proc and the mount points, "" for the machine's own; borrowed */
    char cgroups[HOST_MEMORY_PATH_MAX]; /* of the process, in the kernel's text */
    char file[HOST_MEMORY_PATH_MAX];    /* "": none known */
    uint64_t before, newest;            /* kills in this cgroup, at the first look and at the newest */
    uint64_t elsewhere;                 /* kills in the cgroups that the process left */
};

void host_memory_look(struct host_memory *memory, pid_t pid);

/* Returns the kills since the first look, in all cgroups that the process was in. */
uint64_t host_memory_kills(struct host_memory *memory);

/*
 * For tests: finds the file that counts for a process, from the texts of its /proc/PID/cgroup and of
 * /proc/self/mountinfo; false when there is none. When both versions have a place for the process, version 2
 * is used, unless memory belongs to version 1. Pure.
 */
bool host_memory_find(const char *cgroups, const char *mounts, char out_file[HOST_MEMORY_PATH_MAX]);

#endif
