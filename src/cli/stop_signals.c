/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop_signals.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };
static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

void stop_signals_hold(struct stop_signals *stop)
{
    stop->stopped = false;
    sigemptyset(&stop->held);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;

        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&stop->held, numbers[i]);
    }
    pthread_sigmask(SIG_BLOCK, &stop->held, &stop->before);
}

bool stop_signals_wait(struct stop_signals *stop, struct mono_time when)
{
    while (!stop->stopped) {
        int64_t left_ns = when.ns - mono_now().ns;
        struct timespec left = {0};
        int number;

        if (left_ns > 0)
            left = (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
        number = sigtimedwait(&stop->held, NULL, &left);
        stop->stopped = number > 0;
        if (number < 0 && errno == EAGAIN && left_ns <= 0)
            break;
    }
    return stop->stopped;
}

void stop_signals_release(struct stop_signals *stop)
{
    pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
}
