/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/exit_gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/wait.h"

enum { PATIENCE_MS = 1000 };

static atomic_int inside;
static atomic_bool is_shut;
static pthread_t exiting; /* what `is_shut` publishes */

static void shut(void)
{
    exiting = pthread_self();
    atomic_store(&is_shut, true);
    for (int waited_ms = 0; atomic_load(&inside) > 0 && waited_ms < PATIENCE_MS; waited_ms++)
        mono_sleep_s(1e-3);
}

static void nobody_is_inside(void)
{
    atomic_store(&inside, 0);
}

static void install(void)
{
    (void)pthread_atfork(NULL, NULL, nobody_is_inside);
    (void)atexit(shut);
}

void exit_gate_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, install);
}

void exit_gate_enter(void)
{
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&is_shut) || pthread_equal(exiting, pthread_self()))
        return;
    atomic_fetch_sub(&inside, 1);
    for (;;)
        pause();
}

void exit_gate_leave(void)
{
    atomic_fetch_sub(&inside, 1);
}
