/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_WAIT_H
#define FLYBALL_BASE_WAIT_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "base/clock.h"

/*
 * Every wait of daemon, service and library with an end is one of these, and ends at a moment of the
 * monotonic clock, so that a change of the date wakes nobody early or late. Code that a virtual clock may
 * drive sleeps by its clock's sleep_until instead (clock.h).
 */
#define MONO_NEVER ((struct mono_time){INT64_MAX})

/* Sleeps for so long, whatever signals come. */
void mono_sleep_s(double duration_s);

/* As poll(2), epoll_wait(2) and sigwaitinfo(2), but until that moment. */
int mono_poll(struct pollfd *polled, nfds_t count, struct mono_time until);
int mono_epoll(int epoll, struct epoll_event *events, int maximum, struct mono_time until);
int mono_signal(const sigset_t *signals, siginfo_t *out_info, struct mono_time until);

/*
 * Condition variables:
 *
 *     mono_cond_init(&changed);
 *     pthread_mutex_lock(&lock);
 *     while (!done && mono_wait(&changed, &lock, until))
 *         ;
 *     pthread_mutex_unlock(&lock);
 *
 * mono_wait returns false if the moment has come. Call it with the lock held.
 */
void mono_cond_init(pthread_cond_t *condition);
bool mono_wait(pthread_cond_t *condition, pthread_mutex_t *lock, struct mono_time until);

#endif
