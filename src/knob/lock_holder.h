/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_LOCK_HOLDER_H
#define FLYBALL_KNOB_LOCK_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Finds who holds a lock according to the kernel, since anybody can write what a lock's file says
 * of its holder. For root, who sees the files of all processes.
 */
struct lock_holder {
    pid_t pid;
    uid_t uid; /* the real user: a program that runs as root for a user belongs to that user */
};

/*
 * Looks through all processes except this one for one that holds flock(2)'s lock on the open
 * file. If there are several, one of root's is named. Returns false if none is visible: it has
 * ended, or is in a container around this one. Thread-safe.
 */
bool lock_holder_find(int lock, struct lock_holder *out_holder);

/* Returns whether that process holds flock(2)'s lock on the open file. Thread-safe. */
bool lock_holder_is(int lock, pid_t pid);

/* Gives the real user of a process; false if the process is gone. */
bool lock_holder_uid(pid_t pid, uid_t *out_uid);

#endif
