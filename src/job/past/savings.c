/* SPDX-License-Identifier: Apache-2.0 */
/* Trials become runs, runs become samples; the statistics are in saving_estimate.c. */
#include "job/past/savings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/past/savings_private.h"

static const struct saving unknown = {NAN, NAN, NAN};

/* ---- runs ---- */

/* Two of each recurrence: the runs of the default in it, and the others. */
enum { RUN_DEFAULT, RUN_CHOSEN, RUNS_OF_ONE };

bool saving_is_default(const struct job_history *history, const struct job_row *row)
{
    double highest_w = history->machines[row->machine].highest_limit_w;
    bool free =
        row->reason == REASON_CONTROL || row->reason == REASON_PINNED || row->reason == REASON_UNASKED;

    return free && row->batch_size == history->definition.default_batch_size && !row->profiled &&
           row->outcome != TRIAL_STOPPED && (isnan(highest_w) || row->limit_w == highest_w);
}

static void add_row(struct saving_run *run, const struct job_history *history, const struct job_row *row,
                    size_t machine)
{
    run->recurrence = row->recurrence;
    run->any |= row->machine == machine;
    run->running |= row->running || row->machine != machine;
    run->delivered |= !row->running && row->outcome == TRIAL_REACHED;
    run->searched |= row->reason == REASON_EXPLORE || row->profiled;
    run->outdated |= row->trial < history->wanted_from;
    run->epochs += row->epochs;
    run->energy_j += row->energy_j;
    run->time_s += row->time_s;
    run->cost_j += row->cost_j;
    run->metric = row->metric;
    run->ended_us = row->ended_us;
    run->last = row;
}

bool saving_run_counts(const struct saving_run *run)
{
    return run->any && !run->running && run->energy_j > 0.0 && run->time_s > 0.0;
}

/* What is outdated keeps its place among the samples and says no more than a search does. */
static enum saving_kind kind_of(const struct saving_run *run, size_t part)
{
    if (part == RUN_DEFAULT)
        return SAVING_BASELINE;
    return run->searched || run->outdated ? SAVING_SEARCHING : SAVING_TUNED;
}

/* Gathers the runs in their order and returns how many there are. */
static size_t make_runs(const struct job_history *history, size_t machine, struct saving_run *runs,
                        size_t recurrences)
{
    size_t count = 0;

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        size_t part = saving_is_default(history, row) ? RUN_DEFAULT : RUN_CHOSEN;

        add_row(&runs[row->recurrence * RUNS_OF_ONE + part], history, row, machine);
    }
    for (size_t i = 0; i < recurrences * RUNS_OF_ONE; i++) {
        if (!runs[i].any)
            continue;
        runs[count] = runs[i];
        runs[count].kind = kind_of(&runs[count], i % RUNS_OF_ONE);
        count++;
    }
    return count;
}

/* ---- groups ---- */

/* What a group is summed up from. */
struct sums {
    double energy_j, time_s, metric, squares;
};

static void group_add(struct saving_group *group, struct sums *sums, const struct saving_run *run)
{
    double before = group->runs > 0 ? sums->energy_j / (double)group->runs : 0.0;

    group->runs++;
    group->failed += !run->delivered;
    sums->energy_j += run->energy_j;
    sums->time_s += run->time_s;
    sums->metric += run->delivered ? run->metric : 0.0;
    sums->squares += (run->energy_j - before) * (run->energy_j - sums->energy_j / (double)group->runs);
    group->newest_us = run->ended_us > group->newest_us ? run->ended_us : group->newest_us;
}

static void group_finish(struct saving_group *group, const struct sums *sums)
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

static struct saving estimate(const struct saving_run *runs, size_t count, bool to_target, amount_of amount,
                              struct saving_sample *samples, enum saving_doubt *out_doubt)
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
                                .trial = last->trial,
                                .of_baseline = run->kind == SAVING_BASELINE,
                                .batch_size = last->batch_size,
                                .outcome = last->outcome};
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

static void settle(const struct job_history *history, const struct saving_run *runs, size_t count,
                   struct saving_sample *samples, struct job_savings *savings)
{
    bool to_target = history->definition.target != JOB_NO_TARGET;

    sum_up(runs, count, savings);
    savings->energy = estimate(runs, count, to_target, energy_of, samples, &savings->doubt);
    savings->time = estimate(runs, count, to_target, time_of, samples, NULL);
    savings->cost = estimate(runs, count, to_target, cost_of, samples, NULL);
    savings->known = savings->doubt == SAVING_STATED;
    if (savings->known)
        saving_balance_of(runs, count, savings);
    else
        savings->exploration_j = NAN;
}

static size_t recurrences_of(const struct job_history *history)
{
    size_t count = 0;

    for (size_t i = 0; i < history->count; i++) {
        if (history->rows[i].recurrence >= count)
            count = (size_t)history->rows[i].recurrence + 1;
    }
    return count;
}

int job_savings_of(const struct job_history *history, size_t machine, struct job_savings *out_savings,
                   struct fly_error *out_error)
{
    size_t recurrences = recurrences_of(history);
    struct saving_run *runs = calloc(recurrences + 1, RUNS_OF_ONE * sizeof runs[0]);
    struct saving_sample *samples = calloc(recurrences + 1, RUNS_OF_ONE * sizeof samples[0]);
    struct job_savings *savings = calloc(1, sizeof *savings);
    int code = 0;

    if (runs != NULL && samples != NULL && savings != NULL) {
        savings->energy = savings->time = savings->cost = unknown;
        savings->balance = (struct saving_balance){.ahead_j = NAN, .recent_ahead_j = NAN};
        settle(history, runs, make_runs(history, machine, runs, recurrences), samples, savings);
        *out_savings = *savings;
    } else {
        code = error_no_memory(out_error);
    }
    free(savings);
    free(samples);
    free(runs);
    return code;
}
