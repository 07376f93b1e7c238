/* SPDX-License-Identifier: Apache-2.0 */
/* Turns runs into samples; the statistics are in saving_estimate.c. */
#include "job/past/savings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/past/saving_balance.h"
#include "job/past/saving_run.h"

/* ---- groups ---- */

/* The sums behind a group. */
struct sums {
    double energy_j, time_s, metric, squares;
};

static void group_add(struct fly_job_runs *group, struct sums *sums, const struct saving_run *run)
{
    double before = group->runs > 0 ? sums->energy_j / (double)group->runs : 0.0;

    group->runs++;
    group->failed += !run->delivered;
    sums->energy_j += run->energy_j;
    sums->time_s += run->time_s;
    sums->metric += run->delivered ? run->metric : 0.0;
    sums->squares += (run->energy_j - before) * (run->energy_j - sums->energy_j / (double)group->runs);
    group->newest_unix_s = fmax(group->newest_unix_s, job_unix_s(run->ended_us));
}

static void group_finish(struct fly_job_runs *group, const struct sums *sums)
{
    double runs = (double)group->runs, models = (double)(group->runs - group->failed);

    group->model_energy_j = models > 0.0 ? sums->energy_j / models : NAN;
    group->model_time_s = models > 0.0 ? sums->time_s / models : NAN;
    group->mean_metric = models > 0.0 ? sums->metric / models : NAN;
    group->spread = runs > 1.0 ? sqrt(sums->squares / (runs - 1.0)) / (sums->energy_j / runs) : NAN;
}

/* ---- estimates ---- */

typedef double (*amount_of)(const struct saving_run *run);

static double energy_of(const struct saving_run *run)
{
    return run->energy_j;
}

static double time_of(const struct saving_run *run)
{
    return run->time_s;
}

static double cost_of(const struct saving_run *run)
{
    return run->cost_j;
}

static struct fly_job_range estimate(const struct saving_run *runs, size_t count, bool to_target,
                                     amount_of amount, struct saving_sample *samples,
                                     enum saving_doubt *out_doubt)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        const struct saving_run *run = &runs[i];
        double value = amount(run), epochs = (double)run->epochs;

        if (!saving_run_counts(run) || !isfinite(value))
            continue;
        samples[used++] = (struct saving_sample){.kind = run->kind,
                                                 .delivered = run->delivered,
                                                 .amount = value,
                                                 .step = to_target && epochs > 0.0 ? value / epochs : 0.0};
    }
    return saving_estimate(samples, used, out_doubt);
}

static void name_failure(struct job_savings *savings, const struct saving_run *run)
{
    const struct job_row *last = run->last;

    savings->failed++;
    if (savings->failure_count == SAVING_FAILURES_MAX)
        memmove(savings->failures, savings->failures + 1,
                --savings->failure_count * sizeof savings->failures[0]);
    savings->failures[savings->failure_count++] =
        (struct saving_failure){.recurrence = run->recurrence,
                                .trial = last->trial.trial,
                                .of_baseline = run->kind == SAVING_BASELINE,
                                .batch_size = last->trial.batch_size,
                                .outcome = last->outcome,
                                .without_epoch = job_row_without_epoch(last)};
}

static void sum_up(const struct saving_run *runs, size_t count, struct job_savings *savings)
{
    struct sums baseline = {0}, tuned = {0};
    double searching_j = 0.0;

    for (size_t i = 0; i < count; i++) {
        const struct saving_run *run = &runs[i];

        if (!run->running && !run->delivered)
            name_failure(savings, run);
        savings->unknown += !run->running && !saving_run_counts(run);
        if (!saving_run_counts(run))
            continue;
        if (run->kind == SAVING_BASELINE)
            group_add(&savings->baseline, &baseline, run);
        else if (run->kind == SAVING_TUNED)
            group_add(&savings->tuned, &tuned, run);
        else if (!run->searched)
            savings->outdated++;
        else
            savings->searching++, savings->searching_failed += !run->delivered, searching_j += run->energy_j;
    }
    group_finish(&savings->baseline, &baseline);
    group_finish(&savings->tuned, &tuned);
    savings->exploration_j = searching_j - (double)(savings->searching - savings->searching_failed) *
                                               savings->tuned.model_energy_j;
}

/* Fills in the savings of runs under one revision. */
static void settle(const struct job_history *history, const struct saving_run *runs, size_t count,
                   struct saving_sample *samples, struct job_savings *savings)
{
    bool to_target = history->definition.target != JOB_NO_TARGET;

    *savings = (struct job_savings){.baseline = {.newest_unix_s = NAN},
                                    .tuned = {.newest_unix_s = NAN},
                                    .balance = {.ahead_j = NAN, .recent_ahead_j = NAN},
                                    .earlier = {.ahead_j = NAN}};
    sum_up(runs, count, savings);
    savings->energy = estimate(runs, count, to_target, energy_of, samples, &savings->doubt);
    savings->time = estimate(runs, count, to_target, time_of, samples, NULL);
    savings->cost = estimate(runs, count, to_target, cost_of, samples, NULL);
    if (history->definition.no_default)
        savings->doubt = SAVING_NO_DEFAULT;
    savings->known = savings->doubt == SAVING_STATED;
    if (savings->known)
        saving_balance_of(runs, count, savings);
    else
        savings->exploration_j = NAN;
}

/* ---- revisions ---- */

/* How many of the first runs are of one revision. */
static size_t count_alike(const struct saving_run *runs, size_t count)
{
    size_t alike = 0;

    while (alike < count && runs[alike].revision == runs[0].revision)
        alike++;
    return alike;
}

static void add_earlier(struct saving_earlier *earlier, const struct job_savings *savings)
{
    size_t recurrences = savings->tuned.runs + savings->searching + savings->outdated;

    if (!savings->known) {
        earlier->unknown += recurrences;
        return;
    }
    earlier->ahead_j = savings->balance.ahead_j + (earlier->recurrences > 0 ? earlier->ahead_j : 0.0);
    earlier->recurrences += recurrences;
}

int job_savings_of(const struct job_history *history, size_t machine, struct job_savings *out_savings,
                   struct fly_error *out_error)
{
    struct saving_earlier earlier = {.ahead_j = NAN};
    struct saving_run *runs = NULL;
    size_t count = 0, from = 0;
    int code = saving_runs_of(history, machine, &runs, &count, out_error);
    struct saving_sample *samples = code == 0 ? calloc(count + 1, sizeof samples[0]) : NULL;
    struct job_savings *savings = samples != NULL ? calloc(1, sizeof *savings) : NULL;

    if (savings != NULL) {
        while (from < count && runs[from].revision < history->revision) {
            size_t alike = count_alike(runs + from, count - from);

            settle(history, runs + from, alike, samples, savings);
            add_earlier(&earlier, savings);
            from += alike;
        }
        settle(history, runs + from, count - from, samples, savings);
        savings->earlier = earlier;
        *out_savings = *savings;
    } else if (code == 0) {
        code = error_no_memory(out_error);
    }
    free(savings);
    free(samples);
    free(runs);
    return code;
}
