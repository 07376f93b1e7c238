/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_QUIET_THREAD_H
#define FLYBALL_BASE_THREAD_QUIET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread that blocks all signals: they are for the program's own threads, whose handlers may
 * not expect another. False where the system lets no thread be started.
 */
bool quiet_thread_start(pthread_t *out_thread, void *(*run)(void *), void *state);

#endif
