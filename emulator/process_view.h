/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_PROCESS_VIEW_H
#define FLYBALL_EMULATOR_PROCESS_VIEW_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Processes across pid namespaces. A process knows the pid that it has in its own namespace; a driver tells
 * each caller the pid that the process has in the caller's, and does not list one that has none there. Here
 * that is found out from /proc, if the process is in another namespace.
 */
struct emulator_owner {
    pid_t pid;          /* in its own namespace; 0: nobody */
    uint64_t pid_space; /* what distinguishes that from others; 0: unknown */
};

/* The calling process. */
struct emulator_owner process_self(void);

/* The pid by which the calling process sees that one; 0 for one that it does not see. */
pid_t process_view(const struct emulator_owner *owner);

#endif
