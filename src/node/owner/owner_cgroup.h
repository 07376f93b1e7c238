/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_OWNER_OWNER_CGROUP_H
#define FLYBALL_NODE_OWNER_OWNER_CGROUP_H

#include "node/owner/owner.h"

/*
 * Reads who made the control groups of a process from the text of /proc/PID/cgroup: of cgroup v1 (a line
 * for each hierarchy), v2 (one line "0::/path"), or both.
 *
 *     owner_cgroup_read(text, &owner);
 *
 * One table in owner_cgroup.c has the forms of paths: those of Slurm's plug-ins for v1 and v2, of the
 * kubelet with either of its drivers, and of docker, containerd (also by nerdctl), CRI-O, podman
 * and systemd. Lines may disagree, since some tools use some hierarchies only; `cgroup` is then
 * the path that says most, and Slurm's job may come from another.
 *
 * Paths within paths: the innermost container is the process's, the outermost pod is the one that the
 * machine's own kubelet made.
 *
 * Who may write what: below a user's own service manager (user@UID.service) that user makes groups, so
 * neither pods nor Slurm's jobs are read there. Within a container, Slurm's job is the container's word
 * (slurm_claimed).
 *
 * A path that leads out of the daemon's cgroup namespace ("/../..") says nothing: cgroup_known stays
 * false. Pure; thread-safe.
 */

/* A line with more bytes is skipped. A path has at most PATH_MAX, and in practice some hundred. */
enum { OWNER_PATH_MAX = 4200 };

/* Sets cgroup_known, cgroup, runtime, container_id, pod_uid, pod_container_id and the members of Slurm. */
void owner_cgroup_read(const char *text, struct owner *owner);

#endif
