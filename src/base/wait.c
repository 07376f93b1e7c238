/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wait.h"

#include <limits.h>
#include <time.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

static struct timespec time_at(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static int64_t left_ns(struct mono_time until)
{
    int64_t left = until.ns - mono_now().ns;

    return left > 0 ? left : 0;
}

/* Rounds up, so that nobody wakes before the moment; -1: for ever. */
static int left_ms(struct mono_time until)
{
    int64_t left;

    if (until.ns == INT64_MAX)
        return -1;
    left = (left_ns(until) + NS_PER_MS - 1) / NS_PER_MS;
    return left < INT_MAX ? (int)left : INT_MAX;
}

void mono_sleep_s(double duration_s)
{
    clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), duration_s));
}

int mono_poll(struct pollfd *polled, nfds_t count, struct mono_time until)
{
    return poll(polled, count, left_ms(until));
}

int mono_epoll(int epoll, struct epoll_event *events, int maximum, struct mono_time until)
{
    return epoll_wait(epoll, events, maximum, left_ms(until));
}

int mono_signal(const sigset_t *signals, siginfo_t *out_info, struct mono_time until)
{
    struct timespec left = time_at(left_ns(until));

    return sigtimedwait(signals, out_info, &left);
}

void mono_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool mono_wait(pthread_cond_t *condition, pthread_mutex_t *lock, struct mono_time until)
{
    struct timespec at = time_at(until.ns);

    return pthread_cond_timedwait(condition, lock, &at) == 0;
}
