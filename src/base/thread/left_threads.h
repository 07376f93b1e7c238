/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_LEFT_THREADS_H
#define FLYBALL_BASE_THREAD_LEFT_THREADS_H

#include <stdbool.h>

/*
 * Counts threads that nobody waits for any more: they are blocked by a disk, a server or a driver
 * that does not answer. The code that gives up a thread counts it, and the thread reports if it
 * ends after all. A program that still has such a thread ends without its exit handlers, since
 * these would destroy what the thread works with:
 *
 *     if (left_threads_any()) {
 *         fflush(NULL);
 *         _exit(status);
 *     }
 *
 * Thread-safe.
 */
void left_threads_add(void);
void left_threads_remove(void);
bool left_threads_any(void);

#endif
