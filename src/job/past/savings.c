/* SPDX-License-Identifier: Apache-2.0 */
/* Turns runs into samples; the statistics are in saving_estimate.c. */
#include "job/past/savings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A recurrence as one run: its control, or all the rest of it. */
struct saving_run {
    uint64_t recurrence;
    size_t revision; /* how many had begun before the recurrence; it never falls from run to run */
    bool any;        /* a trial of it ran on this machine */
    bool running;    /* or a trial ran on another machine, or under a later revision */
    bool delivered;
    bool searched;
    bool outdated; /* a trial of it was chosen by an objective or pin that does not hold any more */
    uint64_t epochs;
    double energy_j, time_s, cost_j, metric;
    int64_t ended_us;
    const struct job_row *last;
    enum saving_kind kind;
};

/* Whether it is known what the run took. */
static bool saving_run_counts(const struct saving_run *run)
{
    return run->any && !run->running && run->energy_j > 0.0 && run->time_s > 0.0;
}

/* ---- the balance: each recurrence is compared with the default's runs around it ---- */

enum { NEAREST = 3 }; /* runs of the default with which a recurrence is compared */

/* The nearest runs of the default, while the loop goes from recurrence to recurrence. */
struct nearest {
    const struct saving_run *runs;
    size_t count;
    size_t at[NEAREST + 1]; /* runs of the default in order; the last one is the next to come */
    size_t held;
    double model_j; /* used when none of those delivered a model */
};

static bool is_baseline(const struct saving_run *run)
{
    return run->kind == SAVING_BASELINE && saving_run_counts(run);
}

/* The next run of the default from `from` on, or `count`. */
static size_t next_baseline(const struct nearest *nearest, size_t from)
{
    while (from < nearest->count && !is_baseline(&nearest->runs[from]))
        from++;
    return from;
}

static void begin(struct nearest *nearest)
{
    size_t from = 0;

    for (nearest->held = 0; nearest->held <= NEAREST; from = nearest->at[nearest->held++] + 1) {
        nearest->at[nearest->held] = next_baseline(nearest, from);
        if (nearest->at[nearest->held] == nearest->count)
            break;
    }
}

/* Moves on while the next to come is nearer than the first that is held. */
static void move_to(struct nearest *nearest, size_t run)
{
    while (nearest->held > NEAREST && nearest->at[NEAREST] < run + (run - nearest->at[0]) &&
           nearest->at[0] < run) {
        for (size_t i = 0; i < NEAREST; i++)
            nearest->at[i] = nearest->at[i + 1];
        nearest->at[NEAREST] = next_baseline(nearest, nearest->at[NEAREST - 1] + 1);
        nearest->held -= nearest->at[NEAREST] == nearest->count;
    }
}

/* The energy of a model of the default around there. */
static double model_j(const struct nearest *nearest)
{
    double energy_j = 0.0, models = 0.0;

    for (size_t i = 0; i < nearest->held && i < NEAREST; i++) {
        energy_j += nearest->runs[nearest->at[i]].energy_j;
        models += nearest->runs[nearest->at[i]].delivered;
    }
    return models > 0.0 ? energy_j / models : nearest->model_j;
}

static bool takes_part(const struct saving_run *run)
{
    return run->kind != SAVING_BASELINE && saving_run_counts(run);
}

static size_t count_runs(const struct saving_run *runs, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += takes_part(&runs[i]);
    return found;
}

/*
 * Computes the balance of the savings, whose groups and energies are already known, from the runs in order.
 */
static void saving_balance_of(const struct saving_run *runs, size_t count, struct job_savings *savings)
{
    struct nearest nearest = {.runs = runs, .count = count, .model_j = savings->baseline.model_energy_j};
    struct saving_balance balance = {0};
    size_t left = count_runs(runs, count);
    bool ahead = false;

    begin(&nearest);
    for (size_t i = 0; i < count; i++) {
        double less_j;

        if (!takes_part(&runs[i]))
            continue;
        move_to(&nearest, i);
        less_j = (runs[i].delivered ? model_j(&nearest) : 0.0) - runs[i].energy_j;
        balance.ahead_j += less_j;
        if (left-- <= SAVING_RECENT) {
            balance.recent++;
            balance.recent_ahead_j += less_j;
        }
        if (balance.ahead_j > 0.0 && !ahead)
            balance.paid_off_at = runs[i].recurrence;
        ahead = balance.ahead_j > 0.0;
    }
    balance.paid_off = ahead && balance.recent_ahead_j > 0.0 && savings->energy.low > 0.0;
    savings->balance = balance;
}

/* ---- trials become runs ---- */

/* Each recurrence has two: the runs of the default in it, and the others. */
enum { RUN_DEFAULT, RUN_CHOSEN, RUNS_OF_ONE };

bool saving_is_default(const struct job_history *history, const struct job_row *row)
{
    double highest_w = history->machines[row->machine].highest_limit_w;
    bool free =
        row->reason == REASON_CONTROL || row->reason == REASON_PINNED || row->reason == REASON_UNASKED;

    return free && row->trial.batch_size == history->definition.default_batch_size && !row->trial.profiled &&
           row->outcome != TRIAL_STOPPED && (isnan(highest_w) || row->trial.limit_w == highest_w);
}

static void add_row(struct saving_run *run, const struct job_history *history, const struct job_row *row,
                    size_t machine)
{
    run->recurrence = row->trial.recurrence;
    run->any |= row->machine == machine;
    run->running |= row->running || row->machine != machine || row->revision != run->revision;
    run->delivered |= !row->running && row->outcome == TRIAL_REACHED;
    run->searched |= row->reason == REASON_EXPLORE || row->trial.profiled;
    run->outdated |= row->trial.trial < history->wanted_from;
    run->epochs += row->trial.epochs;
    run->energy_j += row->trial.energy_j;
    run->time_s += row->trial.time_s;
    run->cost_j += row->trial.cost_j;
    run->metric = row->trial.metric;
    run->ended_us = row->ended_us;
    run->last = row;
}

/* An outdated run keeps its place among the samples, and tells no more than a search. */
static enum saving_kind kind_of(const struct saving_run *run, size_t part)
{
    if (part == RUN_DEFAULT)
        return SAVING_BASELINE;
    return run->searched || run->outdated ? SAVING_SEARCHING : SAVING_TUNED;
}

/* Gathers the runs in order; returns how many there are. */
static size_t make_runs(const struct job_history *history, size_t machine, struct saving_run *runs,
                        size_t recurrences)
{
    size_t count = 0;

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        struct saving_run *recurrence = &runs[row->trial.recurrence * RUNS_OF_ONE];
        size_t part = saving_is_default(history, row) ? RUN_DEFAULT : RUN_CHOSEN;

        if (row->nothing_learnt)
            continue;
        if (recurrence[RUN_DEFAULT].last == NULL && recurrence[RUN_CHOSEN].last == NULL)
            recurrence[RUN_DEFAULT].revision = recurrence[RUN_CHOSEN].revision = row->revision;
        add_row(&recurrence[part], history, row, machine);
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

static size_t recurrences_of(const struct job_history *history)
{
    size_t count = 0;

    for (size_t i = 0; i < history->count; i++) {
        if (history->rows[i].trial.recurrence >= count)
            count = (size_t)history->rows[i].trial.recurrence + 1;
    }
    return count;
}

/*
 * Stores the job's runs on one machine, in order, for the caller to free: of each recurrence the control and
 * the rest, if there are any. Returns 0 or FLY_ENOMEM.
 */
static int saving_runs_of(const struct job_history *history, size_t machine, struct saving_run **out_runs,
                          size_t *out_count, struct fly_error *out_error)
{
    size_t recurrences = recurrences_of(history);
    struct saving_run *runs = calloc(recurrences + 1, RUNS_OF_ONE * sizeof runs[0]);

    if (runs == NULL)
        return error_no_memory(out_error);
    *out_count = make_runs(history, machine, runs, recurrences);
    *out_runs = runs;
    return 0;
}

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
    bool to_target = history->definition.target != FLY_TARGET_NONE;

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
