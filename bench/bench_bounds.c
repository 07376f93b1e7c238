/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well the policy `bayes` keeps a bound on the slowdown, and what the bound costs it: jobs of the
 * traces, or synthetic ones, with a control in every tenth of 50 recurrences. Nothing here passes or fails.
 *
 *     bench_bounds SEEDS [TRACES GPU...]
 *
 * Pairs run in recurrences 31 to 50, controls left out, are judged by the expectation of the trace: the
 * mean of their expected times against what the bound allows, and of their expected energies against the
 * least under a bound stricter by 5 %.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/decider.h"
#include "sim/recurring.h"
#include "sim/world/job_description.h"
#include "sim/world/oracle.h"
#include "sim/world/synthetic.h"

enum { RECURRENCES = 50, JUDGED_FROM = 30, CONTROL_EVERY = 10, SYNTHETIC_JOBS = 4 };

static const double bounds[] = {1.0, 1.03, 1.1, 1.2};
static const double tolerated = 1.02, stricter = 1.05;
static uint32_t seeds;

struct tally {
    uint32_t runs, beyond, dear, ended;
    double excess, energy; /* sums: of time / allowed, and energy / least, less 1 */
};

static void die(const char *text)
{
    fprintf(stderr, "bench_bounds: %s\n", text);
    exit(1);
}

/* ---- one job's life ---- */

/* Runs the default at its highest limit; the policy sees what it took. */
static void run_control(struct recurring *job, uint64_t recurrence)
{
    const struct workload *workload = job->workload;
    size_t batch = workload->spec.default_batch, point = workload->batches[batch].point_count - 1;
    uint32_t path, most = workload->spec.max_epochs;
    double target = environment_target_epoch(
        &job->environment, &(struct training_order){UINT32_MAX + recurrence, 0, batch, most}, &path);
    struct training training = environment_train(workload, batch, point, target, most, 0.0);
    const struct fly_trial ended = {.batch = batch,
                                    .limit_w = workload->batches[batch].points[point].limit_w,
                                    .outcome = training.reached ? TRIAL_REACHED : TRIAL_NOT_REACHED,
                                    .epochs = training.epochs,
                                    .energy_j = training.energy_j,
                                    .time_s = training.time_s};
    struct fly_error error;

    if (decider_fold(&job->decider, &(struct event){.kind = EVENT_TRIAL_SEEN, .ended = &ended}, &error) < 0)
        die(error.text);
}

/* Gives what the pairs of the judged recurrences take in the mean; returns false if the job ended. */
static bool live(const struct workload *workload, uint32_t seed, double *out_time_s, double *out_energy_j)
{
    struct recurring job;
    struct recurrence sums;
    struct fly_error error;
    double time_s = 0.0, energy_j = 0.0, count = 0.0;
    int code = recurring_init(&job, workload, &batch_policy_bayes,
                              &(struct policy_parameters){.seed = seed, .profile_window = 0.1}, &error);

    if (code < 0)
        die(error.text);
    for (uint64_t i = 0; i < RECURRENCES && code == 0; i++) {
        const struct workload_batch *batch;
        const struct fly_power_point *point;
        double epochs;

        if (i % CONTROL_EVERY == 0) {
            run_control(&job, i);
            continue;
        }
        code = recurring_run(&job, &sums, &error);
        if (i < JUDGED_FROM || code < 0)
            continue;
        batch = &workload->batches[sums.batch];
        point = &batch->points[workload_find_limit(batch, sums.power_limit_w)];
        epochs = oracle_expected_epochs(workload, sums.batch);
        time_s += epochs * point->time_s;
        energy_j += epochs * point->time_s * point->power_w;
        count += 1.0;
    }
    recurring_deinit(&job);
    *out_time_s = time_s / count;
    *out_energy_j = energy_j / count;
    return code == 0;
}

/* ---- one job, one bound ---- */

/* Returns the least expected energy of the pairs within a bound; infinite if there is none. */
static double least_energy(struct workload *workload, struct fly_objective *objective, double max_slowdown)
{
    double kept = objective->max_slowdown;
    double allowed_s, least = INFINITY;

    objective->max_slowdown = max_slowdown;
    allowed_s = oracle_allowed_s(workload) * (1.0 + 1e-12);
    for (size_t b = 0; b < workload->spec.batch_count; b++) {
        double epochs = oracle_expected_epochs(workload, b);

        for (size_t p = 0; p < workload->batches[b].point_count; p++) {
            const struct fly_power_point *point = &workload->batches[b].points[p];

            if (point->time_s * epochs <= allowed_s)
                least = fmin(least, point->time_s * epochs * point->power_w);
        }
    }
    objective->max_slowdown = kept;
    return least;
}

static struct tally judge(struct workload *workload, double max_slowdown)
{
    struct fly_objective objective = {FLY_OBJECTIVE_ENERGY, 1.0, max_slowdown};
    struct tally tally = {0};
    double allowed_s, least_j;

    workload->spec.objective = &objective;
    workload->spec.eta = objective_eta(&objective);
    allowed_s = oracle_allowed_s(workload);
    least_j = least_energy(workload, &objective, max_slowdown / stricter);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        double time_s, energy_j;

        if (!live(workload, seed, &time_s, &energy_j)) {
            tally.ended++;
            continue;
        }
        tally.runs++;
        tally.beyond += time_s > tolerated * allowed_s;
        tally.dear += energy_j > stricter * least_j;
        tally.excess += time_s / allowed_s - 1.0;
        tally.energy += isinf(least_j) ? 0.0 : energy_j / least_j - 1.0;
    }
    workload->spec.objective = NULL;
    return tally;
}

/* ---- all ---- */

static struct tally totals[sizeof bounds / sizeof bounds[0]];

static void judge_all(struct workload *workload)
{
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        struct tally tally = judge(workload, bounds[i]);

        printf("%-12s %-14s %5.2f  kept %5.1f %%  time %+6.1f %%  energy %+6.1f %%  within 5 %% %5.1f "
               "%%%s\n",
               workload->gpu, workload->job.name, bounds[i], 100.0 - 100.0 * tally.beyond / tally.runs,
               100.0 * tally.excess / tally.runs, 100.0 * tally.energy / tally.runs,
               100.0 - 100.0 * tally.dear / tally.runs, tally.ended > 0 ? "  some ended" : "");
        totals[i].runs += tally.runs;
        totals[i].beyond += tally.beyond;
        totals[i].dear += tally.dear;
        totals[i].excess += tally.excess;
        totals[i].energy += tally.energy;
        totals[i].ended += tally.ended;
    }
}

static void judge_traces(const char *directory, const char *gpu)
{
    struct fly_error error;
    struct trace trace;

    if (trace_open(&trace, directory, gpu, &error) < 0)
        die(error.text);
    for (size_t i = 0; i < known_job_count; i++) {
        struct workload workload;

        if (!workload_in_trace(&trace, &known_jobs[i]))
            continue;
        if (workload_open(&workload, &trace, &known_jobs[i], &error) < 0)
            die(error.text);
        judge_all(&workload);
        workload_close(&workload);
    }
    trace_close(&trace);
}

static void judge_synthetic(void)
{
    struct fly_error error;

    for (int kind = 0; kind < SYNTHETIC_COUNT; kind++) {
        for (uint32_t number = 1; number <= SYNTHETIC_JOBS; number++) {
            struct workload workload;

            if (synthetic_make(&workload, (enum synthetic_kind)kind, number, &error) < 0)
                die(error.text);
            judge_all(&workload);
            workload_close(&workload);
        }
    }
}

int main(int argc, char **argv)
{
    struct tally all = {0};

    seeds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    if (seeds == 0)
        die("usage: bench_bounds SEEDS [TRACES GPU...]");
    for (int i = 3; i < argc; i++)
        judge_traces(argv[2], argv[i]);
    if (argc == 2)
        judge_synthetic();
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        printf("bound %.2f: kept in %.1f %% of %u runs, within 5 %% of the energy in %.1f %%, %+.1f %% in "
               "the mean\n",
               bounds[i], 100.0 - 100.0 * totals[i].beyond / totals[i].runs, totals[i].runs,
               100.0 - 100.0 * totals[i].dear / totals[i].runs, 100.0 * totals[i].energy / totals[i].runs);
        all.runs += totals[i].runs;
        all.beyond += totals[i].beyond;
        all.dear += totals[i].dear;
        all.ended += totals[i].ended;
    }
    printf("all: kept in %.1f %% of %u runs, within 5 %% of the energy in %.1f %%, %u ended early\n",
           100.0 - 100.0 * all.beyond / all.runs, all.runs, 100.0 - 100.0 * all.dear / all.runs, all.ended);
    return 0;
}
