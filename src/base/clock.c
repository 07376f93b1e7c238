/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

struct mono_time mono_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct mono_time){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
}

double mono_elapsed_s(struct mono_time start, struct mono_time end)
{
    return (double)(end.ns - start.ns) / 1e9;
}
