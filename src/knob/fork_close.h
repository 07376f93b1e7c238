/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_FORK_CLOSE_H
#define FLYBALL_KNOB_FORK_CLOSE_H

/*
 * Descriptors that a forked child must not keep: a lock would be held, and a guard kept
 * waiting, for as long as some worker of the program lives on. They are closed in the
 * child, right after fork; exec closes them as well. Thread-safe.
 */

/* Takes note of a descriptor; returns it. Beyond 512 at a time they are not noted. */
int fork_close_add(int fd);

/* Closes it and forgets it; -1 is none. */
void fork_close_now(int fd);

#endif
