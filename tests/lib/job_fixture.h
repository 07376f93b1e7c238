/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_JOB_FIXTURE_H
#define FLYBALL_TESTS_LIB_JOB_FIXTURE_H

/*
 * Jobs in their own store (a file, or the one that FLYBALL_TEST_STORE names), in virtual time, and calls on
 * them that must succeed. With FLYBALL_TEST_SERVICE the calls go through a service in front of the store,
 * which runs in this process.
 */
#include "test.h"

#include "base/clock.h"
#include "job/jobs.h"
#include "job/local/job_local.h"
#include "job/past/history.h"

enum { FIXTURE_PATH_MAX = 256, FIXTURE_LIMITS = 3 };

struct job_fixture {
    char directory[FIXTURE_PATH_MAX];
    char path[FIXTURE_PATH_MAX + 16];  /* for jobs_open: the store, or the service */
    char store[FIXTURE_PATH_MAX + 16]; /* the store */
    struct server *server;             /* NULL: none */
    int64_t now_us;                    /* the store's clock */
    struct clock clock;
    struct jobs jobs;
    struct job_options options;
    struct arena arena; /* for what is read of the jobs */
};

extern const double job_fixture_limits_w[FIXTURE_LIMITS]; /* 100, 150, 200 */

void job_fixture_open(struct job_fixture *fixture);
void job_fixture_close(struct job_fixture *fixture);

/* A test with a new fixture, in its file's own variable `fixture`. */
#define job_test(function) \
    cmocka_unit_test_prestate_setup_teardown(function, job_fixture_setup, job_fixture_teardown, &fixture)
int job_fixture_setup(void **state);
int job_fixture_teardown(void **state);

/* Opens another handle on the same store, as a newly started process would. */
void job_fixture_reopen(struct job_fixture *fixture);

/* Batch sizes 8 to 128, default 32, target 0.9 in 20 epochs, cost:0.5, policy zeus. */
struct fly_job_definition job_fixture_definition(const char *name);

/* That job as "job", in a grid, so that it counts grams or money. */
struct fly_job_definition job_fixture_grid_definition(enum fly_objective_kind kind);

/* One GPU of 200 W and 16 GiB. */
struct job_question job_fixture_question(const char *job);

void job_fixture_define(struct job_fixture *fixture, const struct fly_job_definition *definition);

/* Defines that job as "job", with another policy. */
void job_fixture_begin(struct job_fixture *fixture, const char *policy);

struct job_proposal job_fixture_propose(struct job_fixture *fixture, const struct job_question *question);

/* Reports a profile per epoch in which 150 W is the best by cost. */
struct job_choice job_fixture_profile(struct job_fixture *fixture, const char *job, uint64_t trial);
struct job_answered job_fixture_report(struct job_fixture *fixture, const struct job_epoch *epoch);
struct job_ended job_fixture_end(struct job_fixture *fixture, const struct job_end *end);

/* Reports an epoch, and an end, of a trial of "job". Figures are cumulative within the attempt. */
struct job_answered job_fixture_epoch(struct job_fixture *fixture, uint64_t trial, uint32_t attempt,
                                      uint32_t epoch, double energy_j, double time_s, double metric);
struct job_ended job_fixture_over(struct job_fixture *fixture, uint64_t trial, uint32_t attempt,
                                  enum trial_outcome outcome);

/*
 * Proposes, profiles if wanted, and reports `epochs` epochs of `epoch_j` and `epoch_s`, the last one with
 * `metric`, the others with 0. Returns the last answer.
 */
struct job_answered job_fixture_train(struct job_fixture *fixture, const struct job_question *question,
                                      uint32_t epochs, double epoch_j, double epoch_s, double metric,
                                      struct job_proposal *out_proposal);

/* Reads the history of "job" into the arena. */
struct job_history job_fixture_history(struct job_fixture *fixture, struct arena *arena);

/* How many events of a kind a trial (0: any) has. */
size_t job_fixture_count(struct job_fixture *fixture, const char *job, const char *kind, uint64_t trial);

/* How a trial ended. */
enum trial_outcome job_fixture_outcome(struct job_fixture *fixture, const char *job, uint64_t trial);

/* What the back end's function returned, with its error text. */
#define check_fine(call, error)                      \
    do {                                             \
        (error).text[0] = '\0';                      \
        if ((call) < 0)                              \
            fail_msg("%s: %s", #call, (error).text); \
    } while (0)
#define check_fails(call, expected, error, words) \
    do {                                          \
        (error).text[0] = '\0';                   \
        assert_int_equal((call), (expected));     \
        check_contains((error).text, (words));    \
    } while (0)

#endif
