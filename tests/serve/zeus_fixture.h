/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_SERVE_ZEUS_FIXTURE_H
#define FLYBALL_TESTS_SERVE_ZEUS_FIXTURE_H

/* Requests to the public batch-size server's routes, over jobs in their own store. */
#include "job_fixture.h"

#include <jansson.h>

#include "serve/route_family.h"

struct zeus_fixture {
    struct job_fixture jobs;
    struct serve_answer last; /* the newest answer, with its body */
    struct serve_note note;   /* what it was about */
};

void zeus_fixture_open(struct zeus_fixture *fixture);
void zeus_fixture_close(struct zeus_fixture *fixture);

/* A test with a new fixture, in its file's own variable `fixture`. */
#define zeus_test(function) \
    cmocka_unit_test_prestate_setup_teardown(function, zeus_fixture_setup, zeus_fixture_teardown, &fixture)
int zeus_fixture_setup(void **state);
int zeus_fixture_teardown(void **state);

/* Makes a request with that scope; returns the status. `job_id` (or NULL) goes into the query. */
int zeus_fixture_ask_as(struct zeus_fixture *fixture, enum serve_scope scope, const char *method,
                        const char *path, const char *job_id, const char *body);

/* Makes a request with all rights. */
int zeus_fixture_ask(struct zeus_fixture *fixture, const char *method, const char *path, const char *job_id,
                     const char *body);

/* The same with JSON: takes `body` (or NULL), and returns the answer's body. */
int zeus_fixture_ask_json(struct zeus_fixture *fixture, const char *method, const char *path,
                          const char *job_id, json_t *body, json_t **out_answer);

/*
 * The specification of `job-1`: batch sizes 8 to 128, default 32, target 0.9 in 20 epochs, one V100 of 250 W.
 * The members of `more` (taken, or NULL) are added.
 */
json_t *zeus_fixture_job(json_t *more);

/* Its text with one member replaced by `text`, or without it. The caller frees it. */
char *zeus_fixture_job_text(const char *member, const char *text);

/* Registers it anew. */
void zeus_fixture_register(struct zeus_fixture *fixture, json_t *more);

/* What a client was told to run. */
struct zeus_given {
    uint32_t batch_size;
    uint64_t trial;
};
struct zeus_given zeus_fixture_predict(struct zeus_fixture *fixture, const char *job_id);

/* What the client reports of `job-1`, at 100 W and 1 W more for each sample of the batch. */
json_t *zeus_fixture_report_json(struct zeus_given given, int epoch, double energy_j, double metric);

/*
 * Makes that report, which must succeed; returns whether the client must stop. `out_converged` may be NULL.
 */
bool zeus_fixture_report(struct zeus_fixture *fixture, struct zeus_given given, int epoch, double energy_j,
                         double metric, bool *out_converged);

/* Runs one training of `job-1` that reaches its target in one epoch; returns what it ran. */
struct zeus_given zeus_fixture_train(struct zeus_fixture *fixture, double energy_j);

/* Tells the server that the client exits; returns the status. */
int zeus_fixture_leave(struct zeus_fixture *fixture, struct zeus_given given);

#endif
