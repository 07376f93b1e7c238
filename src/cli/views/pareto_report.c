/* SPDX-License-Identifier: Apache-2.0 */
/* The frontier as text, with the table of its points. */
#include <math.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/views/pareto_view.h"
#include "cli/views/saving_words.h"
#include "shapes/json_number.h"
#include "shapes/table.h"
#include "sim/open/pareto_result.h"
#include "sim/open/pareto_spread.h"

/* What programs get of a frontier besides its points. */

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

/*
 * Adds to a table of points what documents have beside its rows: the job, the objective, the
 * default, the choice, what is left out, and what a live job really saved.
 */
static void pareto_members_add(struct table *table, const struct pareto_result *result)
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

enum { TEXT_MAX = 1 << 20 };

/* Writes "12.3 % less energy (4.5 to 19.8 %)", without bounds if they are not known. */
static void put_change(struct buffer *text, double ours, double theirs, struct fly_job_range saving,
                       const char *what)
{
    saving.value = 1.0 - ours / theirs;
    saving_words_change(text, &saving, what);
}

/* Writes how certain the change is, in the words of `job show`. */
static void put_certainty(struct buffer *text, const struct pareto_result *result)
{
    const struct job_savings *savings =
        result->savings; /* they are known, or there is no change to be certain of */
    struct fly_job_range energy = pareto_energy_saving(result, result->chosen);
    bool bounded = isfinite(energy.low);

    if (savings == NULL)
        return;
    if (!bounded)
        buffer_printf(text, "These are expectations; within which bounds is not known, since %s.\n",
                      pareto_spread_doubt(result, result->chosen));
    buffer_puts(text, "What the job really saves ('flyball job show'): ");
    saving_words_change(text, &savings->energy, "energy");
    buffer_puts(text, ".\n");
    if ((bounded && saving_words_by_chance(&energy)) || saving_words_by_chance(&savings->energy))
        buffer_printf(text, "%s\n", saving_words_chance);
}

/* Continues the sentence on the choice: what it saves, or why that is not known. */
static void put_gain(struct buffer *text, const struct pareto_result *result)
{
    const struct fly_operating_point *chosen = &result->points->points[result->chosen], *today;
    double lower;

    if (pareto_lacks_default(result))
        return;
    if (!pareto_default_known(result)) {
        buffer_printf(text, "; what it saves is not known, since the default is not: %s",
                      pareto_default_unknown(result));
        return;
    }
    today = pareto_default(result);
    if (result->chosen == result->points->default_point) {
        buffer_puts(text, "; that is the default itself: these two knobs save nothing more");
        return;
    }
    buffer_puts(text, "; against the default: ");
    if (!pareto_change_known(result)) {
        saving_words_unknown(text, result->savings);
        return;
    }
    put_change(text, chosen->energy_j, today->energy_j, pareto_energy_saving(result, result->chosen),
               "energy");
    buffer_puts(text, ", ");
    put_change(text, chosen->time_s, today->time_s, pareto_time_saving(result, result->chosen), "time");
    lower = 1.0 - pareto_cost(result, chosen) / pareto_cost(result, today);
    if (isfinite(lower))
        buffer_printf(text, ", a score %.1f %% %s", 100.0 * fabs(lower), lower < 0.0 ? "higher" : "lower");
    else
        buffer_puts(text, ", score out of the range of numbers");
}

/* The answer: which choice, and what it saves. */
static void put_choice(struct buffer *text, const struct pareto_result *result)
{
    const struct fly_operating_point *chosen = &result->points->points[result->chosen];
    char objective[PARETO_TEXT_MAX];

    pareto_objective_text(result, objective);
    buffer_printf(text, "The choice of %s", objective);
    if (isfinite(result->objective.max_slowdown))
        buffer_printf(text, " within %g times the default's time", result->objective.max_slowdown);
    buffer_printf(text, ": batch %u at %g W", chosen->batch_size, chosen->power_limit_w);
    put_gain(text, result);
    buffer_puts(text, ".\n");
    if (result->runs[0] != '\0')
        buffer_printf(text, "The job runs %s, %s.\n", result->runs, result->runs_since);
    if (!pareto_lacks_default(result) && pareto_change_known(result) &&
        result->chosen != result->points->default_point)
        put_certainty(text, result);
}

static void put_default(struct buffer *text, const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;
    const struct batch_choice *batch = &spec->batches[spec->default_batch];

    if (pareto_lacks_default(result)) {
        buffer_puts(text, "Nothing is compared with a default, since the job has none.\n");
        return;
    }
    buffer_printf(text, "Default: batch %u at %g W, ", batch->size, batch_highest_limit_w(batch));
    if (pareto_default_known(result))
        buffer_printf(
            text, "%.*f s and %.*f J%s.\n", table_decimals(MEANING_DIGITS(3), pareto_default(result)->time_s),
            pareto_default(result)->time_s,
            table_decimals(MEANING_DIGITS(3), pareto_default(result)->energy_j),
            pareto_default(result)->energy_j,
            result->points->on_frontier[result->points->default_point] ? "" : "; not on the frontier");
    else
        buffer_printf(text, "whose time and energy are not known: %s.\n", pareto_default_unknown(result));
}

static void put_left_out(struct buffer *text, const struct pareto_result *result)
{
    const struct operating_points *points = result->points;
    for (size_t i = 0; i < points->left_out_count; i++)
        buffer_printf(text, "Left out: batch %u, since %s.\n", points->left_out[i].batch_size,
                      pareto_left_out_why(result, &points->left_out[i]));
}

static void put_heading(struct buffer *text, const struct pareto_result *result)
{
    size_t on_frontier = 0;

    put_choice(text, result);
    for (size_t i = 0; i < result->points->count; i++)
        on_frontier += result->points->on_frontier[i];
    buffer_printf(text,
                  "\n%s on %s: %zu choice%s of batch size and power limit, %zu of them on the energy-time "
                  "frontier.\nExpected time and energy to the target, and the change against the "
                  "default; score for eta %g.\n\n",
                  result->workload->job.name, result->workload->gpu, result->points->count,
                  result->points->count == 1 ? "" : "s", on_frontier, result->objective.eta);
}

static int emit_text(const struct cli_call *call, void (*put)(struct buffer *, const struct pareto_result *),
                     const struct pareto_result *result, struct fly_error *out_error)
{
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    put(&text, result);
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static void put_tail(struct buffer *text, const struct pareto_result *result)
{
    buffer_puts(text, "\n");
    put_default(text, result);
    put_left_out(text, result);
    buffer_printf(text, "From %s %s: %s.\n", result->source->from, result->source->place,
                  result->source->basis);
}

int pareto_report_emit(const struct cli_call *call, const struct pareto_result *result,
                       struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    const struct pareto_columns columns = pareto_columns_for(result, for_people);
    struct table *table = pareto_rows_new(result, &columns, cli_flag(call, "all"));
    int code = 0;

    if (!for_people)
        pareto_members_add(table, result);
    if (for_people)
        code = emit_text(call, put_heading, result, out_error);
    if (code == 0)
        code = cli_emit_table(call, table, out_error);
    if (code == 0 && for_people)
        code = emit_text(call, put_tail, result, out_error);
    table_free(table);
    return code;
}
