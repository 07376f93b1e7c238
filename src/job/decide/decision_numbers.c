/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/decision_numbers.h"

#include <math.h>

#include "job/core/grid_amount.h"
#include "job/decide/line.h"
#include "shapes/shape_rows.h"

/* Whoever reads them may have a log of before: what is missing is not known. */
#define COUNT SHAPE_IS_U64(0, INT64_MAX), .need = SHAPE_OPTIONAL
#define SIZE SHAPE_IS_U32(0, UINT32_MAX), .need = SHAPE_OPTIONAL
#define NUMBER SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE, .need = SHAPE_OPTIONAL
#define REFERENCE SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE, .need = SHAPE_SPARING

static const struct shape_field known_rows[] = {
    {SHAPE_AT(decision_known, batch_size), SIZE},
    {SHAPE_AT(decision_known, trials), COUNT},
    {SHAPE_AT(decision_known, reached), COUNT},
    {SHAPE_AT(decision_known, mean_cost_j), NUMBER},
    {SHAPE_AT(decision_known, mean_energy_j), NUMBER},
    {SHAPE_AT(decision_known, mean_time_s), NUMBER},
    {SHAPE_AT(decision_known, crashed), SHAPE_IS_U64(0, INT64_MAX), SHAPE_IF(decision_known, counts_crashes)},
    {SHAPE_AT(decision_known, given_up), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL},
};
static const struct shape known = {SHAPE_OF(decision_known, known_rows)};

static const struct shape_field rows[] = {
    {SHAPE_AT(decision_numbers, known), SHAPE_IS_STRUCTS_HERE(&known, decision_numbers, known, known_count),
     .need = SHAPE_OPTIONAL},
    {SHAPE_AT(decision_numbers, best_batch_size), SIZE},
    {SHAPE_AT(decision_numbers, reference_time_s), NUMBER},
    {SHAPE_AT(decision_numbers, max_slowdown), NUMBER},
    {SHAPE_AT(decision_numbers, baseline_runs), COUNT},
    {SHAPE_AT(decision_numbers, does_not_fit_from), SIZE, .null = SHAPE_ZERO},
    {SHAPE_AT(decision_numbers, reference_money_per_kwh), REFERENCE},
    {SHAPE_AT(decision_numbers, reference_g_per_kwh), REFERENCE},
};
const struct shape shape_decision_numbers = {SHAPE_OF(decision_numbers, rows)};

static double mean(double sum, uint64_t count)
{
    return count > 0 ? sum / (double)count : NAN;
}

static struct decision_known know(const struct job_line *line, size_t batch)
{
    const struct batch_facts *facts = &line->facts[batch];

    return (struct decision_known){
        .batch_size = line->spec->batches[batch].size,
        .trials = facts->observed,
        .reached = facts->reached,
        .mean_cost_j = mean(facts->cost_j, facts->priced),
        .mean_energy_j = mean(facts->reached_energy_j, facts->priced),
        .mean_time_s = mean(facts->reached_time_s, facts->reached),
        .counts_crashes = true,
        .crashed = facts->crashed,
        .given_up = decider_gave_up(&line->decider, batch),
    };
}

json_t *decision_numbers_write(const struct job_state *state, const struct job_line *line)
{
    const struct job_spec *spec = line->spec;
    bool money = job_counts_money(&state->definition);
    struct decision_numbers numbers = {
        .best_batch_size = spec->batches[job_line_best(line)].size,
        .reference_time_s = job_line_reference_s(line),
        .max_slowdown = state->objective.max_slowdown,
        .baseline_runs = line->baseline_runs,
        .does_not_fit_from = line->excluded < spec->batch_count ? spec->batches[line->excluded].size : 0,
        .reference_money_per_kwh = money ? state->reference_per_kwh : NAN,
        .reference_g_per_kwh = money ? NAN : state->reference_per_kwh,
    };

    for (size_t i = 0; i < spec->batch_count && numbers.known_count < DECISION_NUMBERS_MAX; i++) {
        if (line->facts[i].observed > 0 || line->facts[i].crashed > 0)
            numbers.known[numbers.known_count++] = know(line, i);
    }
    return shape_tell(&shape_decision_numbers, &numbers);
}
