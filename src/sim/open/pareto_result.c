/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about a frontier for all that display it. */
#include "sim/open/pareto_result.h"

#include <stdio.h>

#include <flyball/cost.h>

#include "job/past/savings.h"
#include "model/objective_check.h"

const char *pareto_objective_name(const struct pareto_result *result)
{
    return objective_kind_name(result->objective.kind);
}

bool pareto_default_known(const struct pareto_result *result)
{
    return result->points->default_point < result->points->count;
}

bool pareto_change_known(const struct pareto_result *result)
{
    return pareto_default_known(result) && (result->savings == NULL || result->savings->known);
}

const char *pareto_best_name(enum fly_objective_kind kind)
{
    static const char *const names[] = {
        [FLY_OBJECTIVE_ENERGY] = "least energy", [FLY_OBJECTIVE_TIME] = "least time",
        [FLY_OBJECTIVE_COST] = "lowest score",   [FLY_OBJECTIVE_LOWEST_LIMIT] = "lowest power limit",
        [FLY_OBJECTIVE_CARBON] = "least carbon", [FLY_OBJECTIVE_MONEY] = "least money",
    };

    return names[kind];
}

void pareto_objective_text(const struct pareto_result *result, char *text)
{
    int length = snprintf(text, PARETO_TEXT_MAX, "%s", pareto_best_name(result->objective.kind));

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

bool pareto_lacks_default(const struct pareto_result *result)
{
    return result->savings != NULL && result->savings->doubt == SAVING_NO_DEFAULT;
}

const char *pareto_left_out_why(const struct pareto_result *result, const struct left_out *out)
{
    const char *const *texts = result->source->left_out;
    const struct job_spec *spec = &result->workload->spec;

    for (size_t i = 0; result->spreads != NULL && i < spec->batch_count; i++) {
        if (spec->batches[i].size == out->batch_size && result->spreads[i].barred != NULL)
            return result->spreads[i].barred;
    }
    return texts != NULL ? texts[out->reason] : left_out_text(out->reason);
}

const char *pareto_default_unknown(const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;

    for (size_t i = 0; i < result->points->left_out_count; i++) {
        if (result->points->left_out[i].batch_size == spec->batches[spec->default_batch].size)
            return pareto_left_out_why(result, &result->points->left_out[i]);
    }
    return result->source->left_out != NULL ? "its highest power limit was not measured"
                                            : "it is not in the traces";
}
