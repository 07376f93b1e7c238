/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/decision_reasons.h"

#include <math.h>

#include "job/core/decision_numbers.h"
#include "job/core/grid_amount.h"
#include "job/decide/decision_candidates.h"
#include "job/decide/line.h"

/* A mean at today's size of the data. */
static double mean(const struct job_line *line, double sum, uint64_t count)
{
    return count > 0 ? line->growth * sum / (double)count : NAN;
}

static struct decision_known know(const struct job_line *line, size_t batch)
{
    const struct batch_facts *facts = &line->facts[batch];

    return (struct decision_known){
        .batch_size = line->spec->batches[batch].size,
        .trials = facts->observed,
        .reached = facts->reached,
        .mean_cost_j = mean(line, facts->cost_j, facts->priced),
        .mean_energy_j = mean(line, facts->reached_energy_j, facts->priced),
        .mean_time_s = mean(line, facts->reached_time_s, facts->reached),
        .counts_crashes = true,
        .crashed = facts->crashed,
        .given_up = decider_gave_up(&line->decider, batch),
        .final_metric = facts->final.count > 0 ? facts->final.mean : NAN,
        .worse = facts->worse,
    };
}

json_t *decision_reasons(const struct job_state *state, const struct job_line *line)
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
        if (line->facts[i].observed > 0 || line->facts[i].crashed > 0 || decider_gave_up(&line->decider, i))
            numbers.known[numbers.known_count++] = know(line, i);
    }
    numbers.has_outlook = decision_candidates(state, line, &numbers.outlook);
    return shape_tell(&shape_decision_numbers, &numbers);
}
