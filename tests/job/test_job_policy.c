/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which policy a recurring job has: the one named, the one decided on for it, or the one set later; and what
 * the policy is told of the job's end, and of a job without a default.
 */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/decision_numbers.h"
#include "job/core/definition.h"
#include "job/core/trial_past.h"

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
    struct fly_job_definition definition = job_fixture_definition("job");

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
    check_fails(define("zeus", &registered, &error), FLY_ECONFLICT, error,
                "policy (\"bayes\", now \"zeus\")");
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

/* A window is for those policies that forget; the policy of a job that has one can still be changed. */
static void test_window(void **state)
{
    static const char *const heeding[] = {"zeus", "zeus-server"}, *const ignoring[] = {"bayes", "auto",
                                                                                       "default", "grid"};
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_registered registered;
    struct fly_error error;

    (void)state;
    definition.window = 5;
    for (size_t i = 0; i < COUNT(ignoring); i++) {
        definition.policy = ignoring[i];
        check_fails(at()->define(fixture.jobs.self, &definition, &registered, &error), FLY_EUSAGE, error,
                    "window: the policy");
    }
    for (size_t i = COUNT(heeding); i-- > 0;) {
        definition.name = i == 0 ? "job" : "served";
        definition.policy = heeding[i];
        check_fine(at()->define(fixture.jobs.self, &definition, &registered, &error), error);
    }
    check_fine(set("bayes", &error), error);
    definition.policy = NULL; /* as on record */
    check_fine(at()->define(fixture.jobs.self, &definition, &registered, &error), error);
}

/* A job with more batch sizes than `bayes` takes. */
static void test_many_batch_sizes(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
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

/* ---- how many recurrences are left ---- */

/* Runs the default so often that another batch size is worth a trial to a job that goes on for long. */
static void run_default(struct job_question *question, int runs)
{
    struct job_registered registered;
    struct fly_error error;

    check_fine(define("default", &registered, &error), error);
    question->tries = 3;
    for (int i = 0; i < runs; i++)
        job_fixture_train(&fixture, question, 3, 1000, 10, 0.95, NULL);
    check_fine(set("bayes", &error), error);
}

static void test_nothing_is_explored_before_the_end(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    run_default(&question, RUNS);
    question.recurrences_left = 1;
    question.submission = "last";
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_BEST_SEEN);
    assert_int_equal(proposal.batch_size, 32);
    assert_int_equal(show().recurrences_left, 0);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    /* A further try of the same recurrence announces no other one. */
    job_fixture_over(&fixture, job_fixture_propose(&fixture, &question).trial, 1, TRIAL_CRASHED);
    assert_int_equal(job_fixture_count(&fixture, "job", "set", 0), 2); /* with that of the policy */
    /* It goes on all the same: then nothing is known. */
    question.recurrences_left = 0;
    question.submission = "";
    assert_int_equal(job_fixture_propose(&fixture, &question).reason, REASON_EXPLORE);
}

static void test_announced_once(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct fly_error error;

    (void)state;
    run_default(&question, RUNS);
    check_fine(
        at()->set(fixture.jobs.self,
                  &(struct job_setting){
                      .job = "job", .pin_limit_w = NAN, .set_recurrences_left = true, .recurrences_left = 3},
                  &error),
        error);
    assert_int_equal(show().recurrences_left, 3);
    question.recurrences_left = 3; /* as is known */
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    assert_int_equal(show().recurrences_left, 2);
    assert_int_equal(job_fixture_count(&fixture, "job", "set", 0), 2);
    question.recurrences_left = 1000;
    job_fixture_reopen(&fixture);
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    assert_int_equal(show().recurrences_left, 999);
    assert_int_equal(job_fixture_count(&fixture, "job", "set", 0), 3);
}

/* ---- without a default ---- */

static void test_no_default(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_setting setting = {
        .job = "job", .pin_limit_w = NAN, .set_control_every = true, .control_every = 5};
    struct job_registered registered;
    struct fly_error error;

    (void)state;
    definition.no_default = true;
    definition.control_every = 10;
    check_fails(at()->define(fixture.jobs.self, &definition, &registered, &error), FLY_EUSAGE, error,
                "control_every");
    definition.control_every = 0;
    definition.objective.max_slowdown = 1.03;
    check_fails(at()->define(fixture.jobs.self, &definition, &registered, &error), FLY_EUSAGE, error,
                "it has no default");
    definition.objective.max_slowdown = INFINITY;
    check_fine(at()->define(fixture.jobs.self, &definition, &registered, &error), error);
    assert_true(show().definition.no_default);
    check_fails(at()->set(fixture.jobs.self, &setting, &error), FLY_EUSAGE, error, "control_every");
    setting.control_every = 0;
    setting.set_objective = true;
    setting.objective = (struct fly_objective){FLY_OBJECTIVE_ENERGY, 0.0, 1.03};
    check_fails(at()->set(fixture.jobs.self, &setting, &error), FLY_EUSAGE, error, "it has no default");
    setting.objective.max_slowdown = INFINITY;
    check_fine(at()->set(fixture.jobs.self, &setting, &error), error);
    definition.no_default = false;
    check_fails(at()->define(fixture.jobs.self, &definition, &registered, &error), FLY_ECONFLICT, error,
                "no_default (true, now none)");
}

/* ---- why ---- */

static struct decision_numbers numbers_of(uint64_t trial)
{
    struct store_query query = {.trial = trial};
    struct trial_past past = trial_past_empty;
    struct decision_numbers numbers;
    struct fly_error error;

    check_fine(at()->read(fixture.jobs.self, "job", &query, trial_past_visit, &past, &error), error);
    decision_numbers_read(past.record.numbers, &numbers);
    trial_past_deinit(&past);
    return numbers;
}

static struct decision_candidate candidate(const struct decision_numbers *numbers, uint32_t size)
{
    struct decision_candidate found = {0};

    for (size_t i = 0; i < numbers->outlook.candidate_count; i++) {
        if (numbers->outlook.candidates[i].batch_size == size)
            found = numbers->outlook.candidates[i];
    }
    return found;
}

static void test_why(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct decision_candidate chosen, best;
    struct decision_numbers numbers;
    struct job_proposal proposal;

    (void)state;
    run_default(&question, RUNS);
    assert_false(numbers_of(1).has_outlook); /* of a policy without a model */
    proposal = job_fixture_propose(&fixture, &question);
    numbers = numbers_of(proposal.trial);
    assert_true(numbers.has_outlook);
    assert_int_equal(numbers.outlook.candidate_count, 5);
    assert_int_equal(numbers.outlook.best_batch_size, 32);
    check_double(numbers.outlook.following_recurrences, 21.0);
    chosen = candidate(&numbers, proposal.batch_size);
    best = candidate(&numbers, 32);
    assert_true(chosen.may_run && chosen.worth_j > 0.0 && chosen.gain_j > 0.0);
    assert_true(chosen.doubt > best.doubt && chosen.failure > best.failure);
    assert_true(chosen.trial_cost_j > best.expected_cost_j &&
                chosen.stop_cost_j > 1.0999 * best.expected_cost_j);
    check_contains(proposal.why, "testing batch size ");
    check_contains(proposal.why, " over the next 21 runs; it is stopped at ");
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    question.submission = "again";
    proposal = job_fixture_propose(&fixture, &question);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.try_number, 1);
    check_contains(proposal.why, "kept batch size 32, the best so far at an expected ");
    check_contains(proposal.why, " %: nothing is tested after a try that failed");
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    question.recurrences_left = 1;
    question.submission = "last";
    proposal = job_fixture_propose(&fixture, &question);
    numbers = numbers_of(proposal.trial);
    check_double(numbers.outlook.following_recurrences, 0.0);
    check_contains(proposal.why, "kept batch size 32, the best so far at an expected ");
    check_contains(proposal.why, ": testing ");
    check_contains(proposal.why, "and no run is expected to follow that could save it");
}

/* Where the data have grown, what is expected is told at their newest size, as what is known. */
static void test_why_grows(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct decision_numbers numbers;
    struct job_proposal proposal;

    (void)state;
    definition.policy = "bayes";
    definition.batch_sizes = &definition.default_batch_size;
    definition.batch_count = 1;
    job_fixture_define(&fixture, &definition);
    for (uint32_t size = 1; size <= 8; size *= 2) {
        struct job_answered answered = {0};

        proposal = job_fixture_propose(&fixture, &question);
        for (uint32_t epoch = 1; epoch <= 3 && answered.answer == JOB_GO_ON; epoch++)
            answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                        .trial = proposal.trial,
                                                                        .attempt = 1,
                                                                        .epoch = epoch,
                                                                        .metric = epoch == 3 ? 0.95 : 0.0,
                                                                        .energy_j = 1000.0 * size * epoch,
                                                                        .time_s = 10.0 * size * epoch,
                                                                        .steps = 1000 * size});
        assert_int_equal(answered.answer, JOB_REACHED);
    }
    proposal = job_fixture_propose(&fixture, &question);
    numbers = numbers_of(proposal.trial);
    check_close(candidate(&numbers, proposal.batch_size).expected_cost_j, numbers.known[0].mean_cost_j, 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_nobody_named_one),
        job_test(test_named_and_kept),
        job_test(test_window),
        job_test(test_many_batch_sizes),
        job_test(test_set),
        job_test(test_set_learns_from_the_past),
        job_test(test_nothing_is_explored_before_the_end),
        job_test(test_announced_once),
        job_test(test_no_default),
        job_test(test_why),
        job_test(test_why_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
