/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `zeus-server` through a job: where it answers better than the published server. */
#include "job_fixture.h"

static struct job_fixture fixture;

static struct fly_job_definition definition_of(uint32_t pruning_rounds)
{
    struct fly_job_definition definition = job_fixture_definition("job");

    definition.policy = "zeus-server";
    definition.pruning_rounds = pruning_rounds;
    definition.seed = 5;
    return definition;
}

/* One trial to its end; what it was. */
static struct job_proposal run(double epoch_j, uint32_t epochs, double metric)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    question.hardware.limit_count = 0;
    question.hardware.max_power_w = 200;
    job_fixture_train(&fixture, &question, epochs, epoch_j, epoch_j / 200, metric, &proposal);
    return proposal;
}

/* No round of pruning: all batch sizes are sampled, each as often as asked before any draw. */
static void test_no_pruning(void **state)
{
    struct fly_job_definition definition = definition_of(0);
    unsigned counts[129] = {0};

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 10; i++)
        counts[run(1000 + i, 2, 0.95).batch_size]++;
    for (uint32_t size = 8; size <= 128; size *= 2)
        assert_int_equal(counts[size], 2);
}

/* Without a published seed arms have random numbers of their own: over a while, more than one is drawn. */
static void test_draws_differ(void **state)
{
    struct fly_job_definition definition = definition_of(2);
    unsigned counts[129] = {0}, drawn = 0;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 60; i++) {
        struct job_proposal proposal = run(1000 + 100 * (i * 7 % 11), 2, 0.95);

        counts[proposal.batch_size] += proposal.reason == REASON_SAMPLED;
    }
    for (uint32_t size = 8; size <= 128; size *= 2)
        drawn += counts[size] > 0;
    assert_true(drawn > 1);
}

/* A trial beside the exploration reports after that has ended: it counts, and is not refused. */
static void test_concurrent_report_counts(void **state)
{
    struct fly_job_definition definition = definition_of(1);
    struct job_question question = job_fixture_question("job");
    struct job_proposal beside, proposal;
    struct job_answered answered;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.hardware.limit_count = 0;
    question.hardware.max_power_w = 200;
    proposal = job_fixture_propose(&fixture, &question);
    beside = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    assert_int_equal(beside.reason, REASON_BEST_SEEN);
    answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                .trial = proposal.trial,
                                                                .attempt = 1,
                                                                .epoch = 1,
                                                                .metric = 0.95,
                                                                .energy_j = 1000,
                                                                .time_s = 5});
    assert_true(answered.ended);
    do {
        proposal = run(1000, 1, 0.95);
    } while (proposal.reason == REASON_EXPLORE);
    answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                .trial = beside.trial,
                                                                .attempt = 1,
                                                                .epoch = 1,
                                                                .metric = 0.95,
                                                                .energy_j = 900,
                                                                .time_s = 4});
    assert_true(answered.ended);
    assert_int_equal(answered.outcome, TRIAL_REACHED);
}

/* A failed trial that was cheap bounds nobody. */
static void test_failed_trial_sets_no_bound(void **state)
{
    struct fly_job_definition definition = definition_of(2);
    struct job_proposal proposal;

    (void)state;
    definition.max_epochs = 2;
    job_fixture_define(&fixture, &definition);
    run(10000, 2, 0.95);
    proposal = run(10, 2, 0.1); /* all its epochs, for next to nothing */
    assert_int_equal(proposal.batch_size, 16);
    proposal = run(9000, 2, 0.95); /* 900 times that, and goes on */
    assert_int_equal(proposal.batch_size, 64);
    assert_int_equal(job_fixture_outcome(&fixture, "job", proposal.trial), TRIAL_REACHED);
}

/* A crashed exploration is made again, and so is one that expired: nobody waits for ever. */
static void test_lost_explorations(void **state)
{
    struct fly_job_definition definition = definition_of(2);
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.hardware.limit_count = 0;
    question.hardware.max_power_w = 200;
    job_fixture_propose(&fixture, &question);
    assert_int_equal(job_fixture_propose(&fixture, &question).reason, REASON_BEST_SEEN);
    fixture.now_us += (int64_t)86401e6;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    assert_int_equal(proposal.batch_size, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_no_pruning),
        job_test(test_draws_differ),
        job_test(test_concurrent_report_counts),
        job_test(test_failed_trial_sets_no_bound),
        job_test(test_lost_explorations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
