/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job has paid off and still does: compares each recurrence with the default's runs around it. */
#include "job/past/saving_balance.h"

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

void saving_balance_of(const struct saving_run *runs, size_t count, struct job_savings *savings)
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
