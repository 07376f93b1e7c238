/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_CGROUP_LEAVE_H
#define FLYBALL_KNOB_CGROUP_LEAVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Takes this process out of the control groups of the job that it was started in, so that
 * what kills all of a group (a service's stop, a scheduler's end of a job, the kernel out of
 * memory, cgroup.kill) leaves it alive for a second.
 *
 * In each hierarchy (cgroup v2, and each of v1) it goes as far up as it may: root to the
 * hierarchy's top, a user to the top of the part that was delegated to him, as systemd does with
 * that of a user's services. There, where groups that have groups below hold no process, it goes
 * into a group "flyball-guard" that it makes, and that stays for the next. Who may not leave, as
 * in a login's session, in a container or in a scheduler's job without root, stays. Inside a
 * container the top is the container's.
 *
 * `proc_root` is "/proc"; tests put another in its place. Returns in how many hierarchies it has
 * gone up. Nothing here fails.
 */
size_t cgroup_leave(const char *proc_root);

#define CGROUP_LEAVE_GROUP "flyball-guard"

/* Where a process is in one hierarchy. */
struct cgroup_place {
    const char *point;    /* where it is mounted; in the line */
    char below[PATH_MAX]; /* the group's path below that: "" is the top, else "/a/b" */
};

/*
 * By a line of /proc/self/mountinfo, which is cut into words, and the text of /proc/self/cgroup. False for
 * what is no hierarchy, and where the group is not below what is mounted.
 */
bool cgroup_find(char *mount_line, const char *groups, struct cgroup_place *out_place);

#endif
