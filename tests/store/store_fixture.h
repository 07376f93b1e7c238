/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_STORE_STORE_FIXTURE_H
#define FLYBALL_TESTS_STORE_STORE_FIXTURE_H

#include "test.h"

#include "store/store.h"

/*
 * A store to test: a file in its own directory, or the store that the variable FLYBALL_TEST_STORE names, so
 * that the same tests run over every back end. Names of jobs differ from those of other runs. Any failure
 * fails the test.
 */
enum { KEPT_MAX = 8192, KEPT_TEXT_MAX = 120 };

/* cmocka's group set-up and tear-down. */
int store_fixture_begin(void **state);
int store_fixture_end(void **state);

const char *store_fixture_address(void);
bool store_fixture_is_file(void);

/* The name of a job for this test run; valid for 16 further calls. */
const char *store_fixture_job(const char *name);

struct store *store_fixture_open(void);
struct store *store_fixture_open_with(const struct store_options *options);

/* Begins a change of a job; makes the job if it is missing. */
struct store_change *store_fixture_change(struct store *store, const char *job);

/* Appends within a change; returns the event's number. */
uint64_t store_fixture_append(struct store_change *change, const char *kind, uint64_t trial, const char *key,
                              const char *body);

/* Makes a change with one event. */
uint64_t store_fixture_add(struct store *store, const char *job, uint64_t trial, const char *key);

/* Copies of events; the visitor's state is a struct kept. */
struct kept_event {
    uint64_t number, trial;
    int64_t time_us;
    size_t body_bytes;
    char kind[KEPT_TEXT_MAX], key[KEPT_TEXT_MAX], body[KEPT_TEXT_MAX];
};
struct kept {
    size_t count;
    size_t stop_after; /* 0: never */
    int stop_code;
    struct kept_event events[KEPT_MAX];
};
int store_fixture_keep(void *state, const struct store_event *event, struct fly_error *out_error);

/* Reads, without a lock, all that the query finds, into an emptied struct. */
void store_fixture_read(struct store *store, const char *job, const struct store_query *query,
                        struct kept *kept);

/* How many events a job has; 0 when there is no such job. */
uint64_t store_fixture_count(struct store *store, const char *job);

/* Fails the test, and prints the error text, unless the code is 0. */
#define check_done(code, error) check_done_at(code, error, __FILE__, __LINE__)
void check_done_at(int code, const struct fly_error *error, const char *file, int line);

/* Fails unless both codes are equal and the text contains `part` (NULL: any). */
#define check_refused(code, expected, error, part) \
    check_refused_at(code, expected, error, part, __FILE__, __LINE__)
void check_refused_at(int code, int expected, const struct fly_error *error, const char *part,
                      const char *file, int line);

#endif
