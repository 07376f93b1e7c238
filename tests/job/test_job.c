/* SPDX-License-Identifier: Apache-2.0 */
/* Recurring jobs over a store: proposals, reports and every way in which a trial ends. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

/* ---- proposals ---- */

static void test_unknown_job(void **state)
{
    struct job_question question = job_fixture_question("nobody");
    struct job_proposal proposal;
    struct fly_error error;

    (void)state;
    check_fails(at()->propose(fixture.jobs.self, &question, &proposal, &error), FLY_ENOTFOUND, error,
                "nobody");
}

static void test_refused_questions(void **state)
{
    static const double falling[] = {200, 100};
    struct job_question rows[9];
    static const char *const words[COUNT(rows)] = {"gpu_model",   "gpu_count",         "world_size",
                                                   "limits_w",    "control character", "longer than",
                                                   "heartbeat_s", "finish_by",         "gpus"};
    char text[JOB_TEXT_MAX + 1], gpus[JOB_GPUS_MAX + 1];
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_proposal proposal;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(gpus, 'x', sizeof gpus - 1);
    gpus[sizeof gpus - 1] = '\0';
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = job_fixture_question("job");
    rows[0].hardware.gpu_model = "";
    rows[1].hardware.gpu_count = 0;
    rows[2].hardware.world_size = 0;
    rows[3].hardware.limits_w = falling, rows[3].hardware.limit_count = 2;
    rows[4].run = "a\nb";
    rows[5].submission = text;
    rows[6].heartbeat_s = -1.0;
    rows[7].finish_by_us = -1;
    rows[8].origin.gpus = gpus;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int code = at()->propose(fixture.jobs.self, &rows[i], &proposal, &error);

        assert_true(code == FLY_EUSAGE || code == FLY_ELIMIT);
        check_contains(error.text, words[i]);
    }
    assert_int_equal(job_fixture_count(&fixture, "job", "proposed", 0), 0);
}

/* A request that is repeated gets the trial that it had; another one gets another. */
static void test_requests(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal first, again, other;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.request = "a";
    first = job_fixture_propose(&fixture, &question);
    job_fixture_reopen(&fixture);
    again = job_fixture_propose(&fixture, &question);
    question.request = "b";
    other = job_fixture_propose(&fixture, &question);
    assert_int_equal(first.trial, 1);
    assert_int_equal(first.batch_size, 32);
    assert_true(first.wants_profile);
    assert_true(isnan(first.limit_w));
    assert_int_equal(first.reason, REASON_EXPLORE);
    check_contains(first.why, "batch size 32, the default, runs");
    assert_int_equal(again.trial, 1);
    assert_int_equal(again.attempt, 1);
    assert_string_equal(again.why, first.why);
    assert_int_equal(other.trial, 2);
    assert_int_equal(other.reason, REASON_BEST_SEEN); /* while another one explores */
    assert_int_equal(job_fixture_count(&fixture, "job", "proposed", 0), 2);
    assert_int_equal(job_fixture_count(&fixture, "job", "attempt", 0), 2);
}

/* Ranks share batch sizes that they divide; each kind of hardware learns on its own. */
static void test_hardware(void **state)
{
    static const uint32_t sizes[] = {8, 12, 30, 32};
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct fly_error error;

    (void)state;
    definition.batch_sizes = sizes, definition.batch_count = COUNT(sizes);
    job_fixture_define(&fixture, &definition);
    question.hardware.world_size = question.hardware.gpu_count = 5;
    check_fails(at()->propose(fixture.jobs.self, &question, &proposal, &error), FLY_EUSAGE, error, "5 ranks");
    question.hardware.world_size = question.hardware.gpu_count = 4;
    for (int i = 0; i < 40; i++) {
        job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, &proposal);
        assert_int_equal(proposal.batch_size % 4, 0);
        assert_int_equal(proposal.local_batch_size, proposal.batch_size / 4);
    }
    question.hardware.gpu_model = "Another GPU";
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.batch_size, 32);
    assert_true(proposal.wants_profile);
    assert_int_equal(proposal.recurrence, 40);
}

/* Without limits that can be set there is nothing to profile; time can be weighed only with a known power. */
static void test_no_limits(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.hardware.limit_count = 0;
    check_fails(at()->propose(fixture.jobs.self, &question, &proposal, &error), FLY_EUSAGE, error,
                "max_power_w");
    question.hardware.max_power_w = 250.0;
    proposal = job_fixture_propose(&fixture, &question);
    assert_false(proposal.wants_profile);
    assert_true(isnan(proposal.limit_w));
}

/* ---- profiles ---- */

static void test_profile(void **state)
{
    static const struct fly_power_point other[] = {{100, 95, 10.1}, {200, 185, 10}};
    const struct job_profile bad = {.job = "job", .trial = 1, .points = other, .units_per_epoch = 1.0};
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_choice choice;
    struct job_proposal proposal;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    job_fixture_propose(&fixture, &question);
    check_fails(at()->profile(fixture.jobs.self, &bad, &choice, &error), FLY_EUSAGE, error, "0 points");
    choice = job_fixture_profile(&fixture, "job", 1);
    check_double(choice.limit_w, 150.0);
    assert_int_equal(choice.epochs, 20);
    assert_false(choice.repeated);
    choice = job_fixture_profile(&fixture, "job", 1);
    check_double(choice.limit_w, 150.0);
    assert_int_equal(choice.epochs, 20);
    assert_true(choice.repeated);
    proposal = job_fixture_propose(&fixture, &question); /* runs beside it, at the same batch size */
    assert_false(proposal.wants_profile);
    check_double(proposal.limit_w, 150.0);
    check_fails(at()->profile(
                    fixture.jobs.self,
                    &(struct job_profile){
                        .job = "job", .trial = 2, .points = other, .point_count = 2, .units_per_epoch = 1.0},
                    &choice, &error),
                FLY_ESTATE, error, "wants no profile");
}

/* ---- reports ---- */

static void test_reports(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_epoch epoch = {
        .job = "job", .trial = 1, .attempt = 1, .epoch = 1, .metric = NAN, .energy_j = 1000, .time_s = 10};
    struct job_answered first, again;
    struct job_epoch other;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    job_fixture_propose(&fixture, &question);
    first = job_fixture_report(&fixture, &epoch);
    assert_int_equal(first.answer, JOB_GO_ON);
    assert_false(first.repeated);
    again = job_fixture_report(&fixture, &epoch);
    assert_int_equal(again.answer, JOB_GO_ON);
    assert_true(again.repeated);
    other = epoch, other.energy_j = 1001;
    check_fails(at()->report(fixture.jobs.self, &other, &again, &error), FLY_ECONFLICT, error,
                "the first report stays");
    other = epoch, other.metric = 0.95; /* even one that would reach the target */
    check_fails(at()->report(fixture.jobs.self, &other, &again, &error), FLY_ECONFLICT, error, "metric nan");
    epoch.epoch = 3, epoch.energy_j = 3000.1, epoch.time_s = 30.7, epoch.metric = 0.123456789;
    job_fixture_report(&fixture, &epoch);
    other = epoch, other.metric = 0.5;
    check_fails(at()->report(fixture.jobs.self, &other, &again, &error), FLY_ECONFLICT, error,
                "metric 0.123456789, 3000.1 J and 30.7 s;");
    other = epoch, other.epoch = 2;
    check_fails(at()->report(fixture.jobs.self, &other, &again, &error), FLY_EDATA, error, "after epoch 3");
    other = epoch, other.epoch = 4, other.energy_j = 2999;
    check_fails(at()->report(fixture.jobs.self, &other, &again, &error), FLY_EDATA, error, "sums since");
    assert_int_equal(job_fixture_count(&fixture, "job", "epoch", 1), 2);
}

static void test_refused_reports(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    const struct job_epoch good = {
        .job = "job", .trial = 1, .attempt = 1, .epoch = 1, .metric = 0.5, .energy_j = 1000, .time_s = 10};
    struct job_epoch rows[9];
    static const int codes[COUNT(rows)] = {FLY_EDATA,  FLY_EDATA,  FLY_EDATA,     FLY_EDATA,    FLY_EUSAGE,
                                           FLY_EUSAGE, FLY_ESTATE, FLY_ENOTFOUND, FLY_ENOTFOUND};
    struct job_answered answered;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    job_fixture_propose(&fixture, &question);
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = good;
    rows[0].metric = INFINITY;
    rows[1].energy_j = -1.0;
    rows[2].energy_j = INFINITY;
    rows[3].time_s = INFINITY;
    rows[4].epoch = 0;
    rows[5].attempt = 0;
    rows[6].attempt = 2;
    rows[7].trial = 2;
    rows[8].trial = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(at()->report(fixture.jobs.self, &rows[i], &answered, &error), codes[i]);
    assert_int_equal(job_fixture_count(&fixture, "job", "epoch", 0), 0);
}

/* ---- ends ---- */

static void test_reached(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_end end = {
        .job = "job", .trial = 1, .attempt = 1, .outcome = TRIAL_CRASHED, .energy_j = 3500, .time_s = 33};
    struct job_answered answered;
    struct job_ended ended;

    (void)state;
    job_fixture_define(&fixture, &definition);
    answered = job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    assert_int_equal(answered.answer, JOB_REACHED);
    assert_int_equal(answered.stop, JOB_STOP_TARGET);
    assert_int_equal(job_fixture_count(&fixture, "job", "ended", 1), 1);
    /* What it takes to shut down belongs to the run, and changes nothing about the outcome. */
    ended = job_fixture_end(&fixture, &end);
    assert_int_equal(ended.outcome, TRIAL_REACHED);
    check_double(ended.energy_j, 3500);
    assert_false(ended.repeated);
    end.energy_j = 4000;
    ended = job_fixture_end(&fixture, &end);
    assert_true(ended.repeated);
    check_double(ended.energy_j, 3500);
    /* A report after the end is kept, and answered with a stop. */
    answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                .trial = 1,
                                                                .attempt = 1,
                                                                .epoch = 4,
                                                                .metric = 0.96,
                                                                .energy_j = 5000,
                                                                .time_s = 50});
    assert_int_equal(answered.answer, JOB_STOP);
    assert_int_equal(answered.stop, JOB_STOP_ENDED);
    assert_int_equal(job_fixture_count(&fixture, "job", "epoch", 1), 4);
}

/* A job that trains on is decided at its target, and ends when it ends. */
static void test_trains_on(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct job_answered answered;
    struct job_ended ended;

    (void)state;
    definition.trains_on = true;
    job_fixture_define(&fixture, &definition);
    assert_int_equal(job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, &proposal).answer,
                     JOB_REACHED);
    assert_false(proposal.stops_at_target);
    for (uint32_t epoch = 4; epoch <= 20; epoch++) {
        answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                    .trial = 1,
                                                                    .attempt = 1,
                                                                    .epoch = epoch,
                                                                    .metric = 0.8,
                                                                    .energy_j = 1000.0 * epoch,
                                                                    .time_s = 10.0 * epoch});
        assert_int_equal(answered.answer, epoch < 20 ? JOB_GO_ON : JOB_STOP);
    }
    ended = job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                        .trial = 1,
                                                        .attempt = 1,
                                                        .outcome = TRIAL_NOT_REACHED,
                                                        .energy_j = NAN,
                                                        .time_s = NAN});
    assert_int_equal(ended.outcome, TRIAL_REACHED);
    check_double(ended.energy_j, 20000);
    assert_int_equal(job_fixture_count(&fixture, "job", "ended", 1), 1);
}

static void test_not_reached_and_stopped(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct job_answered answered;

    (void)state;
    job_fixture_define(&fixture, &definition);
    answered = job_fixture_train(&fixture, &question, 20, 1000, 10, 0.1, NULL);
    assert_int_equal(answered.answer, JOB_STOP);
    assert_int_equal(answered.stop, JOB_STOP_EPOCHS);
    /* 4 epochs at 130 W and 10.5 s: the next ones may cost twice that. */
    job_fixture_train(&fixture, &question, 4, 1365, 10.5, 0.95, &proposal);
    for (int i = 0; i < 2; i++) {
        answered = job_fixture_train(&fixture, &question, 20, 1365, 10.5, 0.1, &proposal);
        assert_int_equal(answered.stop, JOB_STOP_COST);
        check_close(answered.energy_j, 8 * 1365, 0.01);
    }
    /* Nothing is left to choose: the best known, and nothing stops it. */
    answered = job_fixture_train(&fixture, &question, 20, 1365, 10.5, 0.1, &proposal);
    assert_int_equal(proposal.reason, REASON_NO_CHOICE);
    assert_int_equal(proposal.batch_size, 64);
    assert_int_equal(answered.stop, JOB_STOP_EPOCHS);
}

static void test_told_ends(void **state)
{
    static const struct {
        enum trial_outcome outcome;
        int code;
    } rows[] = {{TRIAL_NOT_REACHED, 0},     {TRIAL_STOPPED, 0},          {TRIAL_OUT_OF_MEMORY, 0},
                {TRIAL_CRASHED, 0},         {TRIAL_REACHED, FLY_ESTATE}, {TRIAL_REFUSED, FLY_ESTATE},
                {TRIAL_EXPIRED, FLY_EUSAGE}};
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");

    (void)state;
    definition.policy = "default";
    job_fixture_define(&fixture, &definition);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_proposal proposal;
        struct job_end end = {.job = "job",
                              .attempt = 1,
                              .outcome = rows[i].outcome,
                              .energy_j = NAN,
                              .time_s = NAN,
                              .text = "a word"};
        struct job_ended ended;
        struct fly_error error;

        job_fixture_train(&fixture, &question, 2, 1000, 10, 0.1, &proposal);
        end.trial = proposal.trial;
        assert_int_equal(at()->end(fixture.jobs.self, &end, &ended, &error), rows[i].code);
        if (rows[i].code == 0) {
            assert_int_equal(ended.outcome, rows[i].outcome);
            check_double(ended.energy_j, 2000);
            assert_true(job_fixture_end(&fixture, &end).repeated);
        }
        assert_int_equal(job_fixture_count(&fixture, "job", "ended", proposal.trial), rows[i].code == 0);
    }
}

/* Without a target only the power limit is tuned, and an end in order is a model. */
static void test_no_target(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct job_answered answered;

    (void)state;
    definition.target = FLY_TARGET_NONE;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 5; i++) {
        answered = job_fixture_train(&fixture, &question, 20, 1000, 10, NAN, &proposal);
        assert_int_equal(proposal.batch_size, 32);
        assert_int_equal(proposal.reason, REASON_NO_TARGET);
        assert_int_equal(proposal.wants_profile, i == 0);
        if (i > 0)
            check_double(proposal.limit_w, 150);
        assert_int_equal(answered.stop, JOB_STOP_EPOCHS);
        assert_int_equal(proposal.recurrence, i);
    }
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                                 .trial = proposal.trial,
                                                                 .attempt = 1,
                                                                 .outcome = TRIAL_REACHED,
                                                                 .energy_j = 5,
                                                                 .time_s = 1})
                         .outcome,
                     TRIAL_REACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_unknown_job),
        job_test(test_refused_questions),
        job_test(test_requests),
        job_test(test_hardware),
        job_test(test_no_limits),
        job_test(test_profile),
        job_test(test_reports),
        job_test(test_refused_reports),
        job_test(test_reached),
        job_test(test_trains_on),
        job_test(test_not_reached_and_stopped),
        job_test(test_told_ends),
        job_test(test_no_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
