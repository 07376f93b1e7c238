/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_STOP_SIGNALS_H
#define FLYBALL_CLI_PROGRAM_STOP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "base/clock.h"

/*
 * Ctrl-C and its kin as an ordinary answer, for commands that run until they are
 * told to stop and have something to finish then.
 *
 *     stop_signals_hold(&stop);
 *     while (!stop_signals_wait(&stop, next))
 *         ...
 *     stop_signals_release(&stop);
 *
 * SIGINT, SIGTERM and SIGHUP are held, and waited for; those that the program
 * was started to ignore (as nohup does) stay ignored. For one thread; others
 * started in between hold them as well.
 */
struct stop_signals {
    sigset_t held, before;
    bool stopped;  /* one has come */
    bool reloads;  /* SIGHUP does not stop */
    bool reloaded; /* it has come since it was last asked for */
};

void stop_signals_hold(struct stop_signals *stop);

/*
 * The same for a program that runs on at SIGHUP and reads its files anew: it asks by
 * stop_signals_take_reload, between waits that a SIGHUP ends early. Also where it was started to ignore that
 * signal; it is ignored once the signals are released.
 */
void stop_signals_hold_for_service(struct stop_signals *stop);
bool stop_signals_take_reload(struct stop_signals *stop);

/* Waits until `when`, or until a signal has come, now or earlier; returns whether one has. */
bool stop_signals_wait(struct stop_signals *stop, struct mono_time when);

/* As before the hold. A signal that came was taken: it does not strike again. */
void stop_signals_release(struct stop_signals *stop);

#endif
