/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings as the world makes them: programs that end early, noisy metrics, data that grows. */
#include <math.h>

#include "test.h"

#include "job_fixture.h"

static struct job_fixture fixture;

/* ---- what a policy is told ---- */

/* A policy that runs the default and remembers what it was told last. */
static struct {
    struct trial_ended ended;
    size_t ends;
} seen;

static int watch_create(const struct batch_policy *self, const struct job_spec *spec,
                        const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                        struct fly_error *out_error)
{
    (void)self;
    (void)parameters;
    (void)out_error;
    *out_state = arena_alloc(arena, 1, sizeof(size_t));
    *(size_t *)*out_state = spec->default_batch;
    return 0;
}

static void watch_fold(void *state, const struct event *event)
{
    (void)state;
    if (event->kind != EVENT_TRIAL_ENDED)
        return;
    seen.ended = *event->ended;
    seen.ends++;
}

static int watch_propose(const void *state, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    (void)question;
    (void)out_error;
    *out_proposal = (struct proposal){.batch = *(const size_t *)state, .reason = REASON_FIXED};
    return 0;
}

static const struct batch_policy watch = {.name = "watch",
                                          .summary = "for tests",
                                          .version = 1,
                                          .create = watch_create,
                                          .fold = watch_fold,
                                          .propose = watch_propose};
static const struct batch_policy *const watches[] = {&watch, NULL};

static void begin_watch(void)
{
    memset(&seen, 0, sizeof seen);
    fixture.options.plugins = watches;
    job_fixture_reopen(&fixture);
    job_fixture_begin(&fixture, "watch");
}

/*
 * A program that ends by itself has neither failed nor crashed, whatever its client calls it; the same words
 * after all epochs are a failure.
 */
static void test_early_end(void **state)
{
    static const struct {
        const char *name;
        uint32_t epochs;
        enum trial_outcome said, told;
        bool by_itself;
    } rows[] = {
        {"early", 7, TRIAL_NOT_REACHED, TRIAL_STOPPED, true},
        {"all epochs", 20, TRIAL_NOT_REACHED, TRIAL_NOT_REACHED, false},
        {"stopped", 7, TRIAL_STOPPED, TRIAL_STOPPED, false},
        {"crashed", 7, TRIAL_CRASHED, TRIAL_CRASHED, false},
    };
    struct job_question question = job_fixture_question("job");

    (void)state;
    begin_watch();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_proposal proposal;

        print_message("# %s\n", rows[i].name);
        job_fixture_train(&fixture, &question, rows[i].epochs, 1000, 10, 0.1, &proposal);
        job_fixture_over(&fixture, proposal.trial, 1, rows[i].said);
        assert_int_equal(seen.ends, i + 1);
        assert_int_equal(seen.ended.outcome, rows[i].told);
        assert_int_equal(seen.ended.by_itself, rows[i].by_itself);
        assert_int_equal(seen.ended.crashed, rows[i].said == TRIAL_CRASHED);
        check_double(seen.ended.epochs, rows[i].epochs);
        check_double(seen.ended.energy_j, 1000.0 * rows[i].epochs);
    }
    assert_int_equal(job_fixture_outcome(&fixture, "job", 1), TRIAL_NOT_REACHED);
}

/* ---- noisy metrics ---- */

/* Reports metrics one by one, a digit each, the target being 5; returns how many were asked for. */
static size_t report_all(const char *metrics, struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question("job");
    struct job_answered answered = {0};
    size_t count = 0;

    *out_proposal = job_fixture_propose(&fixture, &question);
    for (; metrics[count] != '\0' && answered.answer == JOB_GO_ON; count++) {
        uint32_t epoch = (uint32_t)count + 1;
        double metric = metrics[count] == '-' ? NAN : (double)(metrics[count] - '0');

        /* Each report is another process's, so a snapshot must keep what was held. */
        job_fixture_reopen(&fixture);
        answered = job_fixture_epoch(&fixture, out_proposal->trial, 1, epoch, 10.0 * epoch, epoch, metric);
    }
    assert_int_equal(answered.ended, answered.answer != JOB_GO_ON);
    return count;
}

static void test_target_hold(void **state)
{
    static const struct {
        const char *metrics;
        enum job_target target;
        uint32_t hold;
        bool best;
        size_t reports; /* 0: it goes on */
        double metric;  /* at the end */
    } rows[] = {
        {"15", JOB_AT_LEAST, 0, false, 2, 5},      {"15", JOB_AT_LEAST, 1, false, 2, 5},
        {"1541566", JOB_AT_LEAST, 2, false, 6, 6}, {"1541566", JOB_AT_LEAST, 3, false, 7, 6},
        {"154", JOB_AT_LEAST, 2, true, 3, 5},      {"5-5-55", JOB_AT_LEAST, 2, false, 6, 5},
        {"5-", JOB_AT_LEAST, 2, true, 2, 5},       {"9546", JOB_AT_MOST, 2, false, 3, 4},
        {"9479", JOB_AT_MOST, 3, true, 4, 4},      {"1551551", JOB_AT_LEAST, 3, false, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_definition definition = job_fixture_definition("job");
        struct job_proposal proposal;
        struct job_history history;
        struct fly_error error;
        size_t reports;

        definition.policy = "default";
        definition.target = rows[i].target;
        definition.target_metric = 5;
        definition.target_hold = rows[i].hold;
        definition.best_so_far = rows[i].best;
        job_fixture_define(&fixture, &definition);
        job_fixture_define(&fixture, &definition); /* the same again is no conflict */
        reports = report_all(rows[i].metrics, &proposal);
        print_message("# %s, %u\n", rows[i].metrics, rows[i].hold);
        assert_int_equal(reports, rows[i].reports > 0 ? rows[i].reports : strlen(rows[i].metrics));
        history = job_fixture_history(&fixture, &fixture.arena);
        assert_int_equal(history.rows[0].running, rows[i].reports == 0);
        if (rows[i].reports > 0) {
            assert_int_equal(history.rows[0].outcome, TRIAL_REACHED);
            check_double(history.rows[0].metric, rows[i].metric);
            check_double(history.rows[0].epochs, rows[i].reports);
        }
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    }
}

/* A requeued trial that goes back to a checkpoint has to hold its target anew; one that goes on does not. */
static void test_hold_after_requeue(void **state)
{
    struct job_question question = job_fixture_question("job");

    (void)state;
    question.run = "night";
    for (uint32_t back = 0; back < 2; back++) {
        struct job_definition definition = job_fixture_definition("job");
        struct job_proposal proposal;
        struct fly_error error;

        definition.policy = "default";
        definition.target_hold = 2;
        job_fixture_define(&fixture, &definition);
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 1, 1, 10, 1, 0.1).answer, JOB_GO_ON);
        assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 1, 2, 20, 2, 0.95).answer, JOB_GO_ON);
        assert_int_equal(job_fixture_propose(&fixture, &question).attempt, 2);
        assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 2, 3 - back, 10, 1, 0.95).answer,
                         back == 0 ? JOB_REACHED : JOB_GO_ON);
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_early_end),
        job_test(test_target_hold),
        job_test(test_hold_after_requeue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
