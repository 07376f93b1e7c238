/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_READ_H
#define FLYBALL_STORE_POSTGRES_READ_H

#include "store/postgres_link.h"
#include "store/store_backend.h"

/*
 * Reads a store on a server. Each function returns 0 or a negative code. Texts passed to a
 * visitor are valid only during that call. `state` is the struct postgres_link.
 */

/* Like the functions of struct store_backend outside of a change: a broken connection is made again. */
int postgres_find_job(void *state, const char *job, store_visit_job *visit, void *visitor,
                      struct fly_error *out_error);
int postgres_list_jobs(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error);
int postgres_read_by_name(void *state, const char *job, const struct store_query *query, store_visit *visit,
                          void *visitor, struct fly_error *out_error);
int postgres_snapshot_by_name(void *state, const char *job, const char *version, uint64_t *out_number,
                              struct buffer *out_bytes, struct fly_error *out_error);

/* The function to ask with: postgres_link_ask within a change, postgres_link_ask_anew outside of one. */
typedef int postgres_ask(struct postgres_link *link, const struct postgres_question *question,
                         const char *doing, struct pg_result **out_result, struct fly_error *out_error);

/*
 * Reads the log of the job with that id page by page, so that a long log needs little memory.
 * Logs only grow, so the pages fit together.
 */
int postgres_read_events(struct postgres_link *link, postgres_ask *ask_page, uint64_t job,
                         const struct store_query *query, store_visit *visit, void *visitor,
                         struct fly_error *out_error);

/* Appends the job's snapshot to `out_bytes`; the number is 0 if there is none. */
int postgres_get_snapshot(struct postgres_link *link, postgres_ask *ask_it, uint64_t job, const char *version,
                          uint64_t *out_number, struct buffer *out_bytes, struct fly_error *out_error);

#endif
