/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_QUIET_THREAD_H
#define FLYBALL_BASE_THREAD_QUIET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread that blocks all signals, since signals are for the program's own threads: their
 * handlers may not expect another thread. Returns false if the system cannot start a thread.
 */
bool quiet_thread_start(pthread_t *out_thread, void *(*run)(void *), void *state);

#endif
