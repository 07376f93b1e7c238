/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the policy `bayes` is: a fold and a decision among 24 batch sizes, simulated recurrences, and
 * how many bytes a job takes. Nothing here passes or fails.
 *
 *     bench_search TRACES
 *
 * TRACES is the directory of the public traces; without it the recurrences are left out.
 *
 * Times are those of the core alone, so other programs disturb them less. Each stands beside a
 * reference that is measured just before it: the Cholesky decomposition of a dense matrix of 24 rows,
 * without any library. Their ratio tells more of the policy, and less of the machine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/math/order.h"
#include "policy/bayes_belief.h"
#include "policy/decider.h"
#include "policy/law/bayes_laws.h"
#include "sim/recurring.h"
#include "sim/world/job_description.h"

enum {
    ROUNDS = 7,
    CANDIDATES = 24,
    DECISIONS = 500,
    RECURRENCES = 50,
    SEEDS = 20,
    DECOMPOSITIONS = 1000,
    LIMITS = 7,
    PATH_BYTES = 4096,
    STATE_MAX = 1 << 24
};

static volatile uint64_t sink; /* keeps the compiler from removing work whose result is not used */

static void die(const char *text)
{
    fprintf(stderr, "bench_search: %s\n", text);
    exit(1);
}

static void print(const char *what, double *values, const char *unit)
{
    qsort(values, ROUNDS, sizeof values[0], order_doubles);
    printf("%-48s %8.2f %s (%.2f .. %.2f)\n", what, values[ROUNDS / 2], unit, values[0], values[ROUNDS - 1]);
}

/* Seconds that this thread has computed. */
static double core_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the reference ---- */

static void decompose(double matrix[CANDIDATES][CANDIDATES])
{
    for (size_t row = 0; row < CANDIDATES; row++) {
        for (size_t column = 0; column <= row; column++) {
            double sum = matrix[row][column];

            for (size_t k = 0; k < column; k++)
                sum -= matrix[row][k] * matrix[column][k];
            matrix[row][column] = row == column ? sqrt(sum) : sum / matrix[column][column];
        }
    }
}

/* Microseconds of a decomposition. */
static double reference(void)
{
    double matrix[CANDIDATES][CANDIDATES], start = core_s(), sum = 0.0;

    for (int i = 0; i < DECOMPOSITIONS; i++) {
        for (size_t row = 0; row < CANDIDATES; row++) {
            for (size_t column = 0; column < CANDIDATES; column++)
                matrix[row][column] = row == column ? CANDIDATES + i : 1.0 / (double)(1 + row + column);
        }
        decompose(matrix);
        sum += matrix[CANDIDATES - 1][CANDIDATES - 1];
    }
    sink = (uint64_t)sum;
    return (core_s() - start) / DECOMPOSITIONS * 1e6;
}

/* ---- one fold and one decision ---- */

static const double limits_w[LIMITS] = {100.0, 125.0, 150.0, 175.0, 200.0, 225.0, 250.0};

static void fold(struct decider *decider, const struct event *event)
{
    struct fly_error error;

    if (decider_fold(decider, event, &error) < 0)
        die(error.text);
}

/* Tells the end of a run with 10 to 13 epochs, and before that the profile if it has none. */
static void run(struct decider *decider, size_t batch, uint64_t number)
{
    struct fly_power_point points[LIMITS];
    const struct proposal proposal = {.batch = batch};
    const struct fly_trial ended = {.trial = number,
                                    .recurrence = number,
                                    .batch = batch,
                                    .outcome = TRIAL_REACHED,
                                    .epochs = 10.0 + (double)(number * 7 % 4),
                                    .energy_j = 1.0,
                                    .time_s = 1.0};

    for (size_t i = 0; i < LIMITS; i++)
        points[i] = (struct fly_power_point){limits_w[i], 0.9 * limits_w[i],
                                             (100.0 - (double)batch) * (1.0 + 20.0 / limits_w[i])};
    if (decider_wants_profile(decider, &proposal))
        fold(decider,
             &(struct event){.kind = EVENT_PROFILE_MEASURED,
                             .measured = &(struct profile_measured){
                                 .batch = batch, .points = points, .count = LIMITS, .units_per_epoch = 1.0}});
    fold(decider, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
    fold(decider, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

struct bench_job {
    struct batch_choice batches[CANDIDATES];
    uint32_t sizes[CANDIDATES];
    struct job_spec spec;
    struct decider decider;
    struct arena arena;
};

/* A job of `count` batch sizes of which the first `known` have run once. */
static void begin(struct bench_job *job, size_t count, size_t known)
{
    const struct policy_parameters parameters = {.beta = 2.0};

    *job = (struct bench_job){.spec = {.name = "bench",
                                       .batches = job->batches,
                                       .batch_count = count,
                                       .max_epochs = 100,
                                       .max_power_w = 250.0,
                                       .eta = 0.5}};
    for (size_t i = 0; i < count; i++) {
        job->sizes[i] = (uint32_t)(8 + 8 * i * i);
        job->batches[i] = (struct batch_choice){job->sizes[i], limits_w, LIMITS};
    }
    arena_init(&job->arena, STATE_MAX);
    if (decider_init(&job->decider, &job->spec, &batch_policy_bayes, &parameters, &job->arena, NULL) < 0)
        die("no decider");
    for (size_t i = 0; i < known; i++)
        run(&job->decider, i, i);
}

static void end(struct bench_job *job)
{
    decider_deinit(&job->decider);
    arena_deinit(&job->arena);
}

/* Microseconds of a fold and a decision when `known` of the candidates have run. */
static double decide(size_t known)
{
    struct bench_job job;
    uint64_t sum = 0;
    double start;

    begin(&job, CANDIDATES, known);
    start = core_s();
    for (uint64_t i = 0; i < DECISIONS; i++) {
        struct proposal proposal;

        run(&job.decider, i % known, known + i);
        if (decider_propose(&job.decider, known + i, 0, &proposal, NULL) < 0)
            die("no proposal");
        sum += proposal.batch;
    }
    start = core_s() - start;
    sink = sum;
    end(&job);
    return start / DECISIONS * 1e6;
}

static void bench_decisions(size_t known)
{
    double micros[ROUNDS], ratios[ROUNDS];
    char what[64];

    for (int i = 0; i < ROUNDS; i++) {
        double decomposition = reference();

        micros[i] = decide(known);
        ratios[i] = micros[i] / decomposition;
    }
    snprintf(what, sizeof what, "fold and decision, %zu of %d batch sizes ran", known, CANDIDATES);
    print(what, micros, "us");
    print("  relative to the reference", ratios, "decompositions");
}

/* Kilobytes that all jobs with these batch sizes share. */
static double shared_kb(const struct bench_job *job)
{
    const struct bayes_laws *laws =
        bayes_laws_borrow(&belief_prior_default.epochs, &belief_prior_default.epoch_cost, job->sizes,
                          job->spec.batch_count, job->spec.default_batch);
    double kb;

    if (laws == NULL)
        die("no laws");
    kb = (double)bayes_laws_bytes(laws) / 1e3;
    bayes_laws_return(laws);
    return kb;
}

/* Prints what a job takes in memory, its power profiles too, and in a snapshot after so many recurrences. */
static void show_bytes(size_t count, uint64_t recurrences)
{
    struct buffer bytes;
    struct bench_job job;
    char what[64];

    begin(&job, count, count);
    for (uint64_t i = count; i < recurrences; i++)
        run(&job.decider, i % count, i);
    buffer_init(&bytes, STATE_MAX);
    decider_save(&job.decider, &bytes);
    snprintf(what, sizeof what, "a job of %zu batch sizes after %llu recurrences", count,
             (unsigned long long)recurrences);
    printf("%-48s %8.1f kB in memory, %.1f kB saved; %.1f kB shared with the jobs of the same batch sizes\n",
           what, (double)(sizeof job.decider + job.arena.used) / 1e3, (double)bytes.length / 1e3,
           shared_kb(&job));
    buffer_deinit(&bytes);
    end(&job);
}

/* ---- whole recurrences ---- */

/* Thousand simulated recurrences per second of a core: the first RECURRENCES of new jobs. */
static double simulate(const struct workload *workload, const struct batch_policy *policy)
{
    double start = core_s();

    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        const struct policy_parameters parameters = {.beta = 2.0, .seed = seed};
        struct recurring job;
        struct recurrence recurrence;

        if (recurring_init(&job, workload, policy, &parameters, NULL) < 0)
            die("no job");
        for (int i = 0; i < RECURRENCES; i++) {
            if (recurring_run(&job, &recurrence, NULL) < 0)
                die("a recurrence failed");
        }
        recurring_deinit(&job);
    }
    return RECURRENCES * SEEDS / (core_s() - start) / 1e3;
}

static void bench_workload(const char *traces, const struct job_description *job)
{
    static const struct batch_policy *const policies[] = {&batch_policy_bayes, &batch_policy_zeus};
    struct workload workload;
    struct fly_error error;
    struct trace trace;

    if (trace_open(&trace, traces, "v100", &error) < 0 || workload_open(&workload, &trace, job, &error) < 0)
        die(error.text);
    workload.spec.eta = 0.5;
    trace_close(&trace);
    for (size_t p = 0; p < 2; p++) {
        double rates[ROUNDS], ratios[ROUNDS];
        char what[64];

        for (int i = 0; i < ROUNDS; i++) {
            double decomposition = reference();

            rates[i] = simulate(&workload, policies[p]);
            ratios[i] = 1e3 / rates[i] / decomposition;
        }
        snprintf(what, sizeof what, "%s, first %d recurrences, v100/%s", policies[p]->name, RECURRENCES,
                 job->name);
        print(what, rates, "thousand/s");
        if (policies[p] == &batch_policy_bayes)
            print("  each, relative to the reference", ratios, "decompositions");
    }
    workload_close(&workload);
}

int main(int argc, char **argv)
{
    char train[PATH_BYTES];
    double micros[ROUNDS];

    if (argc != 2)
        die("usage: bench_search TRACES");
    printf("medians of %d rounds (least .. most), in time of one core\n", ROUNDS);
    for (int i = 0; i < ROUNDS; i++)
        micros[i] = reference();
    print("reference: a Cholesky decomposition, 24 rows", micros, "us");
    bench_decisions(4);
    bench_decisions(8);
    bench_decisions(CANDIDATES);
    show_bytes(8, 100);
    show_bytes(17, 100);
    show_bytes(CANDIDATES, 100);
    show_bytes(CANDIDATES, 10000);
    snprintf(train, sizeof train, "%s/summary_train.csv", argv[1]);
    if (access(train, R_OK) < 0) {
        printf("skipped: %s is absent; set FLYBALL_TEST_DATA to the directory of the recorded data\n", train);
        return 0;
    }
    for (size_t i = 0; i < known_job_count; i++)
        bench_workload(argv[1], &known_jobs[i]);
    return 0;
}
