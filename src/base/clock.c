/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static int64_t read_ns(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

struct mono_time mono_now(void)
{
    return (struct mono_time){read_ns(CLOCK_MONOTONIC)};
}

double mono_elapsed_s(struct mono_time start, struct mono_time end)
{
    return (double)(end.ns - start.ns) / 1e9;
}

struct mono_time mono_middle(struct mono_time before, struct mono_time after)
{
    return (struct mono_time){before.ns + (after.ns - before.ns) / 2};
}

struct mono_time mono_after_s(struct mono_time start, double duration_s)
{
    return (struct mono_time){start.ns + (int64_t)(duration_s * 1e9)};
}

static struct mono_time real_now(void *state)
{
    (void)state;
    return mono_now();
}

static struct wall_time real_date(void *state)
{
    (void)state;
    return (struct wall_time){read_ns(CLOCK_REALTIME)};
}

static void real_sleep_until(void *state, struct mono_time when)
{
    struct timespec until = {.tv_sec = when.ns / NS_PER_S, .tv_nsec = when.ns % NS_PER_S};

    (void)state;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

const struct clock clock_real = {
    .name = "real", .now = real_now, .date = real_date, .sleep_until = real_sleep_until};
