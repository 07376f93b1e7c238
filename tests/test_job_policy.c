/* SPDX-License-Identifier: Apache-2.0 */
/* Which policy a recurring job has: the one named, the one decided on for it, or the one set later. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/definition.h"

enum { MANY = 65, RUNS = 6 };

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static struct job_shown show(void)
{
    struct job_shown shown;
    struct fly_error error;

    check_fine(at()->show(fixture.jobs.self, "job", &fixture.arena, &shown, &error), error);
    return shown;
}

/* Registers "job" with that policy; returns the code. */
static int define(const char *policy, struct job_registered *out_registered, struct fly_error *out_error)
{
    struct job_definition definition = job_fixture_definition("job");

    definition.policy = policy;
    return at()->define(fixture.jobs.self, &definition, out_registered, out_error);
}

static int set(const char *policy, struct fly_error *out_error)
{
    return at()->set(fixture.jobs.self,
                     &(struct job_setting){.job = "job", .pin_limit_w = NAN, .policy = policy}, out_error);
}

static void test_nobody_named_one(void **state)
{
    static const char *const unnamed[] = {NULL, "", "auto"};
    struct job_registered registered;
    struct fly_error error;

    (void)state;
    check_fine(define(NULL, &registered, &error), error);
    assert_string_equal(registered.policy, "bayes");
    for (size_t i = 0; i < COUNT(unnamed); i++) {
        check_fine(define(unnamed[i], &registered, &error), error);
        assert_true(registered.known);
        assert_string_equal(registered.policy, "bayes");
    }
    check_fine(define("bayes", &registered, &error), error);
    check_fine(define("zeus", &registered, &error), error); /* as clients of 0.1 do */
    assert_string_equal(registered.policy, "bayes");
    check_fails(define("grid", &registered, &error), FLY_ECONFLICT, error,
                "policy (\"bayes\", now \"grid\")");
    assert_string_equal(show().definition.policy, "bayes");
    assert_true(show().definition.policy_by_auto);
    assert_int_equal(show().definition.auto_policy_version, batch_policy_bayes.version);
}

static void test_named_and_kept(void **state)
{
    struct job_registered registered;
    struct fly_error error;

    (void)state;
    check_fine(define("zeus", &registered, &error), error);
    check_fine(define(NULL, &registered, &error), error);
    assert_string_equal(registered.policy, "zeus");
    check_fails(define("bayes", &registered, &error), FLY_ECONFLICT, error,
                "policy (\"zeus\", now \"bayes\")");
    assert_false(show().definition.policy_by_auto);
}

/* A job with more batch sizes than `bayes` takes. */
static void test_many_batch_sizes(void **state)
{
    struct job_definition definition = job_fixture_definition("job");
    struct job_registered registered;
    struct fly_error error;
    uint32_t sizes[MANY];

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        sizes[i] = (uint32_t)(8 + i);
    definition.batch_sizes = sizes;
    definition.batch_count = MANY;
    definition.policy = "bayes";
    check_fails(at()->define(fixture.jobs.self, &definition, &registered, &error), FLY_EUSAGE, error,
                "at most 64 batch sizes");
    definition.policy = NULL;
    check_fine(at()->define(fixture.jobs.self, &definition, &registered, &error), error);
    assert_string_equal(registered.policy, "zeus");
    check_fails(set("bayes", &error), FLY_EUSAGE, error, "at most 64 batch sizes");
    assert_int_equal(job_fixture_count(&fixture, "job", "set", 0), 0);
}

static void test_set(void **state)
{
    struct job_registered registered;
    struct fly_error error;

    (void)state;
    check_fine(define("zeus", &registered, &error), error);
    check_fails(set("zues", &error), FLY_EUSAGE, error, "did you mean 'zeus'?");
    check_fails(set("fixed", &error), FLY_EUSAGE, error, "pin it");
    check_fine(set("grid", &error), error);
    check_fine(set("auto", &error), error);
    assert_string_equal(show().policy, "bayes");
    assert_string_equal(show().definition.policy, "zeus");
    check_fine(define("zeus", &registered, &error), error);
    check_fine(define("bayes", &registered, &error), error);
    check_fine(define(NULL, &registered, &error), error);
    assert_string_equal(registered.policy, "bayes");
    check_fails(define("grid", &registered, &error), FLY_ECONFLICT, error, "policy (\"zeus\", now \"grid\")");
}

/* The new policy has learnt from all trials, also in a process that folds the log itself. */
static void test_set_learns_from_the_past(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal chosen, again;
    struct fly_error error;

    (void)state;
    job_fixture_begin(&fixture, "default");
    question.tries = 3;
    for (int i = 0; i < RUNS; i++) {
        struct job_proposal ran;

        job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, &ran);
        assert_int_equal(ran.batch_size, 32);
    }
    check_fine(set("bayes", &error), error);
    chosen = job_fixture_propose(&fixture, &question);
    assert_int_not_equal(chosen.batch_size, 32); /* it knows what 32 takes, and looks at another */
    assert_int_equal(chosen.reason, REASON_EXPLORE);
    job_fixture_over(&fixture, chosen.trial, 1, TRIAL_CRASHED);
    job_fixture_reopen(&fixture);
    again = job_fixture_propose(&fixture, &question);
    assert_int_equal(again.batch_size, chosen.batch_size);
    check_fine(set("default", &error), error);
    job_fixture_over(&fixture, again.trial, 1, TRIAL_CRASHED);
    assert_int_equal(job_fixture_propose(&fixture, &question).batch_size, 32);
    assert_string_equal(show().policy, "default");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_nobody_named_one),         job_test(test_named_and_kept),
        job_test(test_many_batch_sizes),         job_test(test_set),
        job_test(test_set_learns_from_the_past),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
