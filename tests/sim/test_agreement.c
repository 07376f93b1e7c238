/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `zeus` with the product's own generator against recorded runs of
 * the published code: other luck, the same law. For each GPU and job the means
 * of total energy, time and cost over 100 seeds and over the recorded seeds lie
 * within three standard errors of their difference. The deviation is pooled
 * over both samples, since both are to follow one law and ten runs alone tell
 * little about their own spread.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/recurring.h"
#include "test_data.h"

enum { SEEDS = 100, JOBS_MAX = 64, RUNS_MAX = 64, FIELDS_MAX = 32, TOTALS = 3 };
enum { H_GPU = 0, H_DATASET = 1, H_SEED = 2, H_ENERGY = 12, H_TIME = 13, H_COST = 14, H_COUNT = 15 };

static const char *const total_names[TOTALS] = {"energy", "time", "cost"};

/* The recorded runs of one job: totals over all tries of each seed. */
struct recorded {
    char gpu[32], dataset[64];
    unsigned long seeds[RUNS_MAX];
    double totals[TOTALS][RUNS_MAX];
    size_t runs;
};

static struct recorded *find_job(struct recorded *jobs, size_t *count, const char *gpu, const char *dataset)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(jobs[i].gpu, gpu) == 0 && strcmp(jobs[i].dataset, dataset) == 0)
            return &jobs[i];
    }
    assert_true(*count < JOBS_MAX);
    snprintf(jobs[*count].gpu, sizeof jobs[0].gpu, "%s", gpu);
    snprintf(jobs[*count].dataset, sizeof jobs[0].dataset, "%s", dataset);
    return &jobs[(*count)++];
}

static void add_try(struct recorded *job, char **fields)
{
    unsigned long seed = strtoul(fields[H_SEED], NULL, 10);

    if (job->runs == 0 || job->seeds[job->runs - 1] != seed) {
        assert_true(job->runs < RUNS_MAX);
        job->seeds[job->runs++] = seed;
    }
    for (int t = 0; t < TOTALS; t++)
        job->totals[t][job->runs - 1] += strtod(fields[H_ENERGY + t], NULL);
}

static size_t load_recorded(struct recorded *jobs)
{
    char path[TEST_PATH_MAX], line[1024];
    char *fields[FIELDS_MAX];
    size_t count = 0;
    FILE *file;

    test_data_need("golden/history.csv.xz", path);
    file = test_data_open(path);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        assert_int_equal(test_data_split(line, fields, FIELDS_MAX), H_COUNT);
        add_try(find_job(jobs, &count, fields[H_GPU], fields[H_DATASET]), fields);
    }
    pclose(file);
    assert_true(count > 0);
    return count;
}

static void simulate(const struct workload *workload, double totals[TOTALS][SEEDS])
{
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        const struct policy_parameters parameters = {.beta = 2.0, .seed = seed + 1};
        struct recurring job;

        assert_int_equal(recurring_init(&job, workload, &batch_policy_zeus, &parameters, NULL), 0);
        for (uint64_t i = 0; i < workload_recurrences(workload); i++) {
            struct recurrence recurrence;

            assert_int_equal(recurring_run(&job, &recurrence, NULL), 0);
            totals[0][seed] += recurrence.energy_j;
            totals[1][seed] += recurrence.time_s;
            totals[2][seed] += recurrence.cost_j;
        }
        recurring_deinit(&job);
    }
}

/* Sum and sum of squared distances from the mean. */
static void sums_of(const double *values, size_t count, double *out_mean, double *out_squares)
{
    double sum = 0.0, squares = 0.0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - sum / (double)count) * (values[i] - sum / (double)count);
    *out_mean = sum / (double)count;
    *out_squares = squares;
}

static void check_means(const struct recorded *job, double totals[TOTALS][SEEDS])
{
    for (int t = 0; t < TOTALS; t++) {
        double ours, theirs, our_squares, their_squares, error, n = (double)job->runs;

        sums_of(totals[t], SEEDS, &ours, &our_squares);
        sums_of(job->totals[t], job->runs, &theirs, &their_squares);
        error = sqrt((our_squares + their_squares) / (SEEDS + n - 2.0) * (1.0 / SEEDS + 1.0 / n));
        print_message("# %s/%s %s: %.6g, recorded %.6g, %.2f standard errors\n", job->gpu, job->dataset,
                      total_names[t], ours, theirs, error > 0.0 ? (ours - theirs) / error : 0.0);
        /* A job whose runs are all equal has only rounding between them. */
        if (!(fabs(ours - theirs) <= 3.0 * error + 1e-12 * theirs))
            fail_msg("%s/%s: mean %s is %.9g, recorded %.9g, standard error %.3g", job->gpu, job->dataset,
                     total_names[t], ours, theirs, error);
    }
}

static void test_means_agree(void **state)
{
    static struct recorded jobs[JOBS_MAX];
    char directory[TEST_PATH_MAX];
    size_t count = load_recorded(jobs);

    (void)state;
    test_data_need("zeus_nsdi23", directory);
    for (size_t i = 0; i < count; i++) {
        static double totals[TOTALS][SEEDS];
        const struct job_description *job = known_jobs;
        struct workload workload;
        struct trace trace;

        while (strcmp(job->name, jobs[i].dataset) != 0)
            job++;
        assert_int_equal(trace_open(&trace, directory, jobs[i].gpu, NULL), 0);
        assert_int_equal(workload_open(&workload, &trace, job, NULL), 0);
        workload.spec.eta = 0.5;
        memset(totals, 0, sizeof totals);
        simulate(&workload, totals);
        check_means(&jobs[i], totals);
        workload_close(&workload);
        trace_close(&trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_means_agree)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
