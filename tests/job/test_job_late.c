/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that the log gets when the training has gone on already, and runs that it was never asked about. */
#include "job_fixture.h"

static struct job_fixture fixture;

/* Two cheap recurrences, and one that is asked for with tries left, which is to be capped. */
static struct job_proposal begin_capped(void)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    job_fixture_define(&fixture, &definition);
    question.tries = 1;
    for (int i = 0; i < 2; i++)
        job_fixture_train(&fixture, &question, 2, 100.0, 10.0, 0.95, &proposal);
    question.tries = 5;
    question.submission = "capped";
    proposal = job_fixture_propose(&fixture, &question);
    assert_false(proposal.last_try);
    return proposal;
}

static struct job_answered report(const struct job_proposal *proposal, uint32_t epoch, double metric,
                                  bool afterwards)
{
    return job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                            .trial = proposal->trial,
                                                            .attempt = proposal->attempt,
                                                            .epoch = epoch,
                                                            .metric = metric,
                                                            .energy_j = 1000.0 * epoch,
                                                            .time_s = 100.0 * epoch,
                                                            .reference_per_kwh = NAN,
                                                            .afterwards = afterwards});
}

/* A training that grew too expensive, and that nobody could tell so: it went on, and reached its target. */
static void test_went_on(void **state)
{
    struct job_proposal proposal = begin_capped();

    (void)state;
    assert_int_equal(report(&proposal, 1, 0.1, true).answer, JOB_GO_ON);
    assert_int_equal(report(&proposal, 2, 0.2, true).answer, JOB_GO_ON);
    assert_int_equal(report(&proposal, 3, 0.95, true).answer, JOB_REACHED);
    assert_int_equal(job_fixture_outcome(&fixture, "job", proposal.trial), TRIAL_REACHED);
}

/* The same in time; and one that did not get there ends with its epochs. */
static void test_in_time(void **state)
{
    struct job_proposal proposal = begin_capped();
    struct job_answered answered = {.answer = JOB_GO_ON};

    (void)state;
    for (uint32_t epoch = 1; epoch < 19 && answered.answer == JOB_GO_ON; epoch++)
        answered = report(&proposal, epoch, 0.1, false);
    assert_int_equal(answered.answer, JOB_STOP);
    assert_int_equal(answered.stop, JOB_STOP_COST);
}

static void test_all_epochs(void **state)
{
    struct job_proposal proposal = begin_capped();

    (void)state;
    assert_int_equal(report(&proposal, 19, 0.1, true).answer, JOB_GO_ON);
    assert_int_equal(report(&proposal, 20, 0.1, true).stop, JOB_STOP_EPOCHS);
    assert_int_equal(job_fixture_outcome(&fixture, "job", proposal.trial), TRIAL_NOT_REACHED);
}

/* A proposal of the same run that came too late is of another batch size than what was run. */
static void test_ran_something_else(void **state)
{
    struct job_proposal late, ran, again;
    struct job_question question = job_fixture_question("job");

    (void)state;
    (void)begin_capped();
    question.run = "run-7";
    question.request = "asked";
    late = job_fixture_propose(&fixture, &question);
    question.request = "asked-ran";
    question.ran_batch_size = late.batch_size == 8 ? 16 : 8;
    question.ran_limit_w = NAN;
    ran = job_fixture_propose(&fixture, &question);
    assert_int_not_equal(ran.trial, late.trial);
    assert_int_equal(ran.batch_size, question.ran_batch_size);
    assert_int_equal(ran.attempt, 1);
    again = job_fixture_propose(&fixture, &question);
    assert_true(again.repeated);
    assert_int_equal(again.trial, ran.trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_went_on),
        job_test(test_in_time),
        job_test(test_all_epochs),
        job_test(test_ran_something_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
