/* SPDX-License-Identifier: Apache-2.0 */
/* Turns trials into runs. */
#include "job/past/saving_run.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

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

bool saving_run_counts(const struct saving_run *run)
{
    return run->any && !run->running && run->energy_j > 0.0 && run->time_s > 0.0;
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

int saving_runs_of(const struct job_history *history, size_t machine, struct saving_run **out_runs,
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
