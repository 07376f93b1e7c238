/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic jobs: what their header promises of each kind. */
#include "test.h"

#include <flyball/cost.h>

#include "sim/world/oracle.h"
#include "sim/world/synthetic.h"

enum { JOBS = 40 };

static void make(struct workload *workload, enum synthetic_kind kind, uint32_t number)
{
    assert_int_equal(synthetic_make(workload, kind, number, NULL), 0);
    workload->spec.eta = 0.5;
}

static double epoch_cost_j(const struct workload *workload, size_t batch)
{
    double least_j = INFINITY;

    for (size_t p = 0; p < workload->batches[batch].point_count; p++) {
        const struct fly_power_point *point = &workload->batches[batch].points[p];

        least_j = fmin(least_j, fly_cost(0.5, workload->spec.max_power_w, point->time_s * point->power_w,
                                         point->time_s));
    }
    return least_j;
}

/* Returns the mean epochs of a batch size's runs, NaN if they never reach. */
static double mean_epochs(const struct workload *workload, size_t batch)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < SYNTHETIC_RUNS; i++)
        sum += workload->batches[batch].path_epochs[i];
    return sum / SYNTHETIC_RUNS;
}

static double cost_j(const struct workload *workload, size_t batch)
{
    double epochs = mean_epochs(workload, batch);

    return isnan(epochs) ? INFINITY : epochs * epoch_cost_j(workload, batch);
}

static size_t best_of(const struct workload *workload)
{
    size_t best = 0;

    for (size_t b = 1; b < workload->spec.batch_count; b++)
        best = cost_j(workload, b) < cost_j(workload, best) ? b : best;
    return best;
}

static void check_job(const struct workload *workload)
{
    const struct job_spec *spec = &workload->spec;
    const struct workload_batch *standard = &workload->batches[spec->default_batch];
    struct optimum optimum;

    assert_in_range(spec->batch_count, 8, SYNTHETIC_BATCHES_MAX);
    assert_in_range(spec->batches[0].size, 4, 32);
    assert_int_equal(oracle_find(workload, &optimum, NULL), 0);
    for (uint32_t i = 0; i < standard->path_count; i++)
        assert_true(standard->path_epochs[i] <= spec->max_epochs);
    for (size_t b = 0; b < spec->batch_count; b++) {
        assert_int_equal(spec->batches[b].size, spec->batches[0].size << b);
        assert_int_equal(workload->batches[b].point_count, 7);
        for (uint32_t i = 0; i < SYNTHETIC_RUNS; i++)
            assert_false(workload->batches[b].path_epochs[i] < 1.0);
    }
}

static void test_every_job(void **state)
{
    (void)state;
    for (int kind = 0; kind < SYNTHETIC_COUNT; kind++) {
        for (uint32_t number = 1; number <= JOBS; number++) {
            struct workload workload;

            make(&workload, (enum synthetic_kind)kind, number);
            check_job(&workload);
            workload_close(&workload);
        }
    }
}

/* The same job has the same bits; another number is another job. */
static void test_number_decides(void **state)
{
    struct workload one, same, other;

    (void)state;
    make(&one, SYNTHETIC_NOISY, 3);
    make(&same, SYNTHETIC_NOISY, 3);
    make(&other, SYNTHETIC_NOISY, 4);
    assert_string_equal(one.spec.name, "noisy-3");
    assert_int_equal(one.spec.batch_count, same.spec.batch_count);
    for (size_t b = 0; b < one.spec.batch_count; b++) {
        assert_memory_equal(one.batches[b].path_epochs, same.batches[b].path_epochs,
                            SYNTHETIC_RUNS * sizeof one.batches[b].path_epochs[0]);
        assert_memory_equal(one.batches[b].points, same.batches[b].points,
                            one.batches[b].point_count * sizeof one.batches[b].points[0]);
    }
    assert_true(one.batches[0].points[0].time_s != other.batches[0].points[0].time_s);
    workload_close(&one);
    workload_close(&same);
    workload_close(&other);
}

/* Returns the mean over jobs and batch sizes of the runs' deviation relative to their mean. */
static double mean_spread(enum synthetic_kind kind)
{
    double sum = 0.0;
    size_t count = 0;

    for (uint32_t number = 1; number <= JOBS; number++) {
        struct workload workload;

        make(&workload, kind, number);
        for (size_t b = 0; b < workload.spec.batch_count; b++) {
            double mean = mean_epochs(&workload, b), squares = 0.0;

            for (uint32_t i = 0; i < SYNTHETIC_RUNS; i++)
                squares += pow(workload.batches[b].path_epochs[i] / mean - 1.0, 2.0);
            if (mean > 10.0) { /* below, rounding to whole epochs counts for more */
                sum += sqrt(squares / (SYNTHETIC_RUNS - 1));
                count++;
            }
        }
        workload_close(&workload);
    }
    return sum / (double)count;
}

static void test_spreads(void **state)
{
    (void)state;
    check_close(mean_spread(SYNTHETIC_SMOOTH), 0.05, 0.1);
    check_close(mean_spread(SYNTHETIC_FAR), 0.1, 0.1);
    assert_true(mean_spread(SYNTHETIC_NOISY) > 0.25 && mean_spread(SYNTHETIC_NOISY) < 0.45);
}

/* Batch sizes that never reach the target lie on one side of the others, in most jobs. */
static void test_cliffs(void **state)
{
    int with_cliff = 0;

    (void)state;
    for (uint32_t number = 1; number <= JOBS; number++) {
        struct workload workload;
        int edges = 0;

        make(&workload, SYNTHETIC_CLIFF, number);
        for (size_t b = 1; b < workload.spec.batch_count; b++)
            edges += isnan(mean_epochs(&workload, b)) != isnan(mean_epochs(&workload, b - 1));
        assert_in_range(edges, 0, 1);
        with_cliff += edges;
        workload_close(&workload);
    }
    assert_true(with_cliff >= JOBS / 2);
}

/* Without bumps the mean epochs fall to one valley and rise from there; with them they need not. */
static int count_turns(const struct workload *workload)
{
    int turns = 0;

    for (size_t b = 1; b + 1 < workload->spec.batch_count; b++)
        turns += mean_epochs(workload, b) > 1.1 * mean_epochs(workload, b - 1) &&
                 mean_epochs(workload, b) > 1.1 * mean_epochs(workload, b + 1);
    return turns;
}

static void test_bumps(void **state)
{
    int smooth = 0, bumpy = 0;

    (void)state;
    for (uint32_t number = 1; number <= JOBS; number++) {
        struct workload workload;

        make(&workload, SYNTHETIC_SMOOTH, number);
        smooth += count_turns(&workload);
        workload_close(&workload);
        make(&workload, SYNTHETIC_BUMPY, number);
        bumpy += count_turns(&workload);
        workload_close(&workload);
    }
    assert_true(smooth <= 2);
    assert_true(bumpy >= JOBS / 2);
}

static void test_flat_jobs_cost_nearly_the_same(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= JOBS; number++) {
        struct workload workload;
        double least_j, most_j = 0.0;

        make(&workload, SYNTHETIC_FLAT, number);
        least_j = cost_j(&workload, best_of(&workload));
        for (size_t b = 0; b < workload.spec.batch_count; b++)
            most_j = fmax(most_j, cost_j(&workload, b));
        assert_true(most_j < 1.25 * least_j);
        workload_close(&workload);
    }
}

static void test_defaults(void **state)
{
    int far = 0;

    (void)state;
    for (int kind = 0; kind < SYNTHETIC_COUNT; kind++) {
        for (uint32_t number = 1; number <= JOBS; number++) {
            struct workload workload;
            size_t best, standard;

            make(&workload, (enum synthetic_kind)kind, number);
            best = best_of(&workload);
            standard = workload.spec.default_batch;
            assert_true(cost_j(&workload, standard) <=
                        (kind == SYNTHETIC_FAR ? 16.0 : 4.0) * cost_j(&workload, best) * (1.0 + 1e-12));
            far += kind == SYNTHETIC_FAR && (best > standard ? best - standard : standard - best) >= 4;
            workload_close(&workload);
        }
    }
    assert_true(far > JOBS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_job), cmocka_unit_test(test_number_decides),
        cmocka_unit_test(test_spreads),   cmocka_unit_test(test_cliffs),
        cmocka_unit_test(test_bumps),     cmocka_unit_test(test_flat_jobs_cost_nearly_the_same),
        cmocka_unit_test(test_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
