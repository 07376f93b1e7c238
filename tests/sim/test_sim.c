/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated world: trace, environment, oracle, statistics, and campaigns on several threads. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <flyball/cost.h>

#include "base/buffer.h"
#include "sim/campaign.h"
#include "sim/crew.h"
#include "sim/statistics.h"
#include "sim/world/drift.h"
#include "sim/world/made_trace.h"

enum { PATH_BYTES = 256 };

/* A made-up trace in a directory of its own, and its job. */
static char directory[PATH_BYTES];
static struct trace trace;
static struct workload workload;
static struct job_description job = {.name = "made-up",
                                     .dataset = "made-up",
                                     .network = "mlp",
                                     .optimizer = "sgd",
                                     .target_metric = 0.9,
                                     .max_epochs = 100,
                                     .default_batch_size = 1024};

static void in_directory(const char *name, char path[2 * PATH_BYTES])
{
    snprintf(path, 2 * PATH_BYTES, "%s/%s", directory, name);
}

static FILE *create(const char *name)
{
    char path[2 * PATH_BYTES];
    FILE *file;

    in_directory(name, path);
    file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static int setup(void **state)
{
    struct fly_error error;
    FILE *train, *power;

    (void)state;
    strcpy(directory, "/tmp/flyball-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    train = create("summary_train.csv");
    power = create("summary_power_made-up.csv");
    made_trace_write_train(train, 1);
    made_trace_write_power(power);
    assert_int_equal(fclose(train) | fclose(power), 0);
    if (trace_open(&trace, directory, "made-up", &error) < 0 ||
        workload_open(&workload, &trace, &job, &error) < 0)
        fail_msg("%s", error.text);
    workload.spec.eta = 0.5;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"summary_train.csv", "summary_power_made-up.csv"};
    char path[2 * PATH_BYTES];

    (void)state;
    workload_close(&workload);
    trace_close(&trace);
    for (size_t i = 0; i < COUNT(names); i++) {
        in_directory(names[i], path);
        unlink(path);
    }
    return rmdir(directory);
}

static void test_workload(void **state)
{
    (void)state;
    assert_int_equal(workload.spec.batch_count, 9);
    assert_int_equal(workload.limit_count, 7);
    assert_int_equal(workload_recurrences(&workload), 2 * 9 * 7);
    assert_int_equal(workload.spec.batches[workload.spec.default_batch].size, 1024);
    check_double(workload.spec.max_power_w, 250.0);
    for (size_t b = 0; b < workload.spec.batch_count; b++) {
        const struct workload_batch *batch = &workload.batches[b];

        assert_int_equal(batch->path_count, 5);
        assert_int_equal(batch->point_count, 7);
        for (size_t p = 1; p < batch->point_count; p++) {
            assert_true(batch->points[p].limit_w > batch->points[p - 1].limit_w);
            assert_true(batch->points[p].time_s <= batch->points[p - 1].time_s);
            assert_int_equal(workload_find_limit(batch, batch->points[p].limit_w), p);
        }
        assert_int_equal(workload_find_limit(batch, 99.0), batch->point_count);
    }
}

static void test_workload_refuses(void **state)
{
    static const uint32_t with_300[] = {256, 300};
    struct job_description rows[5] = {job, job, job, job, job};
    static const char *const words[] = {"default batch size 1000", "dataset 'nothing'",
                                        "nearest in the trace is 0.9", "asks for batch size 300",
                                        "default batch size 1024"};
    static const int codes[] = {FLY_ENOTFOUND, FLY_ENOTFOUND, FLY_ENOTFOUND, FLY_EDATA, FLY_ENOTFOUND};
    static const uint32_t without_default[] = {256, 512};

    (void)state;
    rows[0].default_batch_size = 1000;
    rows[1].dataset = "nothing";
    rows[2].target_metric = 0.8;
    rows[3].batch_sizes = with_300, rows[3].batch_count = 2;
    rows[4].batch_sizes = without_default, rows[4].batch_count = 2;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct workload refused;
        struct fly_error error;

        assert_int_equal(workload_open(&refused, &trace, &rows[i], &error), codes[i]);
        check_contains(error.text, words[i]);
    }
}

static void test_environment_shares_luck(void **state)
{
    struct environment one, two, other_seed;
    size_t equal = 0;

    (void)state;
    environment_init(&one, &workload, workload.spec.name, 5, GENERATOR_PHILOX);
    environment_init(&two, &workload, workload.spec.name, 5, GENERATOR_PHILOX);
    environment_init(&other_seed, &workload, workload.spec.name, 6, GENERATOR_PHILOX);
    for (uint64_t r = 0; r < 300; r++) {
        uint32_t path = environment_draw_path(&one, r, 0, 3);

        environment_draw_path(&two, r, 1, 2); /* what else was drawn does not matter */
        assert_int_equal(environment_draw_path(&two, r, 0, 3), path);
        equal += environment_draw_path(&other_seed, r, 0, 3) == path;
    }
    assert_true(equal > 30 && equal < 90); /* a fifth by chance */
}

static void test_training(void **state)
{
    const struct workload_batch *batch = &workload.batches[3];
    double n = batch->path_epochs[2], time_s = batch->points[4].time_s, power_w = batch->points[4].power_w;
    struct training training =
        environment_train(&workload, 3, 4, workload.batches[3].path_epochs[2], 100, 0.0);

    (void)state;
    assert_true(training.ran && training.reached);
    check_double(training.time_s, time_s * n);
    check_double(training.energy_j, time_s * power_w * n);
    training = environment_train(&workload, 3, 4, workload.batches[3].path_epochs[2], 100, 1.0);
    check_close(training.time_s, batch->mean_epoch_time_s + time_s * (n - 1.0), 1e-15);
    training = environment_train(&workload, 3, 4, workload.batches[3].path_epochs[2], (uint32_t)n - 1,
                                 0.0); /* stopped one epoch short */
    assert_false(training.reached);
    check_double(training.time_s, time_s * (n - 1.0));
    training = environment_train(&workload, 3, 4, workload.batches[3].path_epochs[2], 0, 0.0);
    assert_false(training.ran);
    check_double(training.energy_j, 0.0);
    training = environment_train(&workload, 8, 0, workload.batches[8].path_epochs[4], 100,
                                 0.0); /* a run that never reaches its target */
    assert_false(training.reached);
    check_double(training.epochs, 100.0);
}

/* The expected cost against the mean of many simulated recurrences. */
static void test_oracle(void **state)
{
    struct optimum optimum;
    struct recurring recurring;
    struct recurrence recurrence;
    double sum_j = 0.0;
    const int count = 20000;

    (void)state;
    assert_int_equal(oracle_find(&workload, &optimum, NULL), 0);
    for (size_t b = 0; b < workload.spec.batch_count; b++) {
        for (size_t p = 0; p < workload.batches[b].point_count; p++) {
            const struct fly_power_point *point = &workload.batches[b].points[p];

            assert_true(optimum.cost_j <=
                        fly_cost(0.5, 250.0, point->time_s * point->power_w, point->time_s) *
                            oracle_expected_epochs(&workload, b));
        }
    }
    /* Batch 2048 reaches in one run of five, so tries are many: m + 4 * 100 epochs. */
    check_close(oracle_expected_epochs(&workload, 8), workload.batches[8].path_epochs[0] + 400.0, 1e-15);
    {
        const struct policy_parameters parameters = {.seed = 1, .fixed_batch = 8, .fixed_limit_w = 250.0};
        const struct fly_power_point *point = &workload.batches[8].points[6];
        double expected_j = fly_cost(0.5, 250.0, point->time_s * point->power_w, point->time_s) *
                            oracle_expected_epochs(&workload, 8);
        int counted = 0;

        assert_int_equal(recurring_init(&recurring, &workload, &batch_policy_fixed, &parameters, NULL), 0);
        for (int i = 0; i < count; i++) {
            if (recurring_run(&recurring, &recurrence, NULL) == 0 || recurring.refused == 0) {
                sum_j += recurrence.cost_j;
                counted++;
            }
        }
        recurring_deinit(&recurring);
        check_close(sum_j / counted, expected_j, 0.05);
    }
}

/* Within a bound it is the best of those whose expected time keeps it. */
static void test_bounded_oracle(void **state)
{
    static const double bounds[] = {1.0, 1.03, 1.2, 5.0};
    struct workload bounded = workload;

    (void)state;
    for (size_t i = 0; i < COUNT(bounds); i++) {
        const struct fly_objective objective = {FLY_OBJECTIVE_COST, 0.5, bounds[i]};
        double least_j = INFINITY;
        struct optimum optimum;

        bounded.spec.objective = &objective;
        assert_int_equal(oracle_find(&bounded, &optimum, NULL), 0);
        for (size_t at = 0; at < bounded.spec.batch_count * 7; at++) {
            const struct fly_power_point *point = &bounded.batches[at / 7].points[at % 7];
            double epochs = oracle_expected_epochs(&bounded, at / 7);

            if (point->time_s * epochs <= oracle_allowed_s(&bounded))
                least_j = fmin(least_j,
                               fly_cost(0.5, 250.0, point->time_s * point->power_w, point->time_s) * epochs);
        }
        check_close(optimum.cost_j, least_j, 1e-12);
    }
}

/* How many times the epochs all batch sizes need in a recurrence of 101. */
static double level_of(enum drift_kind kind, uint64_t recurrence)
{
    bool second_half = 2 * recurrence >= 101, second_third = recurrence >= 34 && recurrence <= 67;

    return kind == DRIFT_LEVEL && second_half      ? 1.8
           : kind == DRIFT_TRIPLE && second_half   ? 3.0
           : kind == DRIFT_GROWTH                  ? pow(1.035, (double)recurrence)
           : kind == DRIFT_UP_DOWN && second_third ? 1.8
                                                   : 1.0;
}

static void test_drift_raises_max_epochs(void **state)
{
    static const struct {
        enum drift_kind kind;
        uint32_t times;
    } cases[] = {{DRIFT_NONE, 1},   {DRIFT_JUMP, 1},    {DRIFT_LEVEL, 2},
                 {DRIFT_TRIPLE, 3}, {DRIFT_GROWTH, 33}, {DRIFT_UP_DOWN, 2}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct workload raised = workload;

        drift_raise_max_epochs(&raised, cases[i].kind, 101);
        assert_int_equal(raised.spec.max_epochs, workload.spec.max_epochs * cases[i].times);
        drift_raise_max_epochs(&raised, DRIFT_GROWTH, UINT64_MAX);
        assert_int_equal(raised.spec.max_epochs, workload.spec.max_epochs * cases[i].times * 40);
    }
}

static void test_drift(void **state)
{
    struct arena arena;
    struct drift drift;
    struct optimum still;

    (void)state;
    arena_init(&arena, 1 << 20);
    assert_int_equal(oracle_find(&workload, &still, NULL), 0);
    for (int kind = DRIFT_NONE; kind < DRIFT_COUNT; kind++) {
        assert_int_equal(drift_init(&drift, (enum drift_kind)kind, &workload, 101, &arena, NULL), 0);
        for (uint64_t r = 0; r <= 100; r++) {
            const struct optimum optimum = drift_optimum(&drift, r);
            double grown = level_of((enum drift_kind)kind, r);

            /* The best choice costs what it did, but for the common level, and no other costs less. */
            check_close(optimum.cost_j, still.cost_j * grown, 1e-12);
            for (size_t b = 0; b < workload.spec.batch_count; b++) {
                const struct fly_power_point *point =
                    &workload.batches[b].points[workload.batches[b].point_count - 1];
                double cost_j = fly_cost(0.5, 250.0, point->time_s * point->power_w, point->time_s) *
                                oracle_expected_epochs(&workload, b) * drift_factor(&drift, r, b);

                assert_true(cost_j >= optimum.cost_j * (1 - 1e-9));
            }
        }
        for (size_t b = 0; b < workload.spec.batch_count; b++)
            check_double(drift_factor(&drift, 0, b), 1.0);
    }
    assert_int_equal(drift_init(&drift, DRIFT_JUMP, &workload, 100, &arena, NULL), 0);
    check_double(drift_factor(&drift, 49, 3), 1.0);
    assert_int_equal(drift_optimum(&drift, 49).batch, still.batch);
    assert_true(drift_optimum(&drift, 50).batch >
                still.batch + 1); /* octaves apart, and the trace has one size in each */
    assert_string_equal(drift_names[DRIFT_SINE], "sine");
    arena_deinit(&arena);
}

static const struct campaign_policy policies[] = {{"zeus", &batch_policy_zeus, true},
                                                  {"grid", &batch_policy_grid, true},
                                                  {"oracle", NULL, true},
                                                  {"default", &batch_policy_default, false}};
static uint32_t seeds[] = {1, 2, 3, 4, 5, 6};

static struct campaign_plan plan_of(unsigned threads, ordered_sink *sink, void *context)
{
    return (struct campaign_plan){.workloads = &workload,
                                  .workload_count = 1,
                                  .policies = policies,
                                  .policy_count = COUNT(policies),
                                  .seeds = seeds,
                                  .seed_count = COUNT(seeds),
                                  .parameters = {.beta = 2.0},
                                  .threads = threads,
                                  .tries = sink,
                                  .tries_context = context};
}

/* Under drift the oracle still has next to no regret, since it moves along; the fixed default falls behind.
 */
static void test_oracle_follows_drift(void **state)
{
    static const enum drift_kind kinds[] = {DRIFT_SHIFT, DRIFT_JUMP, DRIFT_SINE};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct campaign_plan plan = plan_of(2, NULL, NULL);
        struct campaign campaign;
        double sum = 0.0;

        plan.drift = kinds[i];
        plan.recurrences = 400;
        assert_int_equal(campaign_run(&plan, &campaign, NULL), 0);
        for (size_t s = 0; s < COUNT(seeds); s++) {
            const struct comparison *oracle = &campaign_cell(&plan, &campaign, 0, 2)[s];

            assert_int_equal(oracle->ended, 0);
            sum += oracle->figures[FIGURE_REGRET];
        }
        assert_true(fabs(sum) < 8.0 * (double)plan.seed_count); /* in the mean, of 400 recurrences */
        campaign_free(&campaign);
    }
}

static void test_statistics(void **state)
{
    double values[] = {4.0, NAN, 1.0, 3.0, 2.0, INFINITY, 5.0}, one[] = {7.0}, none[] = {NAN};
    struct statistics result = statistics_of(values, COUNT(values));

    (void)state;
    assert_int_equal(result.count, 5);
    check_double(result.mean, 3.0);
    check_close(result.standard_error, sqrt(2.5 / 5.0), 1e-15);
    check_close(result.p10, 1.4, 1e-15);
    check_close(result.p90, 4.6, 1e-15);
    result = statistics_of(one, 1);
    check_double(result.mean, 7.0);
    assert_true(isnan(result.standard_error)); /* one run has no spread, which is not a spread of 0 */
    result = statistics_of(none, 1);
    assert_int_equal(result.count, 0);
    assert_true(isnan(result.mean));
}

static int append(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    buffer_append(context, bytes, count);
    return 0;
}

static void test_campaign_threads(void **state)
{
    struct buffer texts[3];
    struct campaign campaigns[3];
    static const unsigned threads[] = {1, 2, 7};
    struct campaign_plan plan;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        buffer_init(&texts[i], 64 << 20);
        plan = plan_of(threads[i], append, &texts[i]);
        assert_int_equal(campaign_run(&plan, &campaigns[i], NULL), 0);
    }
    for (size_t i = 1; i < 3; i++) {
        assert_string_equal(texts[i].data, texts[0].data);
        for (size_t unit = 0; unit < COUNT(policies) * COUNT(seeds); unit++) {
            for (int f = 0; f < FIGURE_COUNT; f++) {
                double a = campaigns[i].comparisons[unit].figures[f],
                       b = campaigns[0].comparisons[unit].figures[f];

                assert_memory_equal(&a, &b, sizeof a);
            }
        }
    }
    check_contains(texts[0].data, "made-up,made-up,zeus,1,0,0,1024,");
    assert_null(strstr(texts[0].data, ",default,"));
    /* The default beside itself changes nothing, and the oracle is no worse than anybody in the mean. */
    for (size_t s = 0; s < COUNT(seeds); s++) {
        check_double(campaign_cell(&plan, &campaigns[0], 0, 3)[s].figures[FIGURE_WHOLE_COST], 0.0);
        assert_true(isnan(campaign_cell(&plan, &campaigns[0], 0, 3)[s].figures[FIGURE_PAID_OFF]));
        assert_true(campaign_cell(&plan, &campaigns[0], 0, 2)[s].figures[FIGURE_WHOLE_COST] <
                    campaign_cell(&plan, &campaigns[0], 0, 0)[s].figures[FIGURE_WHOLE_COST]);
    }
    for (size_t i = 0; i < 3; i++) {
        campaign_free(&campaigns[i]);
        buffer_deinit(&texts[i]);
    }
}

static int fail_soon(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    int *calls = context;

    (void)bytes;
    (void)count;
    return ++*calls > 2 ? error_set(out_error, FLY_EWRITE, "made-up failure") : 0;
}

/* A sink that fails ends the campaign, soon, with its own message, and is not asked again. */
static void test_campaign_sink_failure(void **state)
{
    int calls = 0;
    struct campaign_plan plan = plan_of(3, fail_soon, &calls);
    struct campaign campaign;
    struct fly_error error;

    (void)state;
    plan.recurrences = 1000000;
    assert_int_equal(campaign_run(&plan, &campaign, &error), FLY_EWRITE);
    assert_string_equal(error.text, "made-up failure");
    assert_int_equal(calls, 3);
    plan.threads = CREW_THREADS_MAX + 1;
    assert_int_equal(campaign_run(&plan, &campaign, &error), FLY_ELIMIT);
}

/* A job that never reaches its target is a result, not a fault. */
static void test_hopeless_job(void **state)
{
    struct job_description hopeless = job;
    struct workload never;
    struct campaign_plan plan = plan_of(2, NULL, NULL);
    struct campaign campaign;

    (void)state;
    hopeless.max_epochs = 1;
    assert_int_equal(workload_open(&never, &trace, &hopeless, NULL), 0);
    never.spec.eta = 0.5;
    plan.workloads = &never;
    assert_int_equal(campaign_run(&plan, &campaign, NULL), 0);
    assert_true(isinf(campaign.optima[0].cost_j));
    for (size_t p = 0; p < COUNT(policies); p++) {
        const struct comparison *cell = campaign_cell(&plan, &campaign, 0, p);

        for (size_t s = 0; s < COUNT(seeds); s++) {
            assert_int_equal(cell[s].ended, FLY_EEXHAUSTED);
            assert_int_equal(cell[s].completed, 0);
            assert_true(strlen(cell[s].end.text) > 0);
            assert_true(isnan(cell[s].figures[FIGURE_WHOLE_ENERGY]));
        }
    }
    campaign_free(&campaign);
    workload_close(&never);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workload),
        cmocka_unit_test(test_workload_refuses),
        cmocka_unit_test(test_environment_shares_luck),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_bounded_oracle),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_drift_raises_max_epochs),
        cmocka_unit_test(test_oracle_follows_drift),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_campaign_threads),
        cmocka_unit_test(test_campaign_sink_failure),
        cmocka_unit_test(test_hopeless_job),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
