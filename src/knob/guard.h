/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GUARD_H
#define FLYBALL_KNOB_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "knob/turn.h"

/*
 * The process that puts knobs back when its session ends: normally, by a signal, by exit or by
 * kill -9.
 *
 *     struct guard guard;
 *
 *     guard_start(&options, &guard, out_error);
 *     guard_hold(&guard, &device->info, lock, out_error);
 *     guard_tell(&guard, uuid, &turn, out_error);     before the knob is turned
 *     ... turn it ...
 *     guard_forget(&guard, uuid, quantity, out_error);  once it is back
 *     guard_end(&guard);
 *
 * It is the program flyball-guard. It is spawned and not forked. It is no child of this process,
 * so that no wait of the program meets it. It runs in a session of its own, with no terminal and
 * no file of this process except its end of a socket. It opens the driver itself, and of its GPUs
 * only those that it holds, so that another GPU which hangs in the driver keeps it from nothing. SIGINT,
 * SIGTERM, SIGHUP and SIGQUIT do not end it. It acts when the socket ends, or when the process that started
 * it ends although others still have the socket: it puts back what it was told of, removes the journal's
 * entries, releases the locks and exits. What the driver refuses it tries again for some seconds, and then
 * leaves to the journal.
 *
 * If it may, it leaves the control groups of its session (cgroup_leave.h), since whatever kills a
 * group kills everything in it, and asks the kernel to spare it when memory runs out. If it may
 * not, and if a whole container or PID namespace is killed, for example a container whose first
 * process is the session, only the journal is left.
 *
 * For one thread; in a forked child the socket is closed.
 */
struct guard {
    pid_t pid;  /* 0: none */
    int socket; /* -1: none, or the guard has ended */
};

struct guard_options {
    const char *path;        /* of flyball-guard; NULL: searched, see guard_private.h */
    const char *nvml_path;   /* or NULL */
    const char *amdsmi_path; /* or NULL */
    const char *directory;   /* of the journal */
    const struct site *site; /* the ways by which it puts back */
};

#define GUARD_PROGRAM "flyball-guard"
/* Its path, if it lies neither beside the program or library nor where it is installed. */
#define GUARD_VARIABLE "FLYBALL_GUARD"

/*
 * Starts the guard and returns when it is ready. FLY_ENOTFOUND, FLY_EPERM for the program,
 * FLY_EUNSUPPORTED if the guard does not start, or not within ten seconds, FLY_ENOMEM.
 */
int guard_start(const struct guard_options *options, struct guard *out_guard, struct fly_error *out_error);

/*
 * Gives the guard a duplicate of a GPU's lock, and returns when the guard has opened that GPU;
 * FLY_EUNSUPPORTED if it has not, or not within ten seconds, and the driver's errors. This and the next two
 * fail with FLY_ESTATE if the guard has ended, and return 0 without one.
 */
int guard_hold(struct guard *guard, const struct device_info *gpu, int lock, struct fly_error *out_error);
int guard_tell(struct guard *guard, const char *uuid, const struct turn *turn, struct fly_error *out_error);
int guard_forget(struct guard *guard, const char *uuid, enum quantity quantity, struct fly_error *out_error);

/* Returns whether the guard is alive; true without a guard. */
bool guard_lives(const struct guard *guard);

/* Closes the socket and waits for the guard to put back what it still holds, a few seconds at most. */
void guard_end(struct guard *guard);

/* The main function of flyball-guard; returns the exit status. */
int guard_main(int argc, char **argv);

#endif
