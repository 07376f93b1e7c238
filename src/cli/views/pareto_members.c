/* SPDX-License-Identifier: Apache-2.0 */
/* What programs get of a frontier besides its points. */
#include "cli/views/pareto_members.h"

#include <math.h>

#include "cli/views/saving_words.h"
#include "shapes/json_number.h"
#include "sim/open/pareto_spread.h"

static const char not_known[] = "it is not known";

static json_t *point_document(const struct pareto_result *result, size_t i)
{
    const struct fly_operating_point *point = &result->points->points[i];
    json_t *document = json_pack("{s:I, s:i}", "batch_size", (json_int_t)point->batch_size, "on_frontier",
                                 result->points->on_frontier[i]);

    json_number_set(document, "power_limit_w", point->power_limit_w, not_known);
    json_number_set(document, "time_s", point->time_s, not_known);
    json_number_set(document, "energy_j", point->energy_j, not_known);
    json_number_set(document, "cost_j", pareto_cost(result, point), not_known);
    if (result->spreads == NULL)
        return document;
    json_object_set_new(document, "trials", json_integer((json_int_t)pareto_spread_of(result, i)->trials));
    json_number_set(document, "time_low_s", pareto_spread_time(result, i).low, pareto_spread_few);
    json_number_set(document, "time_high_s", pareto_spread_time(result, i).high, pareto_spread_few);
    json_number_set(document, "energy_low_j", pareto_spread_energy(result, i).low, pareto_spread_few);
    json_number_set(document, "energy_high_j", pareto_spread_energy(result, i).high, pareto_spread_few);
    return document;
}

static json_t *default_document(const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;
    const struct batch_choice *batch = &spec->batches[spec->default_batch];
    json_t *document;

    if (pareto_default_known(result))
        return point_document(result, result->points->default_point);
    document = json_pack("{s:I}", "batch_size", (json_int_t)batch->size);
    json_number_set(document, "power_limit_w", batch_highest_limit_w(batch), not_known);
    json_number_set(document, "time_s", NAN, pareto_default_unknown(result));
    json_number_set(document, "energy_j", NAN, pareto_default_unknown(result));
    return document;
}

static json_t *objective_document(const struct pareto_result *result)
{
    const struct fly_objective *objective = &result->objective;
    json_t *document = json_pack("{s:s}", "kind", pareto_objective_name(result));

    json_number_set(document, "eta", objective->eta, not_known);
    json_number_set(document, "max_power_w", result->workload->spec.max_power_w, not_known);
    json_known_set(document, "max_slowdown_factor", objective->max_slowdown, "no bound was given");
    return document;
}

static json_t *left_out_document(const struct pareto_result *result)
{
    const struct operating_points *points = result->points;
    json_t *list = json_array();

    for (size_t i = 0; i < points->left_out_count; i++)
        json_array_append_new(list, json_pack("{s:I, s:s}", "batch_size",
                                              (json_int_t)points->left_out[i].batch_size, "reason",
                                              pareto_left_out_why(result, &points->left_out[i])));
    return list;
}

/* What was really saved, as in `job show`. */
static json_t *measured_document(const struct job_savings *savings)
{
    const char *doubt = saving_doubt_text(savings->doubt);
    json_t *document = json_object();

    json_number_set(document, "energy_saving_percent", 100.0 * savings->energy.value, doubt);
    json_number_set(document, "energy_saving_low_percent", 100.0 * savings->energy.low, doubt);
    json_number_set(document, "energy_saving_high_percent", 100.0 * savings->energy.high, doubt);
    return document;
}

void pareto_members_add(struct table *table, const struct pareto_result *result)
{
    table_member(table, result->source->subject_key, json_string(result->workload->job.name));
    table_member(table, "gpu", json_string(result->workload->gpu));
    table_member(table, result->source->place_key, json_string(result->source->place));
    table_member(table, "basis", json_string(result->source->basis));
    table_member(table, "objective", objective_document(result));
    table_member(table, "default", default_document(result));
    table_member(table, "chosen", point_document(result, result->chosen));
    table_member(table, "left_out_batch_sizes", left_out_document(result));
    if (result->savings != NULL)
        table_member(table, "measured", measured_document(result->savings));
}
