/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_GROUP_H
#define FLYBALL_STORE_POSTGRES_GROUP_H

#include "store/postgres_link.h"
#include "store/store_backend.h"

/*
 * Changes that share a transaction on a server (store_group_begin). Jobs are locked together
 * by one question, events are kept here until the end, and written and committed by another, so that
 * a change costs the server a row and no round trip. What is kept here is seen by the
 * group's own reads. A job that another has locked is not waited for.
 *
 * A statement that fails aborts the transaction, and so the group: its end says so.
 */
struct postgres_group;

/* `out_group` is owned. */
int postgres_group_open(struct postgres_link *link, const char *const *jobs, size_t count,
                        struct postgres_group **out_group, struct fly_error *out_error);

/* Writes and commits, or undoes, and frees the group. */
int postgres_group_close(struct postgres_link *link, struct postgres_group *group,
                         struct fly_error *out_error);

/* In a forked child: frees its memory. Accepts NULL. */
void postgres_group_abandon(struct postgres_group *group);

/* As the functions of that name of struct store_backend, within the group. */
int postgres_group_begin(struct postgres_link *link, struct postgres_group *group,
                         struct store_change *change, struct fly_error *out_error);
int postgres_group_append(struct postgres_group *group, const struct store_change *change,
                          const struct store_event *event, struct fly_error *out_error);
void postgres_group_commit(struct postgres_group *group, const struct store_change *change);
void postgres_group_rollback(struct postgres_group *group);

/* The job's events that are on the server have numbers up to this one. */
uint64_t postgres_group_written(const struct postgres_group *group, const struct store_change *change);

/* Visits those of the change's job that are not; `rows` are left to be visited. */
int postgres_group_visit(const struct postgres_group *group, const struct store_change *change,
                         const struct store_query *query, uint64_t rows, store_visit *visit, void *visitor,
                         struct fly_error *out_error);

/* A statement has failed, or cannot be undone alone: the group can only be undone. */
void postgres_group_break(struct postgres_group *group);

#endif
