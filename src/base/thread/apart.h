/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_APART_H
#define FLYBALL_BASE_THREAD_APART_H

#include <stdbool.h>

/*
 * Calls a function that may wait for ever, such as one that opens a file, in a thread of its own, and waits
 * for it no longer than that.
 *
 *     if (!apart_run(read_it, drop_it, reading, 2.0))
 *         return "the disk does not answer";        `reading` is the thread's now
 *
 * False: the call had not returned. Its thread is left behind (left_threads.h); it has `state`, and calls
 * `drop` on it when the call returns after all. Where no thread can be started, the caller makes the call
 * itself. Thread-safe.
 */
bool apart_run(void (*run)(void *state), void (*drop)(void *state), void *state, double patience_s);

#endif
