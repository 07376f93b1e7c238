/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program/stop_signals.h"

#include <errno.h>
#include <stddef.h>

#include "base/wait.h"

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

void stop_signals_hold(struct stop_signals *stop)
{
    stop->stopped = stop->reloads = stop->reloaded = false;
    sigemptyset(&stop->held);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;

        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&stop->held, numbers[i]);
    }
    pthread_sigmask(SIG_BLOCK, &stop->held, &stop->before);
}

void stop_signals_hold_for_service(struct stop_signals *stop)
{
    stop_signals_hold(stop);
    stop->reloads = true;
    sigaddset(&stop->held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stop->held, NULL);
    signal(SIGHUP, SIG_DFL); /* an ignored signal does not become pending */
}

bool stop_signals_take_reload(struct stop_signals *stop)
{
    bool reloaded = stop->reloaded;

    stop->reloaded = false;
    return reloaded;
}

bool stop_signals_wait(struct stop_signals *stop, struct mono_time when)
{
    while (!stop->stopped) {
        int number = mono_signal(&stop->held, NULL, when);

        if (number == SIGHUP && stop->reloads) {
            stop->reloaded = true;
            break;
        }
        stop->stopped = number > 0;
        if (number < 0 && errno == EAGAIN && mono_now().ns >= when.ns)
            break;
    }
    return stop->stopped;
}

void stop_signals_release(struct stop_signals *stop)
{
    if (stop->reloads)
        signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
}
