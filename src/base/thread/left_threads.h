/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_LEFT_THREADS_H
#define FLYBALL_BASE_THREAD_LEFT_THREADS_H

#include <stdbool.h>

/*
 * Threads that nobody waits for any more: they are held up by a disk, a server or a driver that
 * does not answer. Whoever gives one up counts it, and the thread says when it has ended
 * after all. A program that still has such a thread ends without its exit handlers, since
 * these would tear down what the thread works with:
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
