/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_FORK_CLOSE_H
#define FLYBALL_KNOB_FORK_CLOSE_H

/*
 * Descriptors that a forked child must not keep: otherwise a lock would be held, and a guard
 * would wait, for as long as any worker of the program lives. They are closed in the child, right
 * after fork; exec closes them as well. Thread-safe.
 */

/* Registers a descriptor and returns it. Beyond 512 at a time they are not registered. */
int fork_close_add(int fd);

/* Closes the descriptor and forgets it; -1 is none. */
void fork_close_now(int fd);

#endif
