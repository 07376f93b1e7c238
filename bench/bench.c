/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Benchmarks: each line is a figure, its spread, and its ratio to a reference measured in the same run.
 * Nothing here passes or fails.
 *
 *     bench FLYBALL TRACES
 *
 * FLYBALL is the program, for figures of whole processes; TRACES is the directory of the public traces.
 * Without the traces the benchmark says so and ends; it does not replace them by made-up ones.
 */
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/math/order.h"
#include "base/math/ziggurat.h"
#include "sim/campaign.h"
#include "sim/group_campaign.h"
#include "sim/world/made_groups.h"

enum { ROUNDS = 7, PROCESS_ROUNDS = 31, RECURRENCES = 1000000, PATH_BYTES = 4096 };

/* Keeps the compiler from removing work whose result is not used. */
static volatile double sink;

struct spread {
    double least, median, most;
};

static struct spread spread_of(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], order_doubles);
    return (struct spread){values[0], values[count / 2], values[count - 1]};
}

static void die(const char *text)
{
    fprintf(stderr, "bench: %s\n", text);
    exit(1);
}

static void load(const char *traces, const char *name, struct workload *out_workload)
{
    const struct job_description *job = known_jobs;
    struct trace trace;
    struct fly_error error;

    while (strcmp(job->name, name) != 0)
        job++;
    if (trace_open(&trace, traces, "v100", &error) < 0 ||
        workload_open(out_workload, &trace, job, &error) < 0)
        die(error.text);
    out_workload->spec.eta = 0.5;
    trace_close(&trace);
}

static struct policy_parameters parameters_of(enum generator generator)
{
    return (struct policy_parameters){.beta = 2.0, .seed = 1, .generator = generator};
}

/* Seconds of processor time for `count` recurrences of zeus, from the current state of `job`. */
static double run_recurrences(struct recurring *job, uint64_t count)
{
    struct mono_time start = mono_now();
    double sum_j = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        struct recurrence recurrence;
        struct fly_error error;

        if (recurring_run(job, &recurrence, &error) < 0)
            die(error.text);
        sum_j += recurrence.cost_j;
    }
    sink = sum_j;
    return mono_elapsed_s(start, mono_now());
}

/* As many draws as those recurrences need, and nothing else: `arms` normals and one path each. */
static double only_draw(const struct workload *workload, enum generator generator, size_t arms,
                        uint64_t count)
{
    struct environment environment;
    struct philox_key key = philox_key(1, workload->spec.name);
    struct numpy_random random = numpy_random_seed(1);
    struct mono_time start;
    double sum = 0.0;

    environment_init(&environment, workload, workload->spec.name, 1, generator);
    start = mono_now();
    for (uint64_t i = 0; i < count; i++) {
        if (generator == GENERATOR_NUMPY) {
            numpy_random_skip_permutation(&random, (uint32_t)arms);
            for (size_t a = 0; a < arms; a++)
                sum += numpy_random_normal(&random);
        } else {
            struct philox philox = philox_open(key, 0, i, 0);
            uint64_t words[64];

            philox_fill(&philox, words, arms);
            for (size_t a = 0; a < arms; a++)
                sum += ziggurat_normal(ziggurat_tables(), words[a], philox_source, &philox);
        }
        sum += environment_draw_path(&environment, i, 0, 0);
    }
    sink = sum;
    return mono_elapsed_s(start, mono_now());
}

/* For how many batch sizes the job still draws: those that survived exploration, counted by what it tries. */
static size_t count_arms(const struct workload *workload, enum generator generator)
{
    const struct policy_parameters parameters = parameters_of(generator);
    struct recurring job;
    struct recurrence recurrence;
    bool seen[JOB_BATCHES_MAX][2] = {{false}};
    size_t arms = 0;

    /* A surviving size was reached in both rounds of exploration; count sizes tried twice. */
    recurring_init(&job, workload, &batch_policy_zeus, &parameters, NULL);
    for (size_t i = 0; i < 2 * workload->spec.batch_count; i++) {
        recurring_run(&job, &recurrence, NULL);
        seen[recurrence.batch][seen[recurrence.batch][0]] = true;
    }
    for (size_t b = 0; b < workload->spec.batch_count; b++)
        arms += seen[b][1];
    recurring_deinit(&job);
    return arms;
}

static void bench_recurrences(const struct workload *workload, enum generator generator, const char *name)
{
    const struct policy_parameters parameters = parameters_of(generator);
    size_t arms = count_arms(workload, generator);
    double zeus_s[ROUNDS], draws_s[ROUNDS], ratios[ROUNDS];
    struct spread zeus, ratio;

    for (int i = 0; i < ROUNDS; i++) {
        struct recurring job;

        recurring_init(&job, workload, &batch_policy_zeus, &parameters, NULL);
        zeus_s[i] = run_recurrences(&job, RECURRENCES);
        recurring_deinit(&job);
        draws_s[i] = only_draw(workload, generator, arms, RECURRENCES);
        ratios[i] = zeus_s[i] / draws_s[i];
    }
    zeus = spread_of(zeus_s, ROUNDS);
    ratio = spread_of(ratios, ROUNDS);
    printf("zeus, %s, v100/librispeech     %5.2f million recurrences/s and core (%.2f .. %.2f); %.2f times "
           "the time "
           "(%.2f .. %.2f) of a loop that only draws its %zu numbers\n",
           name, RECURRENCES / zeus.median / 1e6, RECURRENCES / zeus.most / 1e6,
           RECURRENCES / zeus.least / 1e6, ratio.median, ratio.least, ratio.most, arms + 1);
}

static void bench_flat(const struct workload *workload)
{
    const struct policy_parameters parameters = parameters_of(GENERATOR_PHILOX);
    struct recurring job;
    uint64_t done = 0;
    double first_ns = 0.0;

    recurring_init(&job, workload, &batch_policy_zeus, &parameters, NULL);
    for (uint64_t until = 10000; until <= 10000000; until *= 10) {
        double ns = run_recurrences(&job, until - done) / (double)(until - done) * 1e9;

        if (first_ns == 0.0)
            first_ns = ns;
        printf("cost per recurrence                %5.0f ns from %llu to %llu; %.2f times the first 10000\n",
               ns, (unsigned long long)done, (unsigned long long)until, ns / first_ns);
        done = until;
    }
    recurring_deinit(&job);
}

static double run_campaign(const struct workload *workload, unsigned threads)
{
    static const struct campaign_policy policies[] = {{"zeus", &batch_policy_zeus, false}};
    uint32_t seeds[16];
    struct campaign_plan plan = {.workloads = workload,
                                 .workload_count = 1,
                                 .policies = policies,
                                 .policy_count = 1,
                                 .seeds = seeds,
                                 .seed_count = 16,
                                 .recurrences = RECURRENCES / 10,
                                 .parameters = parameters_of(GENERATOR_PHILOX),
                                 .threads = threads};
    struct mono_time start = mono_now();
    struct campaign campaign;
    struct fly_error error;

    for (uint32_t i = 0; i < 16; i++)
        seeds[i] = i + 1;
    if (campaign_run(&plan, &campaign, &error) < 0)
        die(error.text);
    campaign_free(&campaign);
    return mono_elapsed_s(start, mono_now());
}

static void bench_threads(const struct workload *workload)
{
    double ratios[ROUNDS];
    struct spread ratio;

    for (int i = 0; i < ROUNDS; i++) {
        double one_s = run_campaign(workload, 1);

        ratios[i] = one_s / run_campaign(workload, 2);
    }
    ratio = spread_of(ratios, ROUNDS);
    printf("two threads                        %5.2f times one thread (%.2f .. %.2f), 16 seeds, %ld "
           "processors\n",
           ratio.median, ratio.least, ratio.most, sysconf(_SC_NPROCESSORS_ONLN));
}

/* Seconds to run made-up groups of one job through zeus, from reading the file to the sums. */
static double run_groups(const struct workload *workload, const struct group_file *file,
                         const size_t *workloads, unsigned threads)
{
    static const struct campaign_policy policies[] = {{"zeus", &batch_policy_zeus, false}};
    static const uint32_t seeds[] = {1};
    const struct group_plan plan = {.file = file,
                                    .workloads = workload,
                                    .group_workloads = workloads,
                                    .policies = policies,
                                    .policy_count = 1,
                                    .seeds = seeds,
                                    .seed_count = 1,
                                    .parameters = parameters_of(GENERATOR_PHILOX),
                                    .threads = threads};
    struct mono_time start = mono_now();
    struct group_result *results;
    struct fly_error error;

    if (group_campaign_run(&plan, &results, &error) < 0)
        die(error.text);
    free(results);
    return mono_elapsed_s(start, mono_now());
}

static void bench_groups(const struct workload *workload)
{
    static const char *const datasets[] = {"librispeech"};
    static const struct made_groups made = {
        .datasets = datasets, .dataset_count = 1, .groups = 200, .submissions = RECURRENCES, .seed = 1};
    char path[] = "/tmp/flyball-bench-XXXXXX";
    static size_t workloads[1024];
    double rates[ROUNDS], ratios[ROUNDS], speedups[ROUNDS];
    struct spread rate, ratio, speedup;
    struct group_file file;
    struct fly_error error;
    int fd = mkstemp(path);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");

    if (stream == NULL)
        die("making a temporary file failed");
    made_groups_write(stream, &made);
    if (fclose(stream) != 0 || group_file_open(&file, path, path, &error) < 0)
        die("writing a temporary file failed");
    for (int i = 0; i < ROUNDS; i++) {
        const struct policy_parameters parameters = parameters_of(GENERATOR_PHILOX);
        double one_s = run_groups(workload, &file, workloads, 1);
        struct recurring job;

        recurring_init(&job, workload, &batch_policy_zeus, &parameters, NULL);
        ratios[i] = one_s / run_recurrences(&job, RECURRENCES);
        recurring_deinit(&job);
        rates[i] = RECURRENCES / one_s / 1e6;
        speedups[i] = one_s / run_groups(workload, &file, workloads, 2);
    }
    group_file_close(&file);
    unlink(path);
    rate = spread_of(rates, ROUNDS);
    ratio = spread_of(ratios, ROUNDS);
    speedup = spread_of(speedups, ROUNDS);
    printf("overlapping groups, zeus, 1 thread %5.2f million submissions/s (%.2f .. %.2f), read from CSV; "
           "%.2f times the "
           "time (%.2f .. %.2f) of as many recurrences of a single job; two threads %.2f times as fast (%.2f "
           ".. %.2f)\n",
           rate.median, rate.least, rate.most, ratio.median, ratio.least, ratio.most, speedup.median,
           speedup.least, speedup.most);
}

/* Runs a program and discards its output; returns seconds, and peak memory in bytes. */
static double run_process(char *const *arguments, double *out_peak_bytes)
{
    posix_spawn_file_actions_t actions;
    struct mono_time start = mono_now();
    struct rusage usage;
    int status;
    pid_t child;

    if (arguments[0] == NULL)
        die("no program to start");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&child, arguments[0], &actions, NULL, arguments, environ) != 0)
        die("starting the program failed");
    posix_spawn_file_actions_destroy(&actions);
    if (wait4(child, &status, 0, &usage) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("the program failed");
    *out_peak_bytes = (double)usage.ru_maxrss * 1024.0;
    return mono_elapsed_s(start, mono_now());
}

enum { WORDS_MAX = 16 };

/* The least, median and greatest milliseconds of a process, and its peak memory. */
static struct spread time_process(const char *const *words, double *out_peak_bytes)
{
    char *arguments[WORDS_MAX + 1] = {NULL};
    double ms[PROCESS_ROUNDS];

    *out_peak_bytes = 0.0;
    for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++)
        arguments[i] = strdup(words[i]);
    for (int i = 0; i < PROCESS_ROUNDS; i++) {
        double peak_bytes;

        ms[i] = run_process(arguments, &peak_bytes) * 1e3;
        *out_peak_bytes = fmax(*out_peak_bytes, peak_bytes);
    }
    for (size_t i = 0; arguments[i] != NULL; i++)
        free(arguments[i]);
    return spread_of(ms, PROCESS_ROUNDS);
}

static void bench_process(const char *flyball, const char *traces)
{
    const char *const simulate[] = {flyball, "sim",       "job",        "--traces",    traces,
                                    "--gpu", "v100",      "--workload", "librispeech", "--seeds",
                                    "1",     "--threads", "1",          NULL};
    const char *const nothing[] = {flyball, "version", NULL};
    double peak_bytes, unused;
    struct spread process = time_process(simulate, &peak_bytes), reference = time_process(nothing, &unused);

    printf("one workload and seed, process     %5.1f ms (%.1f .. %.1f), at most %.1f MiB; %.1f times "
           "`flyball version` "
           "(%.1f ms)\n",
           process.median, process.least, process.most, peak_bytes / (1 << 20),
           process.median / reference.median, reference.median);
}

int main(int argc, char **argv)
{
    struct workload workload;
    char train[PATH_BYTES];

    if (argc != 3)
        die("usage: bench FLYBALL TRACES");
    snprintf(train, sizeof train, "%s/summary_train.csv", argv[2]);
    if (access(train, R_OK) < 0) {
        printf("skipped: %s is absent; set FLYBALL_TEST_DATA to the directory of the recorded data\n", train);
        return 0;
    }
    load(argv[2], "librispeech", &workload);
    printf("medians of %d rounds (least .. most)\n", ROUNDS);
    bench_recurrences(&workload, GENERATOR_PHILOX, "philox");
    bench_recurrences(&workload, GENERATOR_NUMPY, "numpy ");
    bench_flat(&workload);
    bench_threads(&workload);
    bench_groups(&workload);
    bench_process(argv[1], argv[2]);
    workload_close(&workload);
    return 0;
}
