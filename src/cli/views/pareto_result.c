/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about a frontier for all that display it. */
#include "cli/views/pareto_result.h"

#include <stdio.h>

#include <flyball/cost.h>

#include "job/past/savings.h"

static const char *const objective_names[] = {
    [FLY_OBJECTIVE_ENERGY] = "energy", [FLY_OBJECTIVE_TIME] = "time",
    [FLY_OBJECTIVE_COST] = "cost",     [FLY_OBJECTIVE_LOWEST_LIMIT] = "lowest-limit",
    [FLY_OBJECTIVE_CARBON] = "carbon", [FLY_OBJECTIVE_MONEY] = "money",
};

const char *pareto_objective_name(const struct pareto_result *result)
{
    return objective_names[result->objective.kind];
}

bool pareto_default_known(const struct pareto_result *result)
{
    return result->points->default_point < result->points->count;
}

bool pareto_change_known(const struct pareto_result *result)
{
    return pareto_default_known(result) && (result->savings == NULL || result->savings->known);
}

void pareto_objective_text(const struct pareto_result *result, char *text)
{
    int length = snprintf(text, PARETO_TEXT_MAX, "least %s", pareto_objective_name(result));

    if (result->objective.kind == FLY_OBJECTIVE_COST)
        snprintf(text + length, PARETO_TEXT_MAX - (size_t)length, " (eta %g)", result->objective.eta);
}

const struct fly_operating_point *pareto_default(const struct pareto_result *result)
{
    return &result->points->points[result->points->default_point];
}

double pareto_cost(const struct pareto_result *result, const struct fly_operating_point *point)
{
    return fly_cost(result->objective.eta, result->workload->spec.max_power_w, point->energy_j,
                    point->time_s);
}

const char *pareto_left_out_why(const struct pareto_result *result, enum left_out_reason reason)
{
    const char *const *texts = result->source->left_out;

    return texts != NULL ? texts[reason] : left_out_text(reason);
}

const char *pareto_default_unknown(const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;

    for (size_t i = 0; i < result->points->left_out_count; i++) {
        if (result->points->left_out[i].batch_size == spec->batches[spec->default_batch].size)
            return pareto_left_out_why(result, result->points->left_out[i].reason);
    }
    return result->source->left_out != NULL ? "its highest power limit was not measured"
                                            : "it is not in the traces";
}
