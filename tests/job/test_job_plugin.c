/* SPDX-License-Identifier: Apache-2.0 */
/* What a plug-in of a live job is told: all that policies of Flyball itself are. */
#include "job_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/plugin_batch_policy.h"

enum { DEFAULT_EPOCHS = 4, TOLD_MAX = 1 << 16, STEPS = 600 };

static struct job_fixture fixture;
static struct plugin_batch_policy plugin;
static const struct batch_policy *plugins[2];
static char told_path[FIXTURE_PATH_MAX + 8];

static int begin(void **state)
{
    struct fly_error error;
    char path[4096];

    (void)state;
    job_fixture_open(&fixture);
    snprintf(told_path, sizeof told_path, "%s/told", fixture.directory);
    setenv("FLYBALL_TOLD", told_path, 1);
    snprintf(path, sizeof path, "%s/plugins/told.so", getenv("FLYBALL_TEST_BUILD"));
    check_fine(plugin_batch_policy_open(path, &plugin, &error), error);
    plugins[0] = &plugin.policy;
    fixture.options.plugins = plugins;
    job_fixture_reopen(&fixture);
    return 0;
}

static int end(void **state)
{
    (void)state;
    remove(told_path);
    job_fixture_close(&fixture);
    plugin_batch_policy_close(&plugin);
    return 0;
}

/* What it was told since the last call, all lines. */
static const char *told(void)
{
    static char text[TOLD_MAX];
    FILE *file = fopen(told_path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    assert_int_equal(remove(told_path), 0);
    job_fixture_reopen(&fixture); /* whose states open the file afresh, from the log */
    return text;
}

static struct fly_job_definition definition_of(const char *name)
{
    struct fly_job_definition definition = job_fixture_definition(name);

    definition.policy = "told";
    definition.policy_sha256 = plugin.policy.content;
    return definition;
}

static struct job_answered train(const char *job, const char *gpu, struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question(job);

    question.hardware.gpu_model = gpu;
    return job_fixture_train(&fixture, &question, DEFAULT_EPOCHS, 1000.0, 10.0, 1.0, out_proposal);
}

static void test_job_and_question(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    struct job_question question = job_fixture_question("job");
    const char *text;

    (void)state;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_ENERGY, 0.0, 1.03};
    job_fixture_define(&fixture, &definition);
    question.recurrences_left = 7;
    job_fixture_propose(&fixture, &question);
    text = told();
    check_contains(text, "create objective 0 eta 1 max_slowdown 1.03 gpus 1 overlapping 1 no_default 0\n");
    check_contains(text, "propose trial 0 left 7 beside 0\n");
    question.recurrences_left = 0;
    job_fixture_propose(&fixture, &question);
    check_contains(told(), "propose trial 1 left 6 beside 1\n");
}

/* A profile in steps says in which share of an epoch it was measured, and what that took. */
static void test_profile_and_epochs(void **state)
{
    static const struct fly_power_point points[] = {{100, 90, 0.03}, {150, 130, 0.02}, {200, 180, 0.02}};
    struct fly_job_definition definition = definition_of("job");
    const struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct job_choice choice;
    struct fly_error error;
    const char *text;

    (void)state;
    job_fixture_define(&fixture, &definition);
    proposal = job_fixture_propose(&fixture, &question);
    check_fine(fixture.jobs.backend->profile(fixture.jobs.self,
                                             &(struct job_profile){.job = "job",
                                                                   .trial = proposal.trial,
                                                                   .points = points,
                                                                   .point_count = COUNT(points),
                                                                   .units_per_epoch = STEPS},
                                             &choice, &error),
               error);
    text = told();
    /* 50 steps at each of three limits are a quarter of 600: 50 * (2.7 + 2.6 + 3.6) J in 50 * 0.07 s. */
    check_contains(text, "measure batch 2 points 3 chosen 1 units 600 window 0.25 energy 445 time 3.5\n");
    check_contains(text, "cap batch 2 energy 1560 time 12 highest 200 left nan\n");
}

/* A control ran that it did not propose; the program of the next trial crashed. */
static void test_ends(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    const struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    const char *text;

    (void)state;
    definition.control_every = 2;
    job_fixture_define(&fixture, &definition);
    train("job", "GPU A", &proposal);
    train("job", "GPU A", &proposal);
    proposal = job_fixture_propose(&fixture, &question);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    text = told();
    check_contains(text, "begin batch 2\n");
    check_contains(text,
                   "observe trial 0 batch 2 outcome 0 epochs 4 late 0 crashed 0 by_itself 0 dearer 0\n");
    check_contains(text, "see trial ");
    check_contains(text, " batch 2 outcome 5 epochs 0 late 0 crashed 1 by_itself 0 dearer 0\n");
}

static void test_batch_sizes_that_do_not_fit(void **state)
{
    struct fly_job_definition definition = definition_of("job");
    const struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    const char *text;

    (void)state;
    job_fixture_define(&fixture, &definition);
    proposal = job_fixture_propose(&fixture, &question);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_OUT_OF_MEMORY);
    text = told();
    check_contains(text, "bar batch 2 why 0\nbar batch 3 why 0\nbar batch 4 why 0\n");
}

/* The past of another job, of the time before a revision, and of other hardware. */
static void test_past(void **state)
{
    struct fly_job_definition source = definition_of("source"), definition = definition_of("job");
    struct job_proposal proposal;
    const char *text;

    (void)state;
    job_fixture_define(&fixture, &source);
    train("source", "GPU A", &proposal);
    train("source", "GPU A", &proposal);
    told();
    definition.like = "source";
    job_fixture_define(&fixture, &definition);
    train("job", "GPU A", &proposal);
    /* Two runs of 4 epochs; an epoch costs 0.5 * 130 W * 10.5 s + 0.5 * 200 W * 10.5 s at its best limit. */
    text = told();
    check_contains(text, "bring kind 2 batch 2 reached 2 epochs 4.0000 squares 0.0000 stopped 0 failed 0 "
                         "most 0 epoch_cost 1732.5 following 0\npropose trial 0 ");
    train("job", "GPU B", &proposal);
    check_contains(told(), "bring kind 0 batch 2 reached 1 ");
    definition.like = NULL;
    definition.revision = "two";
    job_fixture_define(&fixture, &definition);
    train("job", "GPU A", &proposal);
    text = told();
    check_contains(text, "bring kind 1 batch 2 reached 2 ");
}

int main(void)
{
#define PLUGIN_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        PLUGIN_TEST(test_job_and_question),
        PLUGIN_TEST(test_profile_and_epochs),
        PLUGIN_TEST(test_ends),
        PLUGIN_TEST(test_batch_sizes_that_do_not_fit),
        PLUGIN_TEST(test_past),
    };

    return cmocka_run_group_tests_name("job plugin", tests, NULL, NULL);
}
