/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the public batch-size server is at fault and this one is not, what is recognised
 * when it is asked again, and what the service counts.
 */
#include "zeus_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct zeus_fixture fixture;

/* ---- faults of the public server ---- */

/* No round of pruning: all batch sizes are sampled, each as often as asked before any draw. */
static void test_no_pruning(void **state)
{
    unsigned counts[129] = {0};

    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:i}", "num_pruning_rounds", 0));
    for (int i = 0; i < 10; i++)
        counts[zeus_fixture_train(&fixture, 1000 + i).batch_size]++;
    for (uint32_t size = 8; size <= 128; size *= 2)
        assert_int_equal(counts[size], 2);
}

/* Without a seed arms have random numbers of their own: over a while, more than one is drawn. */
static void test_draws_differ(void **state)
{
    unsigned counts[129] = {0}, drawn = 0;

    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:n, s:n}", "mab_seed", "beta_knob"));
    for (int i = 0; i < 60; i++) {
        struct zeus_given given = zeus_fixture_train(&fixture, 1000 + 1000 * (i * 7 % 11));

        counts[given.batch_size] += i >= 20; /* two rounds over five batch sizes, and twice each */
    }
    for (uint32_t size = 8; size <= 128; size *= 2)
        drawn += counts[size] > 0;
    assert_true(drawn > 1);
}

/* A trial that ran beside the exploration and reports after that is over counts, and is not refused. */
static void test_report_after_exploration(void **state)
{
    struct zeus_given exploring, beside;
    bool converged;

    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:i}", "num_pruning_rounds", 1));
    exploring = zeus_fixture_predict(&fixture, "job-1");
    beside = zeus_fixture_predict(&fixture, "job-1");
    assert_int_equal(beside.batch_size, 32);
    assert_true(zeus_fixture_report(&fixture, exploring, 1, 1000, 0.95, NULL));
    for (int i = 0; i < 12; i++) /* through the round and beyond */
        zeus_fixture_train(&fixture, 1000);
    assert_false(zeus_fixture_report(&fixture, beside, 1, 500, 0.1, NULL));
    assert_true(zeus_fixture_report(&fixture, beside, 2, 900, 0.95, &converged));
    assert_true(converged);
    assert_int_equal(job_fixture_outcome(&fixture.jobs, "job-1", beside.trial), TRIAL_REACHED);
}

/* A trial that failed cheaply bounds nobody. */
static void test_failed_trial_sets_no_bound(void **state)
{
    struct zeus_given given;
    bool converged;

    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:i}", "max_epochs", 2));
    zeus_fixture_train(&fixture, 10000);
    given = zeus_fixture_predict(&fixture, "job-1");
    assert_true(zeus_fixture_report(&fixture, given, 2, 10, 0.1, &converged)); /* all its epochs */
    assert_false(converged);
    given = zeus_fixture_predict(&fixture, "job-1");
    assert_true(zeus_fixture_report(&fixture, given, 1, 9000, 0.95, &converged)); /* 900 times that */
    assert_true(converged);
}

/* A client that was killed blocks the exploration for a day, not for ever. */
static void test_lost_client(void **state)
{
    struct zeus_given lost, given;

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    lost = zeus_fixture_predict(&fixture, "job-1");
    given = zeus_fixture_predict(&fixture, "job-1"); /* beside it */
    assert_int_equal(zeus_fixture_leave(&fixture, given), 200);
    fixture.jobs.now_us += (int64_t)86401e6;
    given = zeus_fixture_train(&fixture, 1000);
    assert_int_equal(given.batch_size, lost.batch_size);
    assert_int_equal(zeus_fixture_predict(&fixture, "job-1").batch_size, 16); /* the exploration goes on */
    /* What it was heard of after all counts. */
    assert_false(zeus_fixture_report(&fixture, lost, 1, 500, 0.1, NULL));
    assert_true(zeus_fixture_report(&fixture, lost, 2, 1000, 0.95, NULL));
}

/* Nothing has reached its target: the best known choice is the default, and no error. */
static void test_nothing_converged(void **state)
{
    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:i, s:i}", "max_epochs", 1, "num_pruning_rounds", 1));
    for (int i = 0; i < 8; i++) {
        struct zeus_given given = zeus_fixture_predict(&fixture, "job-1");
        bool converged;

        if (i == 7)
            assert_int_equal(given.batch_size, 32);
        assert_true(zeus_fixture_report(&fixture, given, 1, 1000, 0.1, &converged));
        assert_false(converged);
    }
}

/* Training goes on after its client said that it ended: it is told to stop, and that is no error. */
static void test_report_after_end(void **state)
{
    struct zeus_given given;
    bool converged;

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    given = zeus_fixture_predict(&fixture, "job-1");
    assert_int_equal(zeus_fixture_leave(&fixture, given), 200);
    assert_true(zeus_fixture_report(&fixture, given, 1, 1000, 0.95, &converged));
    assert_false(converged);
}

/* A loss that is not a number is what a client says of a training that diverged. */
static void test_diverged(void **state)
{
    static const char *const metrics[] = {"NaN", "Infinity", "-Infinity"};

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    for (size_t i = 0; i < COUNT(metrics); i++) {
        struct zeus_given given = zeus_fixture_predict(&fixture, "job-1");
        char body[300];

        snprintf(body, sizeof body,
                 "{\"job_id\":\"job-1\", \"batch_size\":%u, \"trial_number\":%u, \"time\":5.0, "
                 "\"energy\":100.0, \"metric\":%s, \"current_epoch\":1}",
                 given.batch_size, (unsigned)given.trial, metrics[i]);
        assert_int_equal(zeus_fixture_ask(&fixture, "POST", "/report", NULL, body), 200);
        check_contains(fixture.last.body.data, "\"stop_train\":false,\"converged\":false");
        assert_int_equal(zeus_fixture_leave(&fixture, given), 200);
    }
}

/* ---- asked again ---- */

/* A report whose answer was lost gets it again, also the one that ended its trial, and counts once. */
static void test_repeated_reports(void **state)
{
    struct zeus_given given;
    bool converged;

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    given = zeus_fixture_predict(&fixture, "job-1");
    for (int i = 0; i < 3; i++)
        assert_false(zeus_fixture_report(&fixture, given, 1, 1000, 0.1, NULL));
    for (int i = 0; i < 3; i++) {
        assert_true(zeus_fixture_report(&fixture, given, 2, 2000, 0.95, &converged));
        assert_true(converged);
        assert_int_equal(fixture.note.ended, i == 0);
    }
    assert_true(
        zeus_fixture_report(&fixture, given, 1, 1000, 0.1, &converged)); /* there is nothing to train on */
    assert_true(converged);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(zeus_fixture_leave(&fixture, given), 200);
        assert_false(fixture.note.ended);
    }
    assert_int_equal(job_fixture_count(&fixture.jobs, "job-1", "epoch", given.trial), 2);
    assert_int_equal(job_fixture_count(&fixture.jobs, "job-1", "ended", given.trial), 1);
}

/* Reports so; the answer's message, which is the fixture's. */
static const char *report_as(struct zeus_given given, int epoch, double energy_j, double metric, bool stops,
                             bool converges)
{
    static char message[600];
    json_t *answer;
    const char *text;
    int stop, converged;

    assert_int_equal(zeus_fixture_ask_json(&fixture, "POST", "/report", NULL,
                                           zeus_fixture_report_json(given, epoch, energy_j, metric), &answer),
                     200);
    assert_int_equal(json_unpack(answer, "{s:b, s:b, s:s}", "stop_train", &stop, "converged", &converged,
                                 "message", &text),
                     0);
    snprintf(message, sizeof message, "%s", text);
    json_decref(answer);
    if (stop != stops || converged != converges)
        fail_msg("epoch %d: stop_train %d, converged %d: %s", epoch, stop, converged, message);
    assert_int_equal(strstr(message, "train on") != NULL, !stops);
    return message;
}

/* Each rank of a data-parallel training reports its own joules and metric of an epoch: the first one decides.
 */
static void test_ranks(void **state)
{
    struct zeus_given given;

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    given = zeus_fixture_predict(&fixture, "job-1");
    report_as(given, 1, 1000, 0.1, false, false);
    report_as(given, 1, 900, 0.2, false, false);
    report_as(given, 1, 1100, 0.95, false, false); /* its own metric is not what counts */
    report_as(given, 2, 950, 0.3, false,
              false); /* the first of this epoch has spent less than the last one's */
    report_as(given, 2, 2000, 0.3, false, false);
    report_as(given, 1, 5, 0.3, false, false); /* one that is late */
    report_as(given, 3, 3000, 0.95, true, true);
    check_contains(report_as(given, 3, 2800, 0.5, true, true), "the target is reached");
    check_contains(report_as(given, 2, 7, 0.5, true, true), "it has ended before");
    check_contains(report_as(given, 4, 7, 0.5, true, true), "it has ended before");
    check_contains(report_as(given, 4, 8, 0.5, true, true), "it has ended before");
    assert_int_equal(job_fixture_count(&fixture.jobs, "job-1", "epoch", given.trial), 4);
    assert_int_equal(job_fixture_count(&fixture.jobs, "job-1", "ended", given.trial), 1);
}

/* What an old epoch is answered once all epochs are used up. */
static void test_old_epochs(void **state)
{
    struct zeus_given given;

    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:i}", "max_epochs", 3));
    given = zeus_fixture_predict(&fixture, "job-1");
    for (int epoch = 1; epoch < 3; epoch++)
        check_contains(report_as(given, epoch, 1000.0 * epoch, 0.1, false, false), "train on");
    check_contains(report_as(given, 3, 3000, 0.1, true, false), "max_epochs");
    for (int epoch = 1; epoch < 3; epoch++)
        check_contains(report_as(given, epoch, 1000.0 * epoch, 0.1, true, false), "it has ended before");
    check_contains(report_as(given, 3, 3000, 0.1, true, false), "max_epochs");
}

/* Numbers come back as they were written. */
static void test_shortest_numbers(void **state)
{
    char *text = zeus_fixture_job_text("eta_knob", "0.1");

    (void)state;
    assert_int_equal(zeus_fixture_ask(&fixture, "POST", "/jobs", NULL, text), 201);
    check_contains(fixture.last.body.data, "\"eta_knob\":0.1,");
    free(text);
    text = zeus_fixture_job_text("eta_knob", "0.7");
    assert_int_equal(zeus_fixture_ask(&fixture, "POST", "/jobs", NULL, text), 409);
    check_contains(fixture.last.body.data, "{\"eta_knob\":[0.1,0.7]}");
    free(text);
}

/* ---- what the service counts ---- */

/* A client that exits without a word of an epoch has not crashed, as far as anybody knows. */
static void test_left(void **state)
{
    struct zeus_given given;

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    given = zeus_fixture_predict(&fixture, "job-1");
    assert_int_equal(zeus_fixture_leave(&fixture, given), 200);
    assert_true(fixture.note.ended && fixture.note.left);
    given = zeus_fixture_predict(&fixture, "job-1");
    zeus_fixture_report(&fixture, given, 1, 700, 0.1, NULL);
    assert_int_equal(zeus_fixture_leave(&fixture, given), 200);
    assert_true(fixture.note.ended && !fixture.note.left);
}

static void test_notes(void **state)
{
    struct zeus_given given;

    (void)state;
    zeus_fixture_register(&fixture, json_pack("{s:s}", "job_id", "job 1"));
    assert_string_equal(fixture.note.job, "job_.201");
    zeus_fixture_ask(&fixture, "DELETE", "/jobs", "job 1", "");
    zeus_fixture_register(&fixture, NULL);
    assert_string_equal(fixture.note.job, "job-1");
    assert_string_equal(fixture.note.gpu_model, "V100");
    given = zeus_fixture_predict(&fixture, "job-1");
    assert_true(fixture.note.decided);
    assert_string_equal(fixture.note.gpu_model, "V100");
    zeus_fixture_report(&fixture, given, 1, 1000, 0.1, NULL);
    assert_false(fixture.note.decided || fixture.note.ended);
    assert_true(isnan(fixture.note.energy_j));
    zeus_fixture_report(&fixture, given, 2, 2500, 0.95, NULL);
    assert_true(fixture.note.ended);
    assert_int_equal(fixture.note.outcome, TRIAL_REACHED);
    check_double(fixture.note.energy_j, 2500.0);
    given = zeus_fixture_predict(&fixture, "job-1");
    zeus_fixture_report(&fixture, given, 1, 700, 0.1, NULL);
    for (int i = 0; i < 2; i++) {
        zeus_fixture_leave(&fixture, given);
        assert_int_equal(fixture.note.ended, i == 0);
        assert_int_equal(fixture.note.outcome, TRIAL_CRASHED);
        assert_int_equal(isnan(fixture.note.energy_j), i);
        if (i == 0)
            check_double(fixture.note.energy_j, 700.0);
    }
    zeus_fixture_ask(&fixture, "GET", "/jobs/batch_size", "nobody", "");
    assert_string_equal(fixture.note.job, "");
    assert_true(isnan(fixture.note.energy_j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        zeus_test(test_no_pruning),
        zeus_test(test_draws_differ),
        zeus_test(test_report_after_exploration),
        zeus_test(test_failed_trial_sets_no_bound),
        zeus_test(test_lost_client),
        zeus_test(test_nothing_converged),
        zeus_test(test_report_after_end),
        zeus_test(test_diverged),
        zeus_test(test_repeated_reports),
        zeus_test(test_ranks),
        zeus_test(test_old_epochs),
        zeus_test(test_left),
        zeus_test(test_shortest_numbers),
        zeus_test(test_notes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
