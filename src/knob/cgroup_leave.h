/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_CGROUP_LEAVE_H
#define FLYBALL_KNOB_CGROUP_LEAVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Takes this process out of the control groups of the job that started it. Then it survives for a
 * second when the whole group is killed (a service's stop, a scheduler's end of a job, the kernel
 * out of memory, cgroup.kill).
 *
 * In each hierarchy (cgroup v2, and each of v1) it goes up as far as it may: root to the
 * hierarchy's top, a user to the top of the part that was delegated to him, as systemd does for a
 * user's services. Groups that have groups below may hold no process; there it goes into a group
 * "flyball-guard", which it makes and leaves for the next one. It stays where it is if it may not
 * leave, as in a login session, in a container or in a scheduler's job without root. Inside a
 * container the top is the container's top.
 *
 * `proc_root` is "/proc"; tests replace it. Returns in how many hierarchies the process went up.
 * Nothing here fails.
 */
size_t cgroup_leave(const char *proc_root);

#define CGROUP_LEAVE_GROUP "flyball-guard"

/* Where a process is in one hierarchy. */
struct cgroup_place {
    const char *point;    /* its mount point; part of the line */
    char below[PATH_MAX]; /* the group's path below the mount point: "" is the top, else "/a/b" */
};

/*
 * Finds the place from a line of /proc/self/mountinfo, which it cuts into words, and the text of
 * /proc/self/cgroup. Returns false if the line is no hierarchy, or if the group is not below what
 * is mounted.
 */
bool cgroup_find(char *mount_line, const char *groups, struct cgroup_place *out_place);

#endif
