/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_RUNTIME_DIRECTORY_H
#define FLYBALL_KNOB_RUNTIME_DIRECTORY_H

#include <stdbool.h>

#include <flyball/error.h>

/*
 * Where locks and journal of a machine's GPUs lie: one directory for all its users, because they
 * all share the GPUs' knobs.
 *
 *     given, or the variable FLYBALL_RUNTIME_DIR     made if it does not exist
 *     /run/flyball                                   if root has made it: root does, with mode 1777
 *     /tmp/flyball-knobs                             else, made by the first who needs it, mode 1777
 *
 * A user without the right to make /run/flyball cannot turn a real GPU either. So the last one
 * serves emulated GPUs, and sites that give users permissions of their own; 'install -d -m 1777
 * /run/flyball' as root gives all of them one directory. Programs in containers share locks only
 * if they share the directory.
 *
 * It must be local: locks of network file systems reach other machines, or fail when those do.
 * Root does not use a directory that belongs to another user, who could remove what root writes
 * there. Memory (tmpfs) is fine, since a restart resets the limits as well. A disk that has not
 * answered in two seconds is FLY_EBUSY, at once until it has. FLY_EPERM, FLY_EWRITE,
 * FLY_EUNSUPPORTED for a network file system, with what to do; FLY_ELIMIT for a path that is too long.
 * Thread-safe.
 */
enum { RUNTIME_PATH_MAX = 256 };

#define KNOB_RUNTIME_VARIABLE "FLYBALL_RUNTIME_DIR"

int runtime_directory_find(const char *given, char out_path[RUNTIME_PATH_MAX], struct fly_error *out_error);

/*
 * Calls a function that uses files there in a thread of its own, and waits for it no longer than that, and
 * not at all until the last call that did not return has. False: it has not returned, and `drop` gets
 * `state`, at once or when it does (see base/thread/thread_group.h). Thread-safe.
 */
bool runtime_directory_call(void (*run)(void *state), void (*drop)(void *state), void *state,
                            double patience_s);

/* Says that of a file or directory there; returns FLY_EBUSY. */
int runtime_directory_silent(const char *path, struct fly_error *out_error);

/*
 * Returns whether this process is the machine's root, and may remove what other users put there.
 * Root of a user namespace, as in a container without root, counts as an ordinary user.
 */
bool runtime_directory_is_roots(void);

/*
 * Makes room for root's own file if somebody put something else there: removes it, or gives a
 * directory that is not empty another name. Returns 0 or errno. For users other than root it
 * removes only a file. If nothing is there, that is fine.
 */
int runtime_directory_make_room(const char *path);

/* Finds the directory without making it; false if it does not exist. */
bool runtime_directory_look(const char *given, char out_path[RUNTIME_PATH_MAX]);

/*
 * "daemon" in that directory, for root alone: the journal of what a daemon turned for processes that hold the
 * GPUs' locks themselves. The first makes it, the second only finds it. FLY_EPERM, FLY_EWRITE, FLY_ELIMIT.
 */
int runtime_directory_of_daemon(const char *directory, char out_path[RUNTIME_PATH_MAX],
                                struct fly_error *out_error);
bool runtime_directory_look_daemon(const char *directory, char out_path[RUNTIME_PATH_MAX]);

#endif
