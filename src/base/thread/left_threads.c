/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/left_threads.h"

#include <stdatomic.h>

static atomic_int left;

void left_threads_add(void)
{
    atomic_fetch_add(&left, 1);
}

void left_threads_remove(void)
{
    atomic_fetch_sub(&left, 1);
}

bool left_threads_any(void)
{
    return atomic_load(&left) > 0;
}
