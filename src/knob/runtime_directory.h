/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_RUNTIME_DIRECTORY_H
#define FLYBALL_KNOB_RUNTIME_DIRECTORY_H

#include <stdbool.h>

#include <flyball/error.h>

/*
 * Where locks and journal of a machine's GPUs lie: one directory for all its users,
 * because a GPU's knobs are the same for all of them.
 *
 *     given, or the variable FLYBALL_RUNTIME_DIR     made when it is not there
 *     /run/flyball                                   where root has made it: root does, with mode 1777
 *     /tmp/flyball-knobs                             else, by whoever comes first, with mode 1777
 *
 * Without the right to make /run/flyball nobody can turn a real GPU either, so that the
 * last one serves emulated GPUs and permissions of a site's own; 'install -d -m 1777
 * /run/flyball' as root joins them. Programs in containers share locks only when they
 * share the directory.
 *
 * It has to be local: locks of network file systems reach other machines, or fail
 * when those do. Root does not use one that belongs to another user, who could take away
 * what root writes there. Memory (tmpfs) is fine, for a restart resets the limits as well.
 * FLY_EPERM, FLY_EWRITE, FLY_EUNSUPPORTED for a network file system, with the way out;
 * FLY_ELIMIT for a path that is too long. Thread-safe.
 */
enum { RUNTIME_PATH_MAX = 256 };

#define KNOB_RUNTIME_VARIABLE "FLYBALL_RUNTIME_DIR"

int runtime_directory_find(const char *given, char out_path[RUNTIME_PATH_MAX], struct fly_error *out_error);

/*
 * Whether this process is the machine's root, and may take away what other users put there. Root of a
 * user namespace, as in a container without root, is a user like others.
 */
bool runtime_directory_is_roots(void);

/*
 * Makes room for root's own file where somebody put something else: removes what is there, or
 * gives a directory that is not empty another name. 0 or errno; for others than root a file alone
 * is removed. Nothing there is fine.
 */
int runtime_directory_make_room(const char *path);

/* Where it is, without making it: false where there is none to look into. */
bool runtime_directory_look(const char *given, char out_path[RUNTIME_PATH_MAX]);

#endif
