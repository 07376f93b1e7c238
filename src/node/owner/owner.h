/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_OWNER_OWNER_H
#define FLYBALL_NODE_OWNER_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

/*
 * Who a process is: its user, control group, container, pod, and Slurm job.
 *
 *     struct owners *owners;
 *     struct owner owner;
 *
 *     owners_new(NULL, &owners, out_error);
 *     owners_look(owners, pid, &owner);
 *     if (owner.sight == OWNER_SEEN)
 *         owners_name(owners, &owner);
 *     owners_free(owners);
 *
 * owners_look reads what the kernel says and waits for nothing else. owners_name adds what may take
 * its time: the user's name (a directory service), the pod's name (a disk), and the words of the process
 * about itself, which wait if the process is stuck while it changes its memory. A thread that
 * must go on calls the first only.
 *
 * Where each member comes from, and whose word it is:
 *
 *     start_ticks, command          /proc/PID/stat      the kernel's; a process chooses its command's text
 *     uid                           /proc/PID/status    the kernel's: the real user, as the daemon's user
 *                                                       namespace numbers it, also for root of a container
 *     cgroup, runtime, container_id,
 *     pod_uid, slurm_job            /proc/PID/cgroup    that of whoever made the groups: root; see
 *                                                       owner_cgroup.h for where users may make some
 *     slurm_job, if not there       /proc/PID/environ   the process's own: slurm_claimed
 *     training_job                  /proc/PID/environ   the process's own: FLYBALL_JOB_NAME, which `flyball
 *                                                       run --job` sets for all that it starts
 *     pod, pod_namespace, container /var/log/pods, /var/log/containers   the kubelet's
 *
 * So all of it labels, and none of it proves a right. Texts hold nothing that may not be shown
 * (harmless.h), and "" where they are unknown. Nothing is guessed: outside the machine's own pid namespace
 * a driver's pid means nothing, and every process is OWNER_NOT_VISIBLE.
 */
enum {
    OWNER_USER_MAX = 64,
    OWNER_COMMAND_MAX = 32,
    OWNER_CGROUP_MAX = 512,
    OWNER_CONTAINER_ID_MAX = 65,
    OWNER_SLURM_MAX = 24,
    OWNER_UID_MAX = 40, /* of a pod */
    OWNER_POD_MAX = 254,
    OWNER_LABEL_MAX = 64, /* a name of a namespace or a container */
    OWNER_JOB_MAX = 101,
};

/*
 * What runs the process: the innermost that is known. Where it is a container's runtime, pod_uid and
 * slurm_job say what is around the container.
 *
 *     X(name, word)
 */
#define OWNER_RUNTIME_MAP(X)                                                                        \
    X(NONE, "none")                                                                                 \
    X(SYSTEMD, "systemd")       /* a service, or a scope such as a login */                         \
    X(SLURM, "slurm")           /* a job's step, outside any container */                           \
    X(KUBERNETES, "kubernetes") /* a pod whose group does not say which runtime made it */          \
    X(CONTAINER, "container")   /* an id of a container in a group that does not say whose it is */ \
    X(DOCKER, "docker")                                                                             \
    X(CONTAINERD, "containerd")                                                                     \
    X(CRIO, "crio")                                                                                 \
    X(PODMAN, "podman")

#define OWNER_RUNTIME_ENUM(name, word) OWNER_RUNTIME_##name,
enum owner_runtime { OWNER_RUNTIME_MAP(OWNER_RUNTIME_ENUM) OWNER_RUNTIME_COUNT };
#undef OWNER_RUNTIME_ENUM

enum owner_sight {
    OWNER_NOT_VISIBLE, /* the daemon does not see the machine's processes: only the pid is known */
    OWNER_GONE,        /* it ended before, or while, it was looked at: what is known is filled in */
    OWNER_SEEN,
    OWNER_SIGHT_COUNT
};

struct owner {
    pid_t pid;
    enum owner_sight sight;
    bool uid_known;
    bool cgroup_known;  /* false also where the group lies outside the daemon's cgroup namespace */
    bool slurm_claimed; /* slurm_job and slurm_step are the word of the process, or of its container */
    enum owner_runtime runtime;
    uid_t uid;
    uint64_t start_ticks; /* since the boot; 0: unknown. Identifies the process together with its pid */
    char user[OWNER_USER_MAX];
    char command[OWNER_COMMAND_MAX];
    char cgroup[OWNER_CGROUP_MAX];             /* the path that says most; a longer one begins with "..." */
    char container_id[OWNER_CONTAINER_ID_MAX]; /* of the innermost container */
    char slurm_job[OWNER_SLURM_MAX];
    char slurm_step[OWNER_SLURM_MAX]; /* "0", "batch", "extern", "interactive" */
    char pod_uid[OWNER_UID_MAX]; /* of the outermost pod; of a static pod, the hash of its configuration */
    char pod_container_id[OWNER_CONTAINER_ID_MAX]; /* of that pod's container; others may lie within it */
    char pod[OWNER_POD_MAX];
    char pod_namespace[OWNER_LABEL_MAX];
    char container[OWNER_LABEL_MAX]; /* the pod's name for its container */
    char training_job[OWNER_JOB_MAX];
};

/* Returns the word for machine output, as in the table. */
const char *owner_runtime_word(enum owner_runtime runtime);

/*
 * Returns whether this process lives in the machine's first pid namespace, and so sees all processes under
 * the numbers that drivers use.
 */
bool owner_sees_all(void);

/*
 * Looks up processes. `root` holds proc and var/log in place of the machine's; it is for tests, and
 * where it is given, what is in it counts as visible. NULL: the machine's own. For one thread at a time.
 * FLY_ENOMEM.
 */
struct owners;
int owners_new(const char *root, struct owners **out_owners, struct fly_error *out_error);
void owners_free(struct owners *owners); /* accepts NULL */

/*
 * Fills in what the kernel says. The start time is read before and after the rest, so that the rest
 * is that of one process. Reads a bounded number of bytes, and never waits for a file.
 */
void owners_look(struct owners *owners, pid_t pid, struct owner *out_owner);

/*
 * Adds names and what the process says of itself, to an owner from owners_look. May wait; see above. Keeps
 * the names of pods that it has found, and looks for one that it has not found at most once a second.
 */
void owners_name(struct owners *owners, struct owner *owner);

#endif
