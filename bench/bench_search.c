/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the policy `bayes` is: a fold and a decision among 24 batch sizes, and simulated recurrences.
 * Nothing here passes or fails.
 *
 *     bench_search TRACES
 *
 * TRACES is the directory of the public traces; without it the recurrences are left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/math/order.h"
#include "policy/decider.h"
#include "sim/recurring.h"
#include "sim/world/job_description.h"

enum { ROUNDS = 7, CANDIDATES = 24, DECISIONS = 2000, RECURRENCES = 50, SEEDS = 40, PATH_BYTES = 4096 };

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

/* ---- one fold and one decision ---- */

static const double limits_w[] = {200.0};

static void fold(struct decider *decider, const struct event *event)
{
    struct fly_error error;

    if (decider_fold(decider, event, &error) < 0)
        die(error.text);
}

/* Tells the end of a run with 10 to 13 epochs, and before that the profile if it has none. */
static void run(struct decider *decider, size_t batch, uint64_t number)
{
    const struct fly_power_point point = {200.0, 180.0, 100.0 - (double)batch};
    const struct proposal proposal = {.batch = batch};
    const struct trial_ended ended = {.trial = number,
                                      .recurrence = number,
                                      .batch = batch,
                                      .outcome = TRIAL_REACHED,
                                      .epochs = 10.0 + (double)(number * 7 % 4),
                                      .energy_j = 1.0,
                                      .time_s = 1.0};

    if (decider_wants_profile(decider, &proposal))
        fold(decider,
             &(struct event){.kind = EVENT_PROFILE_MEASURED,
                             .measured = &(struct profile_measured){
                                 .batch = batch, .points = &point, .count = 1, .units_per_epoch = 1.0}});
    fold(decider, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
    fold(decider, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

/* Microseconds of a fold and a decision when `known` of the candidates have run. */
static double decide(size_t known)
{
    struct batch_choice batches[CANDIDATES];
    const struct job_spec spec = {.name = "bench",
                                  .batches = batches,
                                  .batch_count = CANDIDATES,
                                  .max_epochs = 100,
                                  .max_power_w = 200.0,
                                  .eta = 0.5};
    const struct policy_parameters parameters = {.beta = 2.0};
    struct mono_time start;
    struct decider decider;
    struct arena arena;
    uint64_t sum = 0;
    double took_s;

    for (size_t i = 0; i < CANDIDATES; i++)
        batches[i] = (struct batch_choice){(uint32_t)(8 + 8 * i * i), limits_w, 1};
    arena_init(&arena, 1 << 22);
    if (decider_init(&decider, &spec, &batch_policy_bayes, &parameters, &arena, NULL) < 0)
        die("no decider");
    for (size_t i = 0; i < known; i++)
        run(&decider, i, i);
    start = mono_now();
    for (uint64_t i = 0; i < DECISIONS; i++) {
        struct proposal proposal;

        run(&decider, i % known, known + i);
        if (decider_propose(&decider, known + i, 0, &proposal, NULL) < 0)
            die("no proposal");
        sum += proposal.batch;
    }
    took_s = mono_elapsed_s(start, mono_now());
    sink = sum;
    decider_deinit(&decider);
    arena_deinit(&arena);
    return took_s / DECISIONS * 1e6;
}

static void bench_decisions(size_t known)
{
    double micros[ROUNDS];
    char what[64];

    for (int i = 0; i < ROUNDS; i++)
        micros[i] = decide(known);
    snprintf(what, sizeof what, "fold and decision, %zu of %d batch sizes ran", known, CANDIDATES);
    print(what, micros, "us");
}

/* ---- whole recurrences ---- */

/* Thousand simulated recurrences per second: the first RECURRENCES of new jobs. */
static double simulate(const struct workload *workload, const struct batch_policy *policy)
{
    struct mono_time start = mono_now();

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
    return RECURRENCES * SEEDS / mono_elapsed_s(start, mono_now()) / 1e3;
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
        double rates[ROUNDS];
        char what[64];

        for (int i = 0; i < ROUNDS; i++)
            rates[i] = simulate(&workload, policies[p]);
        snprintf(what, sizeof what, "%s, first %d recurrences, v100/%s", policies[p]->name, RECURRENCES,
                 job->name);
        print(what, rates, "thousand/s");
    }
    workload_close(&workload);
}

int main(int argc, char **argv)
{
    char train[PATH_BYTES];

    if (argc != 2)
        die("usage: bench_search TRACES");
    printf("medians of %d rounds (least .. most)\n", ROUNDS);
    bench_decisions(4);
    bench_decisions(8);
    bench_decisions(CANDIDATES);
    snprintf(train, sizeof train, "%s/summary_train.csv", argv[1]);
    if (access(train, R_OK) < 0) {
        printf("skipped: %s is absent; set FLYBALL_TEST_DATA to the directory of the recorded data\n", train);
        return 0;
    }
    for (size_t i = 0; i < known_job_count; i++)
        bench_workload(argv[1], &known_jobs[i]);
    return 0;
}
