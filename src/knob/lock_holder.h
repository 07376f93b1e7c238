/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_LOCK_HOLDER_H
#define FLYBALL_KNOB_LOCK_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Who holds a lock, as the kernel knows it: what a lock's file says of its holder can be
 * written by anybody. For root, who sees the files of all processes.
 */
struct lock_holder {
    pid_t pid;
    uid_t uid; /* the real one: a program that runs as root for a user is that user's */
};

/*
 * Looks through all processes but this one for one that holds flock(2)'s lock on the open file.
 * With several, one of root's is named. False where none is to be seen: it has ended, or is in a
 * container around this one. Thread-safe.
 */
bool lock_holder_find(int lock, struct lock_holder *out_holder);

/* The real user of a process; false where it is gone. */
bool lock_holder_uid(pid_t pid, uid_t *out_uid);

#endif
