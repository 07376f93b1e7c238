/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of recurring jobs: registered once, compared from then on, listed, exported and removed. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static void test_define(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("nightly"), other = definition;
    struct job_registered registered;
    struct fly_error error;

    (void)state;
    check_fine(at()->define(fixture.jobs.self, &definition, &registered, &error), error);
    assert_false(registered.known);
    job_fixture_reopen(&fixture);
    check_fine(at()->define(fixture.jobs.self, &definition, &registered, &error), error);
    assert_true(registered.known);
    other.beta = 1.5;
    other.max_epochs = 21;
    other.target = FLY_TARGET_AT_MOST;
    check_fails(at()->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "beta (2.0, now 1.5), target (\"at_least\", now \"at_most\"), max_epochs (20, now 21)");
    other = definition;
    other.beta = 1.1; /* as it was written, not 1.1000000000000001 */
    check_fails(at()->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "beta (2.0, now 1.1)");
    other = definition;
    other.target_hold = 3;
    other.best_so_far = true;
    check_fails(at()->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "target_hold (none, now 3), best_so_far (none, now true)");
    other = definition;
    other.beta = INFINITY;
    check_fails(at()->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "beta (2.0, now null)");
    assert_int_equal(job_fixture_count(&fixture, "nightly", "defined", 0), 1);
}

/* Of an objective that is not named, a new job gets energy within 5 %; a job on record keeps its own. */
static void test_objective_not_named(void **state)
{
    struct fly_job_definition named = job_fixture_definition("by-cost"), unnamed = named;
    struct job_registered registered;
    struct job_shown shown;
    struct fly_error error;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    named.objective = (struct fly_objective){FLY_OBJECTIVE_COST, 0.3, INFINITY};
    unnamed.objective = (struct fly_objective){FLY_OBJECTIVE_ENERGY, NAN, NAN};
    check_fine(at()->define(fixture.jobs.self, &named, &registered, &error), error);
    check_fine(at()->define(fixture.jobs.self, &unnamed, &registered, &error), error);
    assert_true(registered.known);
    unnamed.objective.max_slowdown = 1.03;
    check_fails(at()->define(fixture.jobs.self, &unnamed, &registered, &error), FLY_ECONFLICT, error, "1.03");
    unnamed.objective = (struct fly_objective){FLY_OBJECTIVE_ENERGY, 0.0, NAN};
    check_fails(at()->define(fixture.jobs.self, &unnamed, &registered, &error), FLY_ECONFLICT, error,
                "energy");
    check_fine(at()->show(fixture.jobs.self, "by-cost", &arena, &shown, &error), error);
    check_double(shown.objective.eta, 0.3);
    assert_true(isinf(shown.objective.max_slowdown));

    unnamed.name = "new";
    unnamed.objective.eta = NAN;
    check_fine(at()->define(fixture.jobs.self, &unnamed, &registered, &error), error);
    check_fine(at()->show(fixture.jobs.self, "new", &arena, &shown, &error), error);
    assert_int_equal(shown.objective.kind, FLY_OBJECTIVE_ENERGY);
    check_double(shown.objective.max_slowdown, 1.05);
    unnamed.name = "timeless";
    unnamed.no_default = true;
    unnamed.control_every = 0;
    check_fine(at()->define(fixture.jobs.self, &unnamed, &registered, &error), error);
    check_fine(at()->show(fixture.jobs.self, "timeless", &arena, &shown, &error), error);
    assert_true(isinf(shown.objective.max_slowdown));
    arena_deinit(&arena);
}

static void test_refused_definitions(void **state)
{
    static const uint32_t falling[] = {32, 16}, zero[] = {0, 32};
    struct fly_job_definition rows[20];
    static const char *const words[COUNT(rows)] = {
        "job name",
        "longer than",
        "batch_sizes is empty",
        "ascending",
        "ascending",
        "not in",
        "beta",
        "target_metric",
        "max_epochs",
        "max_epochs",
        "no policy",
        "pin it",
        "window",
        "prior",
        "target_hold",
        "above 0",
        "trains on after its target",
        "trains on after its target",
        "revision",
        "counts every result",
    };
    struct job_registered registered;
    struct fly_error error;
    char long_name[JOB_NAME_MAX + 2];

    (void)state;
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = job_fixture_definition("job");
    rows[0].name = "../job";
    rows[1].name = long_name;
    rows[2].batch_count = 0;
    rows[3].batch_sizes = falling, rows[3].batch_count = 2;
    rows[4].batch_sizes = zero, rows[4].batch_count = 2;
    rows[5].default_batch_size = 33;
    rows[6].beta = 0.0;
    rows[7].target_metric = NAN;
    rows[8].max_epochs = 0;
    rows[9].max_epochs = JOB_EPOCHS_MAX + 1;
    rows[10].policy = "zues";
    rows[11].policy = "fixed";
    rows[12].window = 100000;
    rows[13].prior_precision = -1.0;
    rows[14].target_hold = rows[14].max_epochs + 1;
    rows[15].max_metric_loss = -0.1, rows[15].trains_on = true;
    rows[16].max_metric_loss = 0.1;
    rows[17].max_metric_loss = 0.1, rows[17].trains_on = true, rows[17].target = FLY_TARGET_NONE;
    rows[18].revision = "one\ntwo";
    rows[19].window = 5, rows[19].policy = NULL; /* auto is no policy with a window */
    for (size_t i = 0; i < COUNT(rows); i++) {
        int code = at()->define(fixture.jobs.self, &rows[i], &registered, &error);

        assert_true(code == FLY_EUSAGE || code == FLY_ELIMIT);
        check_contains(error.text, words[i]);
    }
}

/* ---- all jobs ---- */

static void test_list_and_remove(void **state)
{
    static const char *const names[] = {"b", "a", "c"};
    struct job_question question = job_fixture_question("a");
    struct job_list list;
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct fly_job_definition definition = job_fixture_definition(names[i]);

        job_fixture_define(&fixture, &definition);
    }
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    job_fixture_propose(&fixture, &question);
    check_fine(at()->remove(fixture.jobs.self, "b", &error), error);
    check_fails(at()->remove(fixture.jobs.self, "b", &error), FLY_ENOTFOUND, error, "b");
    check_fine(at()->list(fixture.jobs.self, &fixture.arena, &list, &error), error);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.jobs[0].name, "a");
    assert_string_equal(list.jobs[0].policy, "zeus");
    assert_int_equal(list.jobs[0].trials, 2);
    assert_int_equal(list.jobs[0].recurrences, 2);
    assert_int_equal(list.jobs[0].running, 1);
    assert_string_equal(list.jobs[1].name, "c");
    assert_int_equal(list.jobs[1].trials, 0);
}

/* A job that is made anew under an old name begins anew, also for a handle that knew the old one. */
static void test_made_anew(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct jobs other;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 5; i++)
        job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    check_fine(jobs_open(fixture.path, &fixture.options, &other, &error), error);
    check_fine(other.backend->remove(other.self, "job", &error), error);
    definition.max_epochs = 7;
    check_fine(other.backend->define(other.self, &definition, &(struct job_registered){0}, &error), error);
    jobs_close(&other);
    assert_int_equal(job_fixture_propose(&fixture, &question).trial, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_define),
        job_test(test_objective_not_named),
        job_test(test_refused_definitions),
        job_test(test_list_and_remove),
        job_test(test_made_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
