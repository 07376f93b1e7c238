/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_GROUP_H
#define FLYBALL_STORE_POSTGRES_GROUP_H

#include "store/postgres_link.h"
#include "store/store_backend.h"

/*
 * Changes that share a transaction on a server (store_group_begin). One question locks all jobs
 * together. Events are kept here until the end, and another question writes and commits them. So
 * a change costs the server a row but no round trip. The group's own reads see what is kept here.
 * The group does not wait for a job that another has locked.
 *
 * A statement that fails aborts the transaction, and so the group; ending the group returns the
 * error.
 */
struct postgres_group;

/* Opens a group; `out_group` is owned. */
int postgres_group_open(struct postgres_link *link, const char *const *jobs, size_t count,
                        struct postgres_group **out_group, struct fly_error *out_error);

/* Writes and commits, or undoes, and frees the group. */
int postgres_group_close(struct postgres_link *link, struct postgres_group *group,
                         struct fly_error *out_error);

/* In a forked child: frees the group's memory. Accepts NULL. */
void postgres_group_abandon(struct postgres_group *group);

/* Like the functions of that name in struct store_backend, but within the group. */
int postgres_group_begin(struct postgres_link *link, struct postgres_group *group,
                         struct store_change *change, struct fly_error *out_error);
int postgres_group_append(struct postgres_group *group, const struct store_change *change,
                          const struct store_event *event, struct fly_error *out_error);
void postgres_group_commit(struct postgres_group *group, const struct store_change *change);
void postgres_group_rollback(struct postgres_group *group);

/* Returns the highest number of those of the job's events that are already on the server. */
uint64_t postgres_group_written(const struct postgres_group *group, const struct store_change *change);

/*
 * Visits those events of the change's job that are not on the server; `rows` says how many may
 * still be visited.
 */
int postgres_group_visit(const struct postgres_group *group, const struct store_change *change,
                         const struct store_query *query, uint64_t rows, store_visit *visit, void *visitor,
                         struct fly_error *out_error);

/* Marks the group as failed, because a statement failed or cannot be undone alone: it can only be undone. */
void postgres_group_break(struct postgres_group *group);

#endif
