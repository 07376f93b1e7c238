/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs bring from elsewhere: other hardware, another job, or what was before a revision. */
#include "job_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/decide/decided_again.h"

enum { DEFAULT = 32, BEST = 64, MAX_EPOCHS = 20, NIGHTS = 8, MEMORY_MAX = 1 << 22 };

static struct job_fixture fixture;

/* Epochs to the target, and seconds of an epoch at the highest limit. */
static const struct {
    uint32_t size, epochs;
    double epoch_s;
} world[] = {{8, 6, 40}, {16, 6, 20}, {DEFAULT, 6, 10}, {BEST, 6, 5.5}, {128, 12, 5}};

static struct fly_job_definition definition_of(const char *name)
{
    struct fly_job_definition definition = job_fixture_definition(name);

    definition.policy = "bayes";
    return definition;
}

static int define(const struct fly_job_definition *definition, struct fly_error *out_error)
{
    struct job_registered registered;

    return fixture.jobs.backend->define(fixture.jobs.self, definition, &registered, out_error);
}

static struct job_question question_of(const char *job, const char *gpu)
{
    struct job_question question = job_fixture_question(job);

    question.hardware.gpu_model = gpu;
    return question;
}

static size_t place(uint32_t size)
{
    size_t at = 0;

    while (world[at].size != size)
        at++;
    return at;
}

static void measure(const char *job, uint64_t trial, double epoch_s)
{
    struct fly_power_point points[FIXTURE_LIMITS];
    struct job_choice choice;
    struct fly_error error;

    for (size_t i = 0; i < FIXTURE_LIMITS; i++)
        points[i] = (struct fly_power_point){job_fixture_limits_w[i], 0.9 * job_fixture_limits_w[i],
                                             epoch_s * (1.0 + 0.3 * (double)(FIXTURE_LIMITS - 1 - i))};
    check_fine(fixture.jobs.backend->profile(fixture.jobs.self,
                                             &(struct job_profile){.job = job,
                                                                   .trial = trial,
                                                                   .points = points,
                                                                   .point_count = FIXTURE_LIMITS,
                                                                   .units_per_epoch = 1.0},
                                             &choice, &error),
               error);
}

/* Trains what is proposed; a trial that is told to stop stops. */
static struct job_proposal train(const char *job, const char *gpu)
{
    const struct job_question question = question_of(job, gpu);
    struct job_proposal proposal = job_fixture_propose(&fixture, &question);
    struct job_answered answered = {.answer = JOB_GO_ON};
    size_t at = place(proposal.batch_size);
    double epoch_s = world[at].epoch_s * (strcmp(gpu, "GPU A") == 0 ? 1.0 : 2.0);

    if (proposal.wants_profile)
        measure(job, proposal.trial, epoch_s);
    for (uint32_t i = 1; answered.answer == JOB_GO_ON; i++) {
        fixture.now_us += (int64_t)(1e6 * epoch_s);
        answered =
            job_fixture_report(&fixture, &(struct job_epoch){.job = job,
                                                             .trial = proposal.trial,
                                                             .attempt = proposal.attempt,
                                                             .epoch = i,
                                                             .metric = i >= world[at].epochs ? 1.0 : 0.0,
                                                             .energy_j = 150.0 * epoch_s * i,
                                                             .time_s = epoch_s * i,
                                                             .reference_per_kwh = NAN});
    }
    return proposal;
}

static void learn(const char *job)
{
    uint32_t best_runs = 0;

    for (int i = 0; i < NIGHTS; i++)
        best_runs += train(job, "GPU A").batch_size == BEST;
    assert_true(best_runs >= 2);
}

static int to_buffer(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    buffer_append(context, bytes, count);
    return 0;
}

/* The log of a job says all: elsewhere it goes on alike, and its decisions come out the same again. */
static void check_log(const char *job, const char *copy, const char *gpu)
{
    struct job_replay_sums sums;
    struct fly_error error;
    struct buffer log;

    buffer_init(&log, MEMORY_MAX);
    check_fine(job_export(&fixture.jobs, job, to_buffer, &log, &error), error);
    check_fine(fixture.jobs.backend->import(fixture.jobs.self, copy, log.data, log.length, &error), error);
    check_fine(job_replay(log.data, log.length, NULL, NULL, NULL, &sums, &error), error);
    assert_true(sums.proposals.compared > 0);
    assert_int_equal(sums.proposals.different + sums.profiles.different + sums.reports.different, 0);
    for (int i = 0; i < 3; i++) {
        struct job_proposal one = train(job, gpu), other = train(copy, gpu);

        assert_int_equal(one.batch_size, other.batch_size);
        assert_int_equal(one.epochs, other.epochs);
        assert_string_equal(one.why, other.why);
    }
    buffer_deinit(&log);
}

static size_t brought(const char *job)
{
    return job_fixture_count(&fixture, job, "brought", 0);
}

static void remove_job(const char *job)
{
    struct fly_error error;

    check_fine(fixture.jobs.backend->remove(fixture.jobs.self, job, &error), error);
}

/* ---- other hardware ---- */

static void test_other_hardware_begins_with_the_best(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    struct job_proposal first;

    (void)state;
    job_fixture_define(&fixture, &definition);
    learn("job");
    assert_int_equal(brought("job"), 0);
    first = train("job", "GPU B");
    assert_int_equal(brought("job"), 1);
    assert_int_equal(first.batch_size, BEST);
    train("job", "GPU B");
    train("job", "GPU A");
    assert_int_equal(brought("job"), 1); /* once for each */
    job_fixture_reopen(&fixture);
    check_log("job", "copy", "GPU B");
}

static void test_policies_that_heed_no_past_bring_none(void **state)
{
    struct fly_job_definition definition = definition_of("job");

    (void)state;
    definition.policy = "zeus";
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 4; i++)
        train("job", "GPU A");
    train("job", "GPU B");
    assert_int_equal(brought("job"), 0);
}

/* Profiles have time and power, and epochs stay: another objective needs no new runs, and no event. */
static void test_another_objective_costs_nothing(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    struct job_proposal next;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    learn("job");
    check_fine(
        fixture.jobs.backend->set(fixture.jobs.self,
                                  &(struct job_setting){.job = "job",
                                                        .set_objective = true,
                                                        .objective = {FLY_OBJECTIVE_TIME, 0.0, INFINITY},
                                                        .pin_limit_w = NAN},
                                  &error),
        error);
    next = train("job", "GPU A");
    assert_int_equal(next.batch_size, BEST);
    assert_false(next.wants_profile);
    check_double(next.limit_w, job_fixture_limits_w[FIXTURE_LIMITS - 1]); /* the fastest now */
    assert_int_equal(brought("job"), 0);
    check_log("job", "copy", "GPU A");
}

/* ---- another job ---- */

static struct job_shown shown(void)
{
    struct job_shown shown;
    struct fly_error error;

    check_fine(fixture.jobs.backend->show(fixture.jobs.self, "job", &fixture.arena, &shown, &error), error);
    return shown;
}

static void test_like_another_job(void **state)
{
    struct fly_job_definition source = definition_of("source"), definition = definition_of("job");
    struct job_proposal first, second;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &source);
    learn("source");
    definition.like = "source";
    job_fixture_define(&fixture, &definition);
    remove_job("source");
    check_fine(define(&definition, &error), error); /* it is on record: the source is not asked for */
    assert_int_equal(brought("job"), 1);
    first = train("job", "GPU A");
    assert_int_equal(first.batch_size, DEFAULT); /* the past is no evidence that others reach the target */
    assert_int_equal(first.epochs, MAX_EPOCHS);
    second = train("job", "GPU A");
    assert_int_equal(second.batch_size, BEST);
    job_fixture_reopen(&fixture);
    check_log("job", "copy", "GPU A");
}

/* A new job whose first revision is told learns from another job all the same, not from a time before. */
static void test_like_of_a_revision(void **state)
{
    struct fly_job_definition source = definition_of("source"), definition = definition_of("job");
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &source);
    learn("source");
    definition.like = "source";
    definition.revision = "one";
    check_fine(define(&definition, &error), error);
    check_fine(define(&definition, &error), error);
    assert_int_equal(brought("job"), 2);
    assert_string_equal(shown().revision, "one");
    check_contains(shown().past, "of the job 'source'");
    assert_int_equal(train("job", "GPU A").batch_size, DEFAULT);
    check_log("job", "copy", "GPU A");
}

static void test_like_is_refused(void **state)
{
    static const uint32_t others[] = {1000, 2000};
    struct fly_job_definition source = definition_of("source"), definition = definition_of("job");
    struct fly_error error;

    (void)state;
    definition.like = "nobody";
    check_fails(define(&definition, &error), FLY_ENOTFOUND, error, "'nobody'");
    job_fixture_define(&fixture, &source);
    definition.like = "source";
    check_fails(define(&definition, &error), FLY_EUSAGE, error, "has run none of its batch sizes");
    learn("source");
    definition.batch_sizes = others;
    definition.batch_count = COUNT(others);
    definition.default_batch_size = others[0];
    check_fails(define(&definition, &error), FLY_EUSAGE, error, "has run none of its batch sizes");
    definition = definition_of("job");
    definition.like = "source";
    definition.policy = "zeus";
    check_fails(define(&definition, &error), FLY_EUSAGE, error, "learns from no other job");
    definition = definition_of("job");
    check_fine(define(&definition, &error), error); /* nothing was left behind */
    assert_int_equal(brought("job"), 0);
    definition.like = "source";
    check_fails(define(&definition, &error), FLY_ECONFLICT, error,
                "learns from no other job, not from 'source'");
    definition.name = "third";
    check_fine(define(&definition, &error), error);
    definition.like = "job";
    check_fails(define(&definition, &error), FLY_ECONFLICT, error, "learns from 'source', not from 'job'");
}

/* ---- a revision ---- */

static void test_a_revision_begins_anew(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    const struct job_question question = question_of("job", "GPU A");
    struct job_proposal before, first;
    struct fly_error error;

    (void)state;
    definition.revision = "one";
    job_fixture_define(&fixture, &definition);
    assert_int_equal(brought("job"), 1);
    learn("job");
    before = job_fixture_propose(&fixture, &question); /* runs while the revision begins */
    definition.revision = "two";
    job_fixture_define(&fixture, &definition);
    job_fixture_define(&fixture, &definition);
    definition.revision = NULL; /* not told: as on record */
    job_fixture_define(&fixture, &definition);
    assert_int_equal(brought("job"), 2);
    assert_string_equal(shown().revision, "two");
    check_contains(shown().past, "before the revision");
    assert_int_equal(shown().guard_count, 1);
    assert_string_equal(shown().guards[0].text, "");
    assert_int_equal(shown().guards[0].anew_trial, 0); /* a revision is told by itself */
    check_fine(fixture.jobs.backend->set(
                   fixture.jobs.self,
                   &(struct job_setting){.job = "job", .pin_limit_w = NAN, .policy = "zeus"}, &error),
               error);
    assert_string_equal(shown().past, ""); /* zeus learns nothing of it */
    check_fine(fixture.jobs.backend->set(
                   fixture.jobs.self,
                   &(struct job_setting){.job = "job", .pin_limit_w = NAN, .policy = "bayes"}, &error),
               error);
    job_fixture_over(&fixture, before.trial, 1, TRIAL_OUT_OF_MEMORY);
    first = train("job", "GPU A");
    assert_int_equal(first.batch_size, DEFAULT);
    assert_int_equal(first.epochs, MAX_EPOCHS);
    assert_true(first.wants_profile);
    job_fixture_reopen(&fixture);
    check_log("job", "copy", "GPU A");
}

/* A trial of before shows nothing of what is trained now. */
static void test_a_trial_of_before_shows_nothing(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    const struct job_question question = question_of("job", "GPU A");
    struct job_proposal running;

    (void)state;
    job_fixture_define(&fixture, &definition);
    running = job_fixture_propose(&fixture, &question);
    measure("job", running.trial, 10);
    definition.revision = "two";
    job_fixture_define(&fixture, &definition);
    for (uint32_t i = 1; i <= 6; i++)
        job_fixture_epoch(&fixture, running.trial, 1, i, 1500.0 * i, 10.0 * i, i == 6 ? 1.0 : 0.0);
    assert_int_equal(job_fixture_outcome(&fixture, "job", running.trial), TRIAL_REACHED);
    /* Nothing has reached its target under the new revision: the default again, and no bound. */
    running = train("job", "GPU A");
    assert_int_equal(running.batch_size, DEFAULT);
    assert_int_equal(running.epochs, MAX_EPOCHS);
    job_fixture_reopen(&fixture);
    check_log("job", "copy", "GPU A");
}

/* ---- what is on record ---- */

static void test_damaged_events_are_refused(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "{\"from\":\"elsewhere\",\"source\":\"\",\"revision\":\"\",\"line\":0,\"batches\":[]}",
        "{\"from\":\"hardware\",\"source\":\"\",\"revision\":\"\",\"line\":0,\"batches\":[]}",
        "{\"from\":\"job\",\"source\":\"\",\"revision\":\"\",\"line\":0,\"batches\":[{\"batch_size\":32,"
        "\"reached\":1,\"log_epochs_mean\":1.5,\"log_epochs_squares\":-1.0,\"stopped\":0,\"stopped_epochs\":"
        "0.0,"
        "\"failed\":0,\"log_epoch_cost\":null}]}",
    };
    struct fly_job_definition definition = definition_of("job");
    struct fly_error error;
    struct buffer log;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (size_t i = 0; i < COUNT(bodies); i++) {
        buffer_init(&log, MEMORY_MAX);
        check_fine(job_export(&fixture.jobs, "job", to_buffer, &log, &error), error);
        buffer_printf(
            &log,
            "{\"number\":2,\"time_us\":1700000000000000,\"kind\":\"brought\",\"trial\":0,\"key\":\"\","
            "\"body\":%s}\n",
            bodies[i]);
        check_fails(fixture.jobs.backend->import(fixture.jobs.self, "copy", log.data, log.length, &error),
                    FLY_EDATA, error, "event 2");
        buffer_deinit(&log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_other_hardware_begins_with_the_best),
        job_test(test_policies_that_heed_no_past_bring_none),
        job_test(test_another_objective_costs_nothing),
        job_test(test_like_another_job),
        job_test(test_like_of_a_revision),
        job_test(test_like_is_refused),
        job_test(test_a_revision_begins_anew),
        job_test(test_a_trial_of_before_shows_nothing),
        job_test(test_damaged_events_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
