/* SPDX-License-Identifier: Apache-2.0 */
/* What a job saves by its log, and what trials count for whose energy is not known. */
#include "job_fixture.h"

#include <math.h>

#include "job/past/savings.h"

static struct job_fixture fixture;

static void test_savings(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_savings savings;
    struct job_history read;
    struct fly_error error;

    (void)state;
    definition.target = FLY_TARGET_NONE;
    definition.control_every = 3;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 30; i++) {
        double energy_j = i % 3 == 0 ? 1003 - i % 4 : 800 + i % 5;

        if (i == 6) {
            read = job_fixture_history(&fixture, &fixture.arena);
            check_fine(job_savings_of(&read, 0, &savings, &error), error);
            assert_false(savings.known);
            assert_true(isnan(savings.energy.value) && isnan(savings.exploration_j));
            assert_int_equal(savings.baseline.runs, 2);
        }
        job_fixture_train(&fixture, &question, 20, energy_j, i % 3 == 0 ? 10 : 10.3, 0.9, NULL);
    }
    read = job_fixture_history(&fixture, &fixture.arena);
    check_fine(job_savings_of(&read, 0, &savings, &error), error);
    assert_true(savings.known);
    assert_int_equal(savings.baseline.runs, 10);
    assert_int_equal(savings.searching, 1);
    assert_int_equal(savings.tuned.runs, 19);
    check_close(savings.energy.value, 0.2, 0.01);
    assert_true(savings.energy.low > 0.19 && savings.energy.high < 0.21);
    check_close(savings.time.value, -0.03, 1e-6);
    assert_true(savings.balance.paid_off);
    assert_int_equal(savings.balance.paid_off_at, 1);
    check_double(savings.tuned.mean_metric, 0.9);
    assert_true(savings.baseline.newest_unix_s > 0 &&
                savings.baseline.newest_unix_s < savings.tuned.newest_unix_s);
    check_fine(job_savings_of(&read, 7, &savings, &error), error); /* no such machine: nothing known */
    assert_false(savings.known);
}

static void train_more(const struct job_question *question, int count, double tuned_j, double scale)
{
    for (int i = 0; i < count; i++)
        job_fixture_train(&fixture, question, 20, scale * (i % 3 == 0 ? 1003 - i % 4 : tuned_j + i % 5),
                          i % 3 == 0 ? 10 : 10.3, 0.9, NULL);
}

/* Runs that were chosen for something else say nothing of what is wanted now. */
static void test_savings_anew(void **state)
{
    static const struct {
        struct job_setting setting;
        bool change;
    } settings[] = {
        {{.job = "job", .set_control_every = true, .control_every = 3}, false},
        {{.job = "job", .set_objective = true, .objective = {FLY_OBJECTIVE_COST, 0.5, INFINITY}}, false},
        {{.job = "job", .set_pin = true, .pin_batch_size = 0, .pin_limit_w = NAN}, false},
        {{.job = "job", .set_objective = true, .objective = {FLY_OBJECTIVE_COST, 0.5, 1.2}}, true},
        {{.job = "job", .set_pin = true, .pin_batch_size = 32, .pin_limit_w = 100}, true},
        {{.job = "job", .set_pin = true, .pin_batch_size = 32, .pin_limit_w = 100}, false},
        {{.job = "job", .set_pin = true, .pin_batch_size = 32, .pin_limit_w = NAN}, true},
        {{.job = "job", .set_pin = true, .pin_batch_size = 32, .pin_limit_w = NAN}, false},
    };
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_savings savings;
    struct job_history read;
    struct fly_error error;

    (void)state;
    definition.target = FLY_TARGET_NONE;
    definition.control_every = 3;
    job_fixture_define(&fixture, &definition);
    train_more(&question, 30, 800, 1.0);
    for (size_t i = 0; i < COUNT(settings); i++) {
        int64_t before_us = fixture.now_us += 1000000;

        check_fine(fixture.jobs.backend->set(fixture.jobs.self, &settings[i].setting, &error), error);
        read = job_fixture_history(&fixture, &fixture.arena);
        assert_int_equal(read.wanted_us == before_us, settings[i].change);
        check_fine(job_savings_of(&read, 0, &savings, &error), error);
        assert_int_equal(savings.known, i < 3);
        assert_int_equal(savings.outdated, i < 3 ? 0 : 19);
    }
    assert_int_equal(savings.baseline.runs, 10);
    assert_int_equal(savings.tuned.runs, 0);
    check_fine(fixture.jobs.backend->set(
                   fixture.jobs.self,
                   &(struct job_setting){.job = "job", .set_pin = true, .pin_limit_w = NAN}, &error),
               error);
    train_more(&question, 24, 600, 1.0);
    read = job_fixture_history(&fixture, &fixture.arena);
    check_fine(job_savings_of(&read, 0, &savings, &error), error);
    assert_true(savings.known);
    assert_int_equal(savings.tuned.runs, 16);
    assert_int_equal(savings.searching, 1);
    check_close(savings.energy.value, 0.4, 0.01);
}

/* A revision under which all takes three times as much; the saving is 20 % before it, and 40 % after. */
static void test_savings_of_revisions(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_savings before, after;
    struct job_history read;
    struct fly_error error;

    (void)state;
    definition.target = FLY_TARGET_NONE;
    definition.control_every = 3;
    definition.revision = "one"; /* from the beginning: nothing is earlier */
    job_fixture_define(&fixture, &definition);
    train_more(&question, 30, 800, 1.0);
    read = job_fixture_history(&fixture, &fixture.arena);
    check_fine(job_savings_of(&read, 0, &before, &error), error);
    check_close(before.energy.value, 0.2, 0.01);
    assert_int_equal(before.earlier.recurrences + before.earlier.unknown, 0);
    assert_true(isnan(before.earlier.ahead_j));

    definition.revision = "two";
    job_fixture_define(&fixture, &definition);
    train_more(&question, 6, 600, 3.0);
    read = job_fixture_history(&fixture, &fixture.arena);
    check_fine(job_savings_of(&read, 0, &after, &error), error);
    assert_false(after.known);
    assert_int_equal(after.doubt, SAVING_FEW_BASELINE);
    assert_int_equal(after.baseline.runs, 2);
    assert_int_equal(after.earlier.recurrences, 20);
    check_double(after.earlier.ahead_j, before.balance.ahead_j);

    train_more(&question, 24, 600, 3.0);
    read = job_fixture_history(&fixture, &fixture.arena);
    check_fine(job_savings_of(&read, 0, &after, &error), error);
    assert_true(after.known);
    assert_int_equal(after.baseline.runs, 10);
    check_close(after.baseline.model_energy_j, 20 * 3.0 * 1002, 100.0);
    check_close(after.energy.value, 0.4, 0.01);
    assert_true(after.energy.low > 0.38 && after.energy.high < 0.42);
    check_double(after.earlier.ahead_j, before.balance.ahead_j);

    /* Of a revision that ended too soon to know, the recurrences are counted, and the sum stays. */
    definition.revision = "three";
    job_fixture_define(&fixture, &definition);
    train_more(&question, 3, 600, 1.0);
    definition.revision = "four";
    job_fixture_define(&fixture, &definition);
    read = job_fixture_history(&fixture, &fixture.arena);
    check_fine(job_savings_of(&read, 0, &before, &error), error);
    assert_int_equal(before.earlier.recurrences, 40);
    assert_int_equal(before.earlier.unknown, 2);
    check_double(before.earlier.ahead_j, after.earlier.ahead_j + after.balance.ahead_j);
    assert_int_equal(before.baseline.runs + before.tuned.runs, 0);
}

/* A recurrence whose tries ran under two revisions shows nothing of either. */
static void test_savings_interrupted(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_savings savings;
    struct job_history read;
    struct fly_error error;

    (void)state;
    definition.revision = "one";
    job_fixture_define(&fixture, &definition);
    question.submission = "night 1";
    job_fixture_train(&fixture, &question, 20, 1000, 10, 0.1, NULL);
    definition.revision = "two";
    job_fixture_define(&fixture, &definition);
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    read = job_fixture_history(&fixture, &fixture.arena);
    assert_int_equal(read.rows[1].trial.recurrence, read.rows[0].trial.recurrence);
    check_fine(job_savings_of(&read, 0, &savings, &error), error);
    assert_int_equal(savings.searching + savings.tuned.runs + savings.failed, 0);
    assert_int_equal(savings.earlier.unknown, 0);
}

/* Energy that is not known is not zero: outcome and time count, and no cost; it is on record as null. */
static void test_unknown_energy(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct fly_job_why explanation;
    struct job_proposal first, again, next;
    struct job_savings savings;
    struct job_history read;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    assert_int_equal(job_fixture_train(&fixture, &question, 3, NAN, 10, 0.95, &first).outcome, TRIAL_REACHED);
    job_fixture_train(&fixture, &question, 3, NAN, 10, 0.95, &again);
    assert_int_equal(again.reason, REASON_EXPLORE); /* what it costs is not known yet */
    assert_int_equal(again.batch_size, first.batch_size);
    check_fine(job_explain(&fixture.jobs, "job", 2, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.sentence, "its only trial reached the target, at an energy that is not known");
    check_contains(explanation.numbers, "\"mean_cost_j\":null");
    check_contains(explanation.numbers, "\"mean_time_s\":30");
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, &again);
    assert_int_equal(again.batch_size, first.batch_size);
    job_fixture_reopen(&fixture);
    job_fixture_train(&fixture, &question, 3, 900, 10, 0.95, &next);
    assert_int_not_equal(next.batch_size, first.batch_size); /* now it is, and the next one's turn */
    check_fine(job_explain(&fixture.jobs, "job", 4, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.numbers, "\"mean_energy_j\":3000");
    read = job_fixture_history(&fixture, &fixture.arena);
    assert_int_equal(read.rows[0].outcome, TRIAL_REACHED);
    assert_true(isnan(read.rows[0].trial.energy_j) && isnan(read.rows[0].trial.whole_energy_j) &&
                isnan(read.rows[0].trial.cost_j));
    check_double(read.rows[0].trial.time_s, 30);
    check_double(read.rows[2].trial.energy_j, 3000);
    check_fine(job_savings_of(&read, 0, &savings, &error), error);
    assert_int_equal(savings.searching + savings.tuned.runs + savings.baseline.runs, 2);
}

/* A batch size that never reaches the target says so without energies too, and is stopped by its epochs. */
static void test_unknown_energy_in_vain(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_answered answered;
    struct job_proposal proposal;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.submission = "night";
    question.tries = 3;
    for (uint32_t i = 0; i < question.tries; i++) {
        answered = job_fixture_train(&fixture, &question, 20, NAN, 10, 0.1, &proposal);
        assert_int_equal(answered.outcome, TRIAL_NOT_REACHED);
        assert_int_equal(proposal.last_try, i == 2);
    }
    answered = job_fixture_train(&fixture, &question, 2, NAN, 10, 0.95, &proposal);
    assert_int_equal(answered.outcome, TRIAL_REACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_savings),
        job_test(test_savings_anew),
        job_test(test_savings_of_revisions),
        job_test(test_savings_interrupted),
        job_test(test_unknown_energy),
        job_test(test_unknown_energy_in_vain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
