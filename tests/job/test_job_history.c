/* SPDX-License-Identifier: Apache-2.0 */
/* What a job's log tells: rows, reasons, and the way out and in again. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "job/past/trace_export.h"
#include "sim/recurring.h"

enum { MEMORY_MAX = 64 << 20, LOOP_RECURRENCES = 40 };

static struct job_fixture fixture;

/* ---- rows ---- */

static void test_rows(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_history read;
    struct job_proposal proposal;

    (void)state;
    job_fixture_define(&fixture, &definition);
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                .trial = 1,
                                                .attempt = 1,
                                                .outcome = TRIAL_REACHED,
                                                .energy_j = 3300,
                                                .time_s = 32});
    question.run = "17";
    job_fixture_train(&fixture, &question, 1, 1000, 10, 0.1, NULL);
    question.origin.host = "node2";
    question.origin.gpus = "GPU-2,GPU-3";
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.attempt, 2);
    job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                .trial = 2,
                                                .attempt = 2,
                                                .outcome = TRIAL_OUT_OF_MEMORY,
                                                .energy_j = 50,
                                                .time_s = 1,
                                                .text = "CUDA out of memory"});
    question.hardware.gpu_model = "Another GPU";
    job_fixture_propose(&fixture, &question);
    read = job_fixture_history(&fixture, &fixture.arena);
    assert_int_equal(read.count, 3);
    assert_int_equal(read.machine_count, 2);
    assert_string_equal(read.machines[0].gpu_model, "Test GPU");
    check_double(read.machines[0].max_power_w, 200);
    assert_int_equal(read.rows[0].outcome, TRIAL_REACHED);
    assert_int_equal(read.rows[0].trial.epochs, 3);
    assert_true(read.rows[0].trial.profiled);
    check_double(read.rows[0].trial.limit_w, 150);
    check_double(read.rows[0].trial.energy_j, 3000);
    check_double(read.rows[0].trial.whole_energy_j, 3300);
    check_double(read.rows[0].trial.cost_j, 0.5 * 3000 + 0.5 * 200 * 30);
    check_double(read.rows[0].trial.metric, 0.95);
    assert_string_equal(read.rows[0].trial.host, "node1");
    assert_int_equal(read.rows[1].outcome, TRIAL_OUT_OF_MEMORY);
    assert_int_equal(read.rows[1].trial.attempts, 2);
    check_double(read.rows[1].trial.energy_j, 1050);
    assert_string_equal(read.rows[0].trial.gpus, "GPU-1");
    assert_string_equal(read.rows[1].trial.host, "node2");
    assert_string_equal(read.rows[1].trial.gpus, "GPU-2,GPU-3");
    assert_string_equal(read.rows[1].trial.cause, "CUDA out of memory");
    assert_true(read.rows[2].running);
    assert_int_equal(read.rows[2].machine, 1);
    assert_int_equal(read.rows[2].ended_us, 0);
}

static void test_explain(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct fly_job_why explanation;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    check_fails(job_explain(&fixture.jobs, "job", 0, &fixture.arena, &explanation, &error), FLY_EEXHAUSTED,
                error, "has not run yet");
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    check_fine(job_explain(&fixture.jobs, "job", 0, &fixture.arena, &explanation, &error), error);
    assert_int_equal(explanation.trial, 2);
    assert_string_equal(explanation.reason, "explore");
    check_contains(explanation.sentence, "batch size 16 is explored");
    check_contains(explanation.sentence, "it was not tried yet");
    check_contains(explanation.numbers, "\"best_batch_size\":32");
    check_contains(explanation.numbers, "\"mean_cost_j\":4500.0");
    check_fine(job_explain(&fixture.jobs, "job", 1, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.sentence, "batch size 32");
    check_fails(job_explain(&fixture.jobs, "job", 3, &fixture.arena, &explanation, &error), FLY_ENOTFOUND,
                error, "no trial 3");
}

/* ---- out and in again ---- */

static int to_buffer(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    buffer_append(context, bytes, count);
    return 0;
}

static void test_export_and_import(void **state)
{
    enum { LONG_LINE = STORE_BODY_MAX + (65 << 10) };
    char *long_line;
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    const struct job_backend *at = fixture.jobs.backend;
    struct buffer first, second;
    struct fly_error error;
    char *name;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 12; i++)
        job_fixture_train(&fixture, &question, 3, 1000 + i, 10, i % 3 == 0 ? 0.1 : 0.95, NULL);
    check_fine(at->set(fixture.jobs.self,
                       &(struct job_setting){.job = "job",
                                             .set_objective = true,
                                             .objective = {FLY_OBJECTIVE_ENERGY, 0.5, 1.1}},
                       &error),
               error);
    buffer_init(&first, MEMORY_MAX);
    buffer_init(&second, MEMORY_MAX);
    check_fine(job_export(&fixture.jobs, "job", to_buffer, &first, &error), error);
    check_fails(at->import(fixture.jobs.self, "job", first.data, first.length, &error), FLY_ECONFLICT, error,
                "there already");
    check_fine(at->import(fixture.jobs.self, "copy", first.data, first.length, &error), error);
    check_fine(job_export(&fixture.jobs, "copy", to_buffer, &second, &error), error);
    name = strstr(second.data, "\"name\":\"copy\"");
    assert_non_null(name);
    assert_int_equal(second.length, first.length + 1);
    for (const char *at_name = "\"name\":\"job\" "; *at_name != '\0'; at_name++)
        *name++ = *at_name;
    question.job = "copy";
    assert_int_equal(job_fixture_propose(&fixture, &question).trial, 13);
    /* Cut short, and with a line out of its place. */
    check_fails(at->import(fixture.jobs.self, "bad", first.data, first.length - 10, &error), FLY_EDATA, error,
                "line");
    check_fails(at->import(fixture.jobs.self, "bad", strchr(first.data, '\n') + 1, 2000, &error), FLY_EDATA,
                error, "line 1");
    check_fails(at->import(fixture.jobs.self, "bad", "", 0, &error), FLY_EDATA, error, "no events");
    long_line = calloc(1, LONG_LINE + 1);
    assert_non_null(long_line);
    memset(long_line, ' ', LONG_LINE);
    check_fails(at->import(fixture.jobs.self, "bad", long_line, LONG_LINE, &error), FLY_ELIMIT, error,
                "longer");
    free(long_line);
    check_fails(at->remove(fixture.jobs.self, "bad", &error), FLY_ENOTFOUND, error, "bad");
    buffer_deinit(&first);
    buffer_deinit(&second);
}

/* A world without chance: what a batch size needs, and what limits do to it. */
static uint32_t epochs_of(uint32_t batch_size)
{
    return batch_size == 8 ? 12 : batch_size == 16 ? 8 : batch_size == 32 ? 7 : batch_size == 64 ? 9 : 16;
}

static void points_of(uint32_t batch_size, struct fly_power_point points[FIXTURE_LIMITS])
{
    for (size_t i = 0; i < FIXTURE_LIMITS; i++)
        points[i] = (struct fly_power_point){job_fixture_limits_w[i], job_fixture_limits_w[i] * 0.9,
                                             (1000.0 / batch_size + 20) * (1.6 - 0.3 * (double)i)};
}

struct choices {
    uint32_t batch_size[4 * LOOP_RECURRENCES];
    double limit_w[4 * LOOP_RECURRENCES];
    size_t count;
};

/* One try of the job in that world. */
static bool live_try(int recurrence, struct choices *choices)
{
    struct job_question question = job_fixture_question("job");
    struct fly_power_point points[FIXTURE_LIMITS];
    struct job_answered answered = {0};
    struct job_proposal proposal;
    double epoch_j, epoch_s, first_j = 0.0, first_s = 0.0;
    char submission[32];
    size_t point = 0;

    snprintf(submission, sizeof submission, "r%d", recurrence);
    question.submission = submission;
    proposal = job_fixture_propose(&fixture, &question);
    points_of(proposal.batch_size, points);
    if (proposal.wants_profile) {
        struct job_choice choice;
        struct fly_error error;

        check_fine(fixture.jobs.backend->profile(fixture.jobs.self,
                                                 &(struct job_profile){.job = "job",
                                                                       .trial = proposal.trial,
                                                                       .points = points,
                                                                       .point_count = FIXTURE_LIMITS,
                                                                       .units_per_epoch = 1.0},
                                                 &choice, &error),
                   error);
        proposal.limit_w = choice.limit_w;
        for (size_t i = 0; i < FIXTURE_LIMITS; i++) {
            first_j += points[i].time_s * points[i].power_w / FIXTURE_LIMITS;
            first_s += points[i].time_s / FIXTURE_LIMITS;
        }
    }
    while (points[point].limit_w != proposal.limit_w)
        point++;
    epoch_j = points[point].time_s * points[point].power_w;
    epoch_s = points[point].time_s;
    if (!proposal.wants_profile)
        first_j = epoch_j, first_s = epoch_s;
    choices->batch_size[choices->count] = proposal.batch_size;
    choices->limit_w[choices->count++] = proposal.limit_w;
    for (uint32_t epoch = 1; answered.answer == JOB_GO_ON; epoch++)
        answered = job_fixture_report(
            &fixture, &(struct job_epoch){.job = "job",
                                          .trial = proposal.trial,
                                          .attempt = 1,
                                          .epoch = epoch,
                                          .metric = epoch == epochs_of(proposal.batch_size) ? 0.95 : 0.0,
                                          .energy_j = first_j + epoch_j * (epoch - 1),
                                          .time_s = first_s + epoch_s * (epoch - 1)});
    return answered.answer == JOB_REACHED;
}

static int to_file(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    assert_int_equal(fwrite(bytes, 1, count, context), count);
    return 0;
}

static void export_to(char train_path[FIXTURE_PATH_MAX + 64], char power_path[FIXTURE_PATH_MAX + 64])
{
    struct job_trace_sinks sinks = {.train = to_file, .power = to_file};
    struct fly_error error;
    FILE *train, *power;

    snprintf(train_path, FIXTURE_PATH_MAX + 64, "%s/summary_train.csv", fixture.directory);
    snprintf(power_path, FIXTURE_PATH_MAX + 64, "%s/summary_power_test.csv", fixture.directory);
    train = fopen(train_path, "w");
    power = fopen(power_path, "w");
    assert_true(train != NULL && power != NULL);
    sinks.train_context = train;
    sinks.power_context = power;
    check_fine(job_export_trace(&fixture.jobs, "job", 0, &sinks, &error), error);
    assert_int_equal(fclose(train) | fclose(power), 0);
}

static void compare_try(void *context, const struct try_record *record)
{
    const struct choices *lived = context;

    assert_true(record->number < lived->count);
    assert_int_equal(record->batch_size, lived->batch_size[record->number]);
    check_double(record->power_limit_w, lived->limit_w[record->number]);
}

/* The job's own trace, simulated, takes its decisions again. */
static void test_trace_closes_the_loop(void **state)
{
    const struct job_description description = {.name = "job",
                                                .dataset = "job",
                                                .network = "any",
                                                .optimizer = "any",
                                                .target_metric = 0.9,
                                                .max_epochs = 20,
                                                .default_batch_size = 32};
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 7, .guard = GUARD_ON};
    char train_path[FIXTURE_PATH_MAX + 64], power_path[FIXTURE_PATH_MAX + 64];
    struct fly_job_definition definition = job_fixture_definition("job");
    struct choices *choices = calloc(1, sizeof *choices);
    struct recurring job;
    struct recurrence sums;
    struct workload workload;
    struct trace trace;
    struct fly_error error;

    (void)state;
    definition.one_at_a_time = true;
    definition.seed = 7;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < LOOP_RECURRENCES; i++) {
        while (!live_try(i, choices))
            assert_true(choices->count < COUNT(choices->limit_w));
    }
    assert_true(choices->count > LOOP_RECURRENCES);
    export_to(train_path, power_path);
    check_fine(trace_open(&trace, fixture.directory, "test", &error), error);
    check_fine(workload_open(&workload, &trace, &description, &error), error);
    trace_close(&trace);
    workload.spec.eta = 0.5;
    check_fine(recurring_init(&job, &workload, &batch_policy_zeus, &parameters, &error), error);
    job.observer = compare_try;
    job.observer_context = choices;
    for (int i = 0; i < LOOP_RECURRENCES; i++)
        check_fine(recurring_run(&job, &sums, &error), error);
    assert_int_equal(job.tries, choices->count);
    recurring_deinit(&job);
    workload_close(&workload);
    free(choices);
    unlink(train_path);
    unlink(power_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_rows),
        job_test(test_explain),
        job_test(test_export_and_import),
        job_test(test_trace_closes_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
