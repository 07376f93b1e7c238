/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_CHILD_H
#define FLYBALL_CLI_PROGRAM_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/clock.h"
#include "cli/frame/call.h"

/* What commands that run a program share, besides cli/program/child.h. */

/*
 * Returns the words of a program's command line as exec needs them, ended by NULL, or NULL
 * without memory. The caller owns the list; the words are borrowed.
 */
char **program_words(const struct cli_call *call, size_t count,
                     const char *(*word)(const struct cli_call *call, size_t index));

/* Says by errno why a program cannot be run, as a shell would. `status` is the command's exit status. */
void program_say_not_run(const struct cli_call *call, const char *program, int error, int status);

/* Replaces this process by the program. Returns 0 only if that fails; the call then has the exit status. */
int program_replace(const struct cli_call *call, char *const *words);

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

/*
 * Changes that this program makes to its own process and must undo before another program
 * replaces it: signal dispositions, and standard streams that were closed.
 *
 *     inherited_take();      main, before all else
 *     inherited_restore();   right before exec
 *
 * `inherited_take` fills closed standard streams with stand-ins that fail on use, so that no file
 * opened later gets their numbers. It also makes a file that grows beyond its limit an error,
 * instead of killing the process. Not thread-safe.
 */
void inherited_take(void);
void inherited_restore(void);

/*
 * Another program, run as a shell would run it, with measurements around it.
 *
 * The process is made first, while this one has no threads. It waits at a gate until the devices
 * are open:
 *
 *     struct child child;
 *
 *     if (child_fork(&child, arguments, 30, out_error) < 0)
 *         ...
 *     ... open devices, begin the window ...
 *     if (child_start(&child, "FLYBALL_COUNTED_BY=...") == 0)
 *         child_wait(&child);
 *     ... child.status ...
 *
 * The program stays in this process's group, so a terminal's Ctrl-C and Ctrl-Z reach it from the
 * terminal, once. Signals sent to this process alone are passed on; a signal to the whole group
 * reaches the program twice. When the program stops at a Ctrl-Z, this process stops too, so that
 * the shell sees its job stopped. If this process dies, or takes too long to open the devices,
 * the program is started all the same and runs on.
 *
 * For one thread, which keeps the signals blocked from `child_fork` on.
 */
struct child {
    pid_t pid;
    int status;     /* as a shell reports it: 0 to 255; 126 not executable, 127 not found, 128+n signal n */
    int signal;     /* that ended it, or 0 */
    double early_s; /* how long before child_start the program started by itself; 0: it did not */
    double patience_s;
    struct mono_time forked;
    int exec_errno;   /* of a program that could not be started, or 0 */
    int gate;         /* a pipe to the process; closing it lets the process go on */
    int outcome;      /* a pipe from the process: the error of exec, or the end of file */
    bool stopped;     /* when it was last heard of */
    bool stop_wanted; /* the terminal sent a stop to this process */
    bool interrupted; /* the terminal sent a Ctrl-C to this process */
    int passed;       /* the last signal passed on that asks a program to end; 0: none */
    bool ended;
    void (*before_stop)(void *state); /* called before this process stops with the program; NULL: nothing */
    void *before_stop_state;          /* borrowed */
    int signals;                      /* readable if one of the signals below is pending; 0: not made yet */
    sigset_t waited;                  /* the signals to wait for */
};

/*
 * Makes the process, which starts the program by itself after `patience_s`. `arguments` ends with
 * NULL and is borrowed until child_start. FLY_ELIMIT, FLY_ENOMEM.
 */
int child_fork(struct child *out_child, char *const *arguments, double patience_s,
               struct fly_error *out_error);

/*
 * Starts the program, with one more variable "NAME=value" in its environment. Returns 0, or -1 if
 * it could not be started: then `status` and `exec_errno` say why, and the process is gone.
 */
int child_start(struct child *child, const char *variable);

/* Waits until the program has ended, and passes signals on to it meanwhile. */
void child_wait(struct child *child);

/* Does the same until `when` at the latest. Returns whether the program has ended. */
bool child_wait_until(struct child *child, struct mono_time when);

/*
 * Does the same, and also returns as soon as `fd` (-1: none) can be read; may return early. It
 * always handles signals that are already pending.
 */
bool child_wait_input(struct child *child, int fd, struct mono_time when);

/*
 * Between these two calls a driver that does not return may block this process for good. If that
 * lasts longer than the child's patience, signals are still passed on. When the program has
 * ended, this process then ends with its status, after writing `last_words` to standard error.
 * One guard at a time; `child` is borrowed.
 */
void child_guard_begin(struct child *child, const char *last_words);
void child_guard_end(struct child *child);

/*
 * If a Ctrl-C of the terminal ended the program, ends this process the same way, as shells do, so
 * that a script around it stops too. Otherwise returns.
 */
void child_follow(const struct child *child);

/* Ends the process before its program was started. */
void child_abandon(struct child *child);

/* Replaces this process by the program. Returns only on failure, with the status that a shell would give. */
int child_replace(char *const *arguments);

#endif
