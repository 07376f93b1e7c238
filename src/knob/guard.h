/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GUARD_H
#define FLYBALL_KNOB_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "knob/turn.h"

/*
 * The process that turns back when its session ends: normally, by a signal, by exit or
 * by kill -9.
 *
 *     struct guard guard;
 *
 *     guard_start(&options, &guard, out_error);
 *     guard_hold(&guard, uuid, lock, out_error);
 *     guard_tell(&guard, uuid, &turn, out_error);     before the knob is turned
 *     ... turn it ...
 *     guard_forget(&guard, uuid, quantity, out_error);  once it is back
 *     guard_end(&guard);
 *
 * It is the program flyball-guard, spawned and not forked, no child of this process (so that
 * no wait of the program's meets it), in a session of its own, with no terminal and no file of this process
 * but its end of a socket. It opens the driver by itself before it says that it is ready. SIGINT, SIGTERM,
 * SIGHUP and SIGQUIT do not end it. At the end of the socket, or of the process that started it although
 * others have the socket still, it puts back what it was told of, removes the journal's
 * entries, lets go of the locks and exits. What the driver refuses is tried for
 * some seconds, then left to the journal.
 *
 * It leaves the control groups of its session where it may (cgroup_leave.h), since what kills a
 * group kills all in it, and has the kernel spare it when out of memory. Where it may not, and where a whole
 * container or PID namespace is killed, as with a container whose first process is the session, the journal
 * is what is left.
 *
 * For one thread; in a forked child the socket is closed.
 */
struct guard {
    pid_t pid;  /* 0: none */
    int socket; /* -1: none, or the guard has ended */
};

struct guard_options {
    const char *path;        /* of flyball-guard; NULL: found, see guard_private.h */
    const char *nvml_path;   /* or NULL */
    const char *directory;   /* of the journal */
    const struct site *site; /* for the ways by which it turns back */
};

#define GUARD_PROGRAM "flyball-guard"
#define GUARD_VARIABLE "FLYBALL_GUARD" /* its path, where it is neither beside the program nor installed */

/*
 * Returns when it is ready. FLY_ENOTFOUND, FLY_EPERM for the program, FLY_EUNSUPPORTED for
 * a guard that does not come up or not within ten seconds, FLY_ENOMEM.
 */
int guard_start(const struct guard_options *options, struct guard *out_guard, struct fly_error *out_error);

/*
 * Gives the guard a duplicate of a GPU's lock, and returns when it has found that GPU:
 * FLY_EUNSUPPORTED when it has not. This and the next two fail with FLY_ESTATE when the guard
 * has ended, and return 0 without one.
 */
int guard_hold(struct guard *guard, const char *uuid, int lock, struct fly_error *out_error);
int guard_tell(struct guard *guard, const char *uuid, const struct turn *turn, struct fly_error *out_error);
int guard_forget(struct guard *guard, const char *uuid, enum quantity quantity, struct fly_error *out_error);

/* Whether it lives; true without a guard. */
bool guard_lives(const struct guard *guard);

/* Closes the socket and waits for the guard to put back what it still holds, a few seconds at most. */
void guard_end(struct guard *guard);

/* What flyball-guard runs; the exit status. */
int guard_main(int argc, char **argv);

#endif
