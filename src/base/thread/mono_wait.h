/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_THREAD_MONO_WAIT_H
#define FLYBALL_BASE_THREAD_MONO_WAIT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

/*
 * Condition variables for waiting until a moment of the monotonic clock (clock.h), so that a
 * change of the date wakes nobody early or late.
 *
 *     mono_cond_init(&changed);
 *     pthread_mutex_lock(&lock);
 *     while (!done && mono_wait(&changed, &lock, until))
 *         ;
 *     pthread_mutex_unlock(&lock);
 */
void mono_cond_init(pthread_cond_t *condition);

/*
 * Waits until somebody signals or the moment comes; returns false if it has come. Call it with
 * the lock held.
 */
bool mono_wait(pthread_cond_t *condition, pthread_mutex_t *lock, struct mono_time until);

#endif
