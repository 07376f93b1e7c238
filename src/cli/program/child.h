/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_CHILD_H
#define FLYBALL_CLI_PROGRAM_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/clock.h"

/*
 * Another program, run as a shell would run it, and measured around.
 *
 * The process is made first, while this one has no threads, and waits at a gate
 * until the devices are open:
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
 * It stays in this process's group, so a terminal's Ctrl-C and Ctrl-Z reach it
 * from the terminal, once. Signals that somebody sent to this process alone are
 * passed on; whoever signals the whole group reaches it twice. When it stops at a
 * Ctrl-Z, this process stops too, so that the shell sees its job stopped. Should
 * this process die, the program is started all the same and runs on; so it is when
 * opening the devices takes too long.
 *
 * For one thread, which keeps the signals blocked from `child_fork` on.
 */
struct child {
    pid_t pid;
    int status;     /* as a shell has it: 0 to 255; 126 not executable, 127 not found, 128+n signal n */
    int signal;     /* that ended it, or 0 */
    double early_s; /* by so much the program started before child_start; 0: it did not */
    double patience_s;
    struct mono_time forked;
    int exec_errno;   /* of a program that could not be started, or 0 */
    int gate;         /* to the process; closing it lets it go */
    int outcome;      /* from the process: the error of exec, or the end of file */
    bool stopped;     /* as was last heard of it */
    bool stop_wanted; /* a stop from the terminal came here */
    bool interrupted; /* a Ctrl-C of the terminal did */
    int passed;       /* the last signal passed on that asks a program to end; 0: none */
    bool ended;
    void (*before_stop)(void *state); /* called before this process stops with the program; NULL: nothing */
    void *before_stop_state;          /* borrowed */
    int signals;                      /* readable when one of these is pending; 0: not made yet */
    sigset_t waited;                  /* signals that are waited for */
};

/*
 * Makes the process, which starts the program by itself after `patience_s`.
 * `arguments` ends with NULL and is borrowed until child_start. FLY_ELIMIT,
 * FLY_ENOMEM.
 */
int child_fork(struct child *out_child, char *const *arguments, double patience_s,
               struct fly_error *out_error);

/*
 * Starts the program, with one more variable "NAME=value" in its environment.
 * Returns 0, or -1 when it could not be started: then `status` and
 * `exec_errno` say why, and the process is gone.
 */
int child_start(struct child *child, const char *variable);

/* Waits until the program has ended, and passes signals on to it. */
void child_wait(struct child *child);

/* The same until `when` at the latest; returns whether the program has ended. */
bool child_wait_until(struct child *child, struct mono_time when);

/*
 * The same, and until `fd` (-1: none) can be read; may return early. Beside
 * signals it takes what they bring at once.
 */
bool child_wait_input(struct child *child, int fd, struct mono_time when);

/*
 * Between these two this process may be held up for good, by a driver that does
 * not come back. When that lasts longer than the child's patience, signals are still
 * passed on, and when the program has ended this process ends with its status, after
 * `last_words` on standard error. One guard at a time; `child` is borrowed.
 */
void child_guard_begin(struct child *child, const char *last_words);
void child_guard_end(struct child *child);

/*
 * Ends this process as the program ended when a Ctrl-C of the terminal ended it,
 * as shells do, so that a script around stops too; returns in all other cases.
 */
void child_follow(const struct child *child);

/* Ends the process before it was started. */
void child_abandon(struct child *child);

/* Puts the program in this process's place; returns only on failure, with the status a shell would give. */
int child_replace(char *const *arguments);

#endif
