/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_SQLITE_READ_H
#define FLYBALL_STORE_SQLITE_READ_H

#include "store/sqlite_link.h"
#include "store/store_backend.h"

/*
 * Reads from a store in a file. Each function returns 0 or a negative code. Texts passed to a
 * visitor are valid only during that call. `state` is the struct sqlite_link.
 */

/* Like the functions of struct store_backend. */
int sqlite_find_job(void *state, const char *job, store_visit_job *visit, void *visitor,
                    struct fly_error *out_error);
int sqlite_list_jobs(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error);
int sqlite_read_by_name(void *state, const char *job, const struct store_query *query, store_visit *visit,
                        void *visitor, struct fly_error *out_error);
int sqlite_snapshot_by_name(void *state, const char *job, const char *version, uint64_t *out_number,
                            struct buffer *out_bytes, struct fly_error *out_error);

/* Sets the id and the head of the job that `change` names, if there is one. */
int sqlite_identify_job(struct sqlite_link *link, struct store_change *change, bool *out_found,
                        struct fly_error *out_error);

/* Reads the log of the job with that id. */
int sqlite_read_events(struct sqlite_link *link, uint64_t job, const struct store_query *query,
                       store_visit *visit, void *visitor, struct fly_error *out_error);

/* Appends the job's snapshot to `out_bytes`; the number is 0 if there is none. */
int sqlite_get_snapshot(struct sqlite_link *link, uint64_t job, const char *version, uint64_t *out_number,
                        struct buffer *out_bytes, struct fly_error *out_error);

#endif
