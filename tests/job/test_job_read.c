/* SPDX-License-Identifier: Apache-2.0 */
/* What a program reads of a job's log: <flyball/job.h>. */
#include "job_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flyball/job.h>

static struct job_fixture fixture;

/* Thirty recurrences, each third the default, which takes a fifth more energy. */
static void fill(void)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");

    definition.target = FLY_TARGET_NONE;
    definition.control_every = 3;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 30; i++)
        job_fixture_train(&fixture, &question, 20, i % 3 == 0 ? 1003 - i % 4 : 800 + i % 5,
                          i % 3 == 0 ? 10 : 10.3, 0.9, NULL);
}

static struct fly_jobs *open_jobs(void)
{
    struct fly_error error;
    struct fly_jobs *jobs;

    check_fine(fly_jobs_open(fixture.path, 0, &jobs, &error), error);
    return jobs;
}

static struct fly_job *read_job(void)
{
    struct fly_jobs *jobs = open_jobs();
    struct fly_error error;
    struct fly_job *job;

    check_fine(fly_job_read(jobs, "job", &job, &error), error);
    fly_jobs_close(jobs); /* the copy stays */
    return job;
}

static void test_list(void **state)
{
    struct fly_job_summary summary = {.size = sizeof summary};
    struct fly_error error;
    struct fly_jobs *jobs;
    size_t count = 7;

    (void)state;
    fill();
    jobs = open_jobs();
    assert_int_equal(fly_jobs_summary(jobs, 0, &summary), FLY_EUSAGE); /* nothing was listed yet */
    check_fine(fly_jobs_list(jobs, &count, &error), error);
    assert_int_equal(count, 1);
    assert_int_equal(fly_jobs_summary(jobs, 0, &summary), 0);
    assert_string_equal(summary.name, "job");
    assert_string_equal(summary.policy, "zeus");
    assert_string_equal(summary.trouble, "");
    assert_int_equal(summary.trials, 30);
    assert_int_equal(summary.recurrences, 30);
    assert_true(summary.made_unix_s > 0 && summary.made_unix_s < summary.changed_unix_s);
    assert_int_equal(fly_jobs_summary(jobs, 1, &summary), FLY_EUSAGE);
    fly_jobs_close(jobs);
    fly_jobs_close(NULL);
}

/* Every trial is the row of the history that commands show. */
static void test_trials(void **state)
{
    struct fly_job_trial trial = {.size = sizeof trial};
    struct fly_job_hardware hardware = {.size = sizeof hardware};
    struct fly_job_facts facts = {.size = sizeof facts};
    struct job_history history;
    struct fly_job *job;

    (void)state;
    fill();
    job = read_job();
    history = job_fixture_history(&fixture, &fixture.arena);
    assert_int_equal(fly_job_trial_count(job), history.count);
    for (size_t i = 0; i < history.count; i++) {
        const struct job_row *row = &history.rows[i];

        assert_int_equal(fly_job_trial(job, i, &trial), 0);
        assert_int_equal(trial.trial, row->trial.trial);
        assert_int_equal(trial.recurrence, row->trial.recurrence);
        assert_int_equal(trial.batch_size, row->trial.batch_size);
        assert_string_equal(trial.outcome, "reached");
        check_double(trial.energy_j, row->trial.energy_j);
        check_double(trial.cost_j, row->trial.cost_j);
        check_double(trial.begun_unix_s, (double)row->proposed_us / 1e6);
        assert_int_equal(trial.hardware, 1);
        assert_true(isnan(trial.carbon_g) && isnan(trial.money));
    }
    assert_int_equal(fly_job_trial(job, history.count, &trial), FLY_EUSAGE);
    assert_int_equal(fly_job_facts(job, &facts), 0);
    assert_string_equal(facts.name, "job");
    assert_string_equal(facts.objective, "cost");
    assert_true(isinf(facts.max_slowdown) && isnan(facts.pin_limit_w));
    assert_int_equal(facts.recurrences, 30);
    assert_int_equal(facts.running, 0);
    assert_int_equal(facts.hardware_count, 1);
    assert_int_equal(fly_job_hardware(job, 1, &hardware), 0);
    assert_string_equal(hardware.gpu_model, history.machines[0].gpu_model);
    check_double(hardware.highest_limit_w, 200);
    assert_int_equal(fly_job_hardware(job, 0, &hardware), FLY_EUSAGE);
    assert_int_equal(fly_job_hardware(job, 2, &hardware), FLY_EUSAGE);
    fly_job_free(job);
}

/* Of a trial that runs and has told nothing, nothing is known: no figure is 0. */
static void test_untold(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct fly_job_saving saving = {.size = sizeof saving};
    struct fly_job_trial trial = {.size = sizeof trial};
    struct fly_error error;
    struct fly_job *job;

    (void)state;
    job_fixture_define(&fixture, &definition);
    job = read_job();
    assert_int_equal(fly_job_trial_count(job), 0);
    assert_int_equal(fly_job_point_count(job, 0), 0);
    check_fails(fly_job_saving(job, 0, &saving, &error), FLY_EEXHAUSTED, error, "has not run yet");
    fly_job_free(job);
    job_fixture_propose(&fixture, &question);
    job = read_job();
    assert_int_equal(fly_job_trial(job, 0, &trial), 0);
    assert_string_equal(trial.outcome, "running");
    assert_true(isnan(trial.energy_j) && isnan(trial.time_s) && isnan(trial.cost_j));
    assert_true(isnan(trial.whole_energy_j) && isnan(trial.whole_time_s) && isnan(trial.metric));
    assert_true(isnan(trial.ended_unix_s) && trial.begun_unix_s > 0);
    check_fine(fly_job_saving(job, 0, &saving, &error), error);
    assert_false(saving.known);
    check_contains(saving.doubt, "four runs of the default");
    assert_true(isnan(saving.energy.value) && isnan(saving.time.low) && isnan(saving.ahead_j));
    assert_true(isnan(saving.baseline.model_energy_j) && isnan(saving.baseline.newest_unix_s));
    assert_int_equal(saving.earlier, 0);
    assert_true(isnan(saving.earlier_ahead_j));
    fly_job_free(job);
}

static void test_saving(void **state)
{
    struct fly_job_saving saving = {.size = sizeof saving};
    struct fly_error error;
    struct fly_job *job;

    (void)state;
    fill();
    job = read_job();
    check_fine(fly_job_saving(job, 0, &saving, &error), error);
    assert_true(saving.known);
    assert_string_equal(saving.doubt, "");
    assert_int_equal(saving.hardware, 1);
    check_close(saving.energy.value, 0.2, 0.01);
    assert_true(saving.energy.low > 0.19 && saving.energy.high < 0.21);
    check_close(saving.time.value, -0.03, 1e-6);
    assert_int_equal(saving.baseline.runs, 10);
    assert_int_equal(saving.tuned.runs, 19);
    assert_true(saving.paid_off);
    assert_int_equal(saving.paid_off_at, 1);
    check_fails(fly_job_saving(job, 2, &saving, &error), FLY_EUSAGE, error, "there is no number 2");
    saving.size = 8;
    check_fails(fly_job_saving(job, 1, &saving, &error), FLY_EUSAGE, error, "size 8");
    fly_job_free(job);
}

static void test_points(void **state)
{
    struct fly_job_point point = {.size = sizeof point}, former = {.time_s = {0}};
    size_t chosen = 0, defaults = 0, count;
    uint32_t batch_size;
    const char *why;
    struct fly_job *job;

    (void)state;
    fill();
    job = read_job();
    count = fly_job_point_count(job, 0);
    assert_true(count >= 2);
    assert_int_equal(fly_job_point_count(job, 1), count);
    assert_int_equal(fly_job_point_count(job, 2), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fly_job_point(job, 0, i, &point), 0);
        assert_true(point.time_s.value >= former.time_s.value);
        assert_true(point.energy_j.low < point.energy_j.value && point.energy_j.value < point.energy_j.high);
        check_close(point.cost_j, 0.5 * point.energy_j.value + 0.5 * 200 * point.time_s.value, 1e-6);
        assert_true(point.on_frontier || !point.is_chosen);
        chosen += point.is_chosen;
        defaults += point.is_default;
        former = point;
    }
    assert_int_equal(chosen, 1);
    assert_int_equal(defaults, 1);
    assert_int_equal(fly_job_point(job, 0, count, &point), FLY_EUSAGE);
    assert_true(fly_job_left_out_count(job, 0) > 0);
    assert_int_equal(fly_job_left_out(job, 0, 0, &batch_size, &why), 0);
    assert_int_equal(batch_size, 8);
    check_contains(why, "no trial of it has reached the target yet");
    assert_int_equal(fly_job_left_out(job, 0, 64, &batch_size, &why), FLY_EUSAGE);
    fly_job_free(job);
}

static void test_why(void **state)
{
    struct fly_job_why why = {.size = sizeof why};
    struct fly_error error;
    struct fly_jobs *jobs;

    (void)state;
    fill();
    jobs = open_jobs();
    check_fine(fly_job_why(jobs, "job", 0, &why, &error), error);
    assert_int_equal(why.trial, 30);
    check_fine(fly_job_why(jobs, "job", 1, &why, &error), error);
    assert_int_equal(why.trial, 1);
    assert_int_equal(why.recurrence, 0);
    assert_string_equal(why.reason, "control");
    check_contains(why.sentence, "batch size 32");
    assert_int_equal(why.numbers[0], '{');
    check_fails(fly_job_why(jobs, "job", 31, &why, &error), FLY_ENOTFOUND, error, "its newest is 30");
    check_fails(fly_job_why(jobs, "jbo", 1, &why, &error), FLY_ENOTFOUND, error, "did you mean 'job'?");
    fly_jobs_close(jobs);
}

static void test_unknown(void **state)
{
    struct fly_jobs *jobs;
    struct fly_error error;
    struct fly_job *job;

    (void)state;
    fill();
    jobs = open_jobs();
    check_fails(fly_job_read(jobs, "jo", &job, &error), FLY_ENOTFOUND, error, "did you mean 'job'?");
    check_fails(fly_job_read(jobs, "else", &job, &error), FLY_ENOTFOUND, error, "which has 1");
    fly_jobs_close(jobs);
    check_fails(fly_jobs_open("/nowhere/at/all", 0, &jobs, &error), FLY_ENOTFOUND, error, "/nowhere");
    check_fails(fly_jobs_open(NULL, NAN, &jobs, &error), FLY_EUSAGE, error, "wait_s");
    fly_job_free(NULL);
}

/* A user without a store has no jobs; reading makes no store. */
static void test_no_store(void **state)
{
    char own[FIXTURE_PATH_MAX + 32];
    size_t count = 7;
    struct fly_jobs *jobs;
    struct fly_error error;
    struct fly_job *job;

    (void)state;
    snprintf(own, sizeof own, "%s/own", fixture.directory);
    setenv("XDG_DATA_HOME", own, 1);
    setenv("XDG_STATE_HOME", own, 1);
    setenv("HOME", own, 1);
    unsetenv("FLYBALL_STORE");
    check_fine(fly_jobs_open(NULL, 0, &jobs, &error), error);
    check_fine(fly_jobs_list(jobs, &count, &error), error);
    assert_int_equal(count, 0);
    check_fails(fly_job_read(jobs, "job", &job, &error), FLY_ENOTFOUND, error, "no job 'job'");
    fly_jobs_close(jobs);
    assert_int_equal(access(own, F_OK), -1);
    setenv("FLYBALL_STORE", "/nowhere/at/all", 1);
    check_fails(fly_jobs_open(NULL, 0, &jobs, &error), FLY_ENOTFOUND, error, "/nowhere");
    unsetenv("FLYBALL_STORE");
}

static void test_fork(void **state)
{
    struct fly_jobs *jobs;
    pid_t child;
    int status;

    (void)state;
    fill();
    jobs = open_jobs();
    child = fork();
    if (child == 0) {
        struct fly_job *job;
        size_t count;
        bool inert = fly_jobs_list(jobs, &count, NULL) == FLY_ESTATE &&
                     fly_job_read(jobs, "job", &job, NULL) == FLY_ESTATE;

        fly_jobs_close(jobs);
        _exit(inert ? 42 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 42);
    fly_jobs_close(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_list),    job_test(test_trials),   job_test(test_untold),
        job_test(test_saving),  job_test(test_points),   job_test(test_why),
        job_test(test_unknown), job_test(test_no_store), job_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
