/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_LOCAL_JOB_GROUP_H
#define FLYBALL_JOB_LOCAL_JOB_GROUP_H

#include "job/core/job_backend.h"
#include "job/local/job_local.h"

/*
 * Lets calls of this process's threads share a commit. Handles to the same store, opened with the same
 * options, belong to one group. With a single handle, each call is a change of its own. With two or more,
 * calls queue in a line, and the first call in the line leads: it takes the writer, one more handle that all
 * of them share, and carries out its own request and those behind it, each as a change of its own within a
 * group of the store (store_group_begin). It brings all of them to the disk at once, and only then releases
 * all callers with their answers. Meanwhile the next calls queue.
 *
 * Bounds: a group takes at most GROUP_CALLS_MAX calls, and no more once it is GROUP_OPEN_US old; then it
 * commits.
 *
 * On a server, where each job has its own lock, there are GROUP_LANES such lines with a writer each, and the
 * calls of one job always queue in the same one. A file has one lock and one line.
 *
 * A call that fails is undone alone. If the shared commit fails, each call of the group is repeated by its
 * own thread, over its own handle and alone. So a change that cannot be written fails with its own error, and
 * its neighbours do not. The same is done with a call for which the group has no room: on a server one of a
 * job that another process holds, and an import.
 *
 * Thread-safe. After a fork the child's handles belong to no group.
 */
enum { GROUP_CALLS_MAX = 64, GROUP_OPEN_US = 5000, GATHER_US = 1000, GROUP_LANES = 4 };

struct job_group;

/* A call, and its result. */
struct local_request {
    const char *job;
    uint64_t trial;                  /* that it is about; 0: the job */
    bool make;                       /* make the job if it is missing */
    const struct job_caller *caller; /* as in struct job_local */
    local_within *within;
    void *call;
    struct local_mark lost; /* by which it is recognized when its commit is unsure */
    bool unsure;            /* it was asked before, and it is not known whether it was written */
    struct job_expiries expired;
    struct fly_error *error; /* never NULL */
};

/* Joins the group of a store; NULL when memory is exhausted. `store_address` as for store_open. */
struct job_group *job_group_join(const char *store_address, const struct store *store,
                                 const struct job_options *options);

/* Leaves the group; the last member closes the writer. Accepts NULL. */
void job_group_leave(struct job_group *group);

#endif
