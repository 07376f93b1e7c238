/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_STOP_SIGNALS_H
#define FLYBALL_CLI_PROGRAM_STOP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "base/clock.h"

/*
 * Takes Ctrl-C and similar signals as an ordinary event, for commands that run until they are
 * told to stop and must finish something then.
 *
 *     stop_signals_hold(&stop);
 *     while (!stop_signals_wait(&stop, next))
 *         ...
 *     stop_signals_release(&stop);
 *
 * SIGINT, SIGTERM and SIGHUP are blocked and waited for. Signals that the program was started to
 * ignore (as nohup does) stay ignored. For one thread; threads that are started in between block
 * them as well.
 */
struct stop_signals {
    sigset_t held, before;
    bool stopped;  /* one has come */
    bool reloads;  /* SIGHUP does not stop */
    bool reloaded; /* it has come since the last stop_signals_take_reload */
};

void stop_signals_hold(struct stop_signals *stop);

/*
 * Does the same for a program that goes on at SIGHUP and reads its files again. The program asks
 * with stop_signals_take_reload after each wait, which a SIGHUP ends early. SIGHUP works even if
 * the program was started to ignore it, and is ignored once the signals are released.
 */
void stop_signals_hold_for_service(struct stop_signals *stop);
bool stop_signals_take_reload(struct stop_signals *stop);

/* Waits until `when` or until a signal comes. Returns whether one has come, now or earlier. */
bool stop_signals_wait(struct stop_signals *stop, struct mono_time when);

/* Undoes the hold. A signal that came was consumed and is not delivered again. */
void stop_signals_release(struct stop_signals *stop);

#endif
