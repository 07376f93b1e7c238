/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_LOCAL_JOB_GROUP_H
#define FLYBALL_JOB_LOCAL_JOB_GROUP_H

#include "job/core/job_backend.h"
#include "job/local/job_local.h"

/*
 * Calls of this process's threads that share a commit. Handles to the same store, opened with
 * the same options, belong to one group. While there is one handle, its calls are changes of their
 * own. From two on, calls stand in a line, and the first one leads: it takes a writer, one more
 * handle that all of them share, does what it and those behind it ask, each as a change of its
 * own within a group of the store (store_group_begin), brings all of it to the disk at once, and
 * only then lets everyone go with their answers. Meanwhile the next ones stand in line.
 *
 * What is bounded: a group takes at most GROUP_CALLS_MAX calls, and none any more once it is
 * GROUP_OPEN_US old; then it commits.
 *
 * On a server, where jobs have locks of their own, there are GROUP_LANES such lines with a writer
 * each, and the calls of one job always stand in the same one. A file has one lock, and one line.
 *
 * A call that fails is undone alone. Where the shared commit fails, each call of the group is
 * done once more by its own thread, over its own handle and alone, so that what
 * cannot be written fails with its own error, and its neighbours do not. So is a call for
 * which the group has no room: of a job that another holds, on a server, and an import.
 *
 * Thread-safe. After fork the child's handles belong to no group.
 */
enum { GROUP_CALLS_MAX = 64, GROUP_OPEN_US = 5000, GATHER_US = 1000, GROUP_LANES = 4 };

struct job_group;

/* What a call is, and what became of it. */
struct local_request {
    const char *job;
    bool make; /* the job, where it is missing */
    local_within *within;
    void *call;
    struct local_mark lost; /* by which it is known again, where its commit is unsure */
    bool unsure;            /* it was asked before, and nobody knows whether it is written */
    struct job_expiries expired;
    struct fly_error *error; /* never NULL */
};

/* Joins the group of a store; NULL where memory is exhausted. `store_address` as of store_open. */
struct job_group *job_group_join(const char *store_address, const struct store *store,
                                 const struct job_options *options);

/* Leaves it; the last one closes the writer. Accepts NULL. */
void job_group_leave(struct job_group *group);

/*
 * Does the call together with others: true once it is done, with its code in `out_code`. False:
 * the caller has to do it alone.
 */
bool job_group_call(struct job_group *group, struct local_request *request, int *out_code);

#endif
