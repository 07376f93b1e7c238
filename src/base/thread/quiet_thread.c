/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/quiet_thread.h"

#include <signal.h>

bool quiet_thread_start(pthread_t *out_thread, void *(*run)(void *), void *state)
{
    sigset_t all, before;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(out_thread, NULL, run, state) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
