/* SPDX-License-Identifier: Apache-2.0 */
/* The frontier as text and as rows. */
#include <math.h>
#include <stdio.h>

#include <flyball/cost.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/pareto_result.h"

enum { TEXT_MAX = 1 << 20, MARK_MAX = 64 };

static const struct table_column columns[] = {
    {"batch_size", "batch", TABLE_INTEGER, 0},
    {"power_limit_w", "limit (W)", TABLE_REAL, 0},
    {"time_s", "time (s)", TABLE_REAL, 0},
    {"energy_j", "energy (J)", TABLE_REAL, 0},
    {"cost_j", "cost (J)", TABLE_REAL, 0},
    {"time_change_percent", "time %", TABLE_REAL, 1},
    {"energy_change_percent", "energy %", TABLE_REAL, 1},
    {"on_frontier", "on frontier", TABLE_INTEGER, 0},
    {"default", "default", TABLE_INTEGER, 0},
    {"chosen", "chosen", TABLE_INTEGER, 0},
};

/* For people the three marks are words in one column. */
enum {
    COLUMN_COUNT = sizeof columns / sizeof columns[0],
    MARK_COUNT = 3,
    SHARED_COUNT = COLUMN_COUNT - MARK_COUNT
};
static const struct table_column mark_column = {"mark", "", TABLE_TEXT, 0};

static const char *const objective_names[] = {
    [FLY_OBJECTIVE_ENERGY] = "energy", [FLY_OBJECTIVE_TIME] = "time",
    [FLY_OBJECTIVE_COST] = "cost",     [FLY_OBJECTIVE_LOWEST_LIMIT] = "lowest-limit",
    [FLY_OBJECTIVE_CARBON] = "carbon", [FLY_OBJECTIVE_MONEY] = "money",
};

bool pareto_default_known(const struct pareto_result *result)
{
    return result->points->default_point < result->points->count;
}

void pareto_objective_text(const struct pareto_result *result, char *text)
{
    int length = snprintf(text, PARETO_TEXT_MAX, "least %s", objective_names[result->objective.kind]);

    if (result->objective.kind == FLY_OBJECTIVE_COST)
        snprintf(text + length, PARETO_TEXT_MAX - (size_t)length, " (eta %g)", result->objective.eta);
}

static double cost_of(const struct pareto_result *result, const struct fly_operating_point *point)
{
    return fly_cost(result->objective.eta, result->workload->spec.max_power_w, point->energy_j,
                    point->time_s);
}

static double change_percent(double ours, double theirs)
{
    return (ours / theirs - 1.0) * 100.0;
}

static const struct fly_operating_point *default_point(const struct pareto_result *result)
{
    return &result->points->points[result->points->default_point];
}

static const char *why_left_out(const struct pareto_result *result, enum left_out_reason reason)
{
    const char *const *texts = result->source->left_out;

    return texts != NULL ? texts[reason] : left_out_text(reason);
}

/* Why the default is no point: the reason for which its batch size is left out. */
static const char *default_unknown(const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;

    for (size_t i = 0; i < result->points->left_out_count; i++) {
        if (result->points->left_out[i].batch_size == spec->batches[spec->default_batch].size)
            return why_left_out(result, result->points->left_out[i].reason);
    }
    return result->source->left_out != NULL ? "its highest power limit was not measured"
                                            : "it is not in the traces";
}

/* -- Rows -- */

static void add_changes(struct table *table, const struct pareto_result *result,
                        const struct fly_operating_point *point)
{
    if (!pareto_default_known(result)) {
        for (int i = 0; i < 2; i++)
            table_add_unavailable(table, NULL, "the default batch size is not known to reach the target");
        return;
    }
    table_add_real(table, change_percent(point->time_s, default_point(result)->time_s));
    table_add_real(table, change_percent(point->energy_j, default_point(result)->energy_j));
}

static void add_marks(struct table *table, const struct pareto_result *result, size_t i, bool for_people)
{
    bool is_default = i == result->points->default_point, is_chosen = i == result->chosen;
    char mark[MARK_MAX];

    if (!for_people) {
        table_add_integer(table, result->points->on_frontier[i]);
        table_add_integer(table, is_default);
        table_add_integer(table, is_chosen);
        return;
    }
    snprintf(mark, sizeof mark, "%s%s%s", is_chosen ? "least " : "",
             is_chosen ? objective_names[result->objective.kind] : "",
             is_default ? is_chosen ? ", default" : "default" : "");
    if (!result->points->on_frontier[i])
        snprintf(mark, sizeof mark, "%s",
                 is_default ? "default, not on the frontier" : "not on the frontier");
    table_add_text(table, mark);
}

static void add_rows(struct table *table, const struct pareto_result *result, bool all, bool for_people)
{
    const struct operating_points *points = result->points;

    for (size_t i = 0; i < points->count; i++) {
        const struct fly_operating_point *point = &points->points[i];

        if (!all && !points->on_frontier[i])
            continue;
        table_add_integer(table, point->batch_size);
        table_add_real(table, point->power_limit_w);
        table_add_real(table, point->time_s);
        table_add_real(table, point->energy_j);
        table_add_real(table, cost_of(result, point));
        add_changes(table, result, point);
        add_marks(table, result, i, for_people);
    }
}

/* -- For programs -- */

static json_t *point_document(const struct pareto_result *result, size_t i)
{
    const struct fly_operating_point *point = &result->points->points[i];

    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:i}", "batch_size", (json_int_t)point->batch_size,
                     "power_limit_w", point->power_limit_w, "time_s", point->time_s, "energy_j",
                     point->energy_j, "cost_j", cost_of(result, point), "on_frontier",
                     result->points->on_frontier[i]);
}

static json_t *default_document(const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;
    const struct batch_choice *batch = &spec->batches[spec->default_batch];

    if (pareto_default_known(result))
        return point_document(result, result->points->default_point);
    return json_pack("{s:I, s:f, s:n, s:s, s:n, s:s}", "batch_size", (json_int_t)batch->size, "power_limit_w",
                     batch_highest_limit_w(batch), "time_s", "time_s_unavailable", default_unknown(result),
                     "energy_j", "energy_j_unavailable", default_unknown(result));
}

static json_t *objective_document(const struct pareto_result *result)
{
    const struct fly_objective *objective = &result->objective;
    json_t *document = json_pack("{s:s, s:f, s:f}", "kind", objective_names[objective->kind], "eta",
                                 objective->eta, "max_power_w", result->workload->spec.max_power_w);

    if (isfinite(objective->max_slowdown))
        json_object_set_new(document, "max_slowdown_factor", json_real(objective->max_slowdown));
    else {
        json_object_set_new(document, "max_slowdown_factor", json_null());
        json_object_set_new(document, "max_slowdown_factor_unavailable", json_string("no bound was given"));
    }
    return document;
}

static json_t *left_out_document(const struct pareto_result *result)
{
    const struct operating_points *points = result->points;
    json_t *list = json_array();

    for (size_t i = 0; i < points->left_out_count; i++)
        json_array_append_new(list, json_pack("{s:I, s:s}", "batch_size",
                                              (json_int_t)points->left_out[i].batch_size, "reason",
                                              why_left_out(result, points->left_out[i].reason)));
    return list;
}

static void add_members(struct table *table, const struct pareto_result *result)
{
    table_member(table, result->source->subject_key, json_string(result->workload->job.name));
    table_member(table, "gpu", json_string(result->workload->gpu));
    table_member(table, result->source->place_key, json_string(result->source->place));
    table_member(table, "basis", json_string(result->source->basis));
    table_member(table, "objective", objective_document(result));
    table_member(table, "default", default_document(result));
    table_member(table, "chosen", point_document(result, result->chosen));
    table_member(table, "left_out_batch_sizes", left_out_document(result));
}

/* -- For people -- */

static void put_change(struct buffer *text, double ours, double theirs, const char *what)
{
    double percent = change_percent(ours, theirs);

    buffer_printf(text, "%.1f %% %s %s", fabs(percent), percent > 0.0 ? "more" : "less", what);
}

static void put_choice(struct buffer *text, const struct pareto_result *result)
{
    const struct fly_operating_point *chosen = &result->points->points[result->chosen], *today;
    char objective[PARETO_TEXT_MAX];

    pareto_objective_text(result, objective);
    buffer_printf(text, "\nThe choice of %s", objective);
    if (isfinite(result->objective.max_slowdown))
        buffer_printf(text, " within %g times the default's time", result->objective.max_slowdown);
    buffer_printf(text, ": batch %u at %g W.\n", chosen->batch_size, chosen->power_limit_w);
    if (!pareto_default_known(result))
        return;
    today = default_point(result);
    if (result->chosen == result->points->default_point) {
        buffer_puts(text, "That is the default itself: these two knobs save nothing more.\n");
        return;
    }
    buffer_puts(text, "Against the default: ");
    put_change(text, chosen->energy_j, today->energy_j, "energy, ");
    put_change(text, chosen->time_s, today->time_s, "time, ");
    put_change(text, cost_of(result, chosen), cost_of(result, today), "cost.\n");
}

static void put_default(struct buffer *text, const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;
    const struct batch_choice *batch = &spec->batches[spec->default_batch];

    buffer_printf(text, "Default: batch %u at %g W, ", batch->size, batch_highest_limit_w(batch));
    if (pareto_default_known(result))
        buffer_printf(
            text, "%.0f s and %.0f J%s.\n", default_point(result)->time_s, default_point(result)->energy_j,
            result->points->on_frontier[result->points->default_point] ? "" : "; not on the frontier");
    else
        buffer_printf(text, "whose time and energy are not known: %s.\n", default_unknown(result));
}

static void put_left_out(struct buffer *text, const struct pareto_result *result)
{
    const struct operating_points *points = result->points;
    for (size_t i = 0; i < points->left_out_count; i++)
        buffer_printf(text, "Left out: batch %u, since %s.\n", points->left_out[i].batch_size,
                      why_left_out(result, points->left_out[i].reason));
}

static void put_heading(struct buffer *text, const struct pareto_result *result)
{
    size_t on_frontier = 0;

    for (size_t i = 0; i < result->points->count; i++)
        on_frontier += result->points->on_frontier[i];
    buffer_printf(text,
                  "%s on %s: %zu choices of batch size and power limit, %zu of them on the energy-time "
                  "frontier.\nExpected time and energy to the target, and the change against the "
                  "default; cost for eta %g.\n\n",
                  result->workload->job.name, result->workload->gpu, result->points->count, on_frontier,
                  result->objective.eta);
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
    put_choice(text, result);
    put_default(text, result);
    put_left_out(text, result);
    buffer_printf(text, "From %s %s: %s.\n", result->source->from, result->source->place,
                  result->source->basis);
}

int pareto_report_emit(const struct cli_call *call, const struct pareto_result *result,
                       struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct table_column shown[SHARED_COUNT + 1];
    struct table *table;
    int code = 0;

    for (int i = 0; i < SHARED_COUNT; i++)
        shown[i] = columns[i];
    shown[SHARED_COUNT] = mark_column;
    table = for_people ? table_new(result->source->schema, shown, SHARED_COUNT + 1)
                       : table_new(result->source->schema, columns, COLUMN_COUNT);
    add_rows(table, result, cli_flag(call, "all"), for_people);
    if (!for_people)
        add_members(table, result);
    if (for_people)
        code = emit_text(call, put_heading, result, out_error);
    if (code == 0)
        code = cli_emit_table(call, table, out_error);
    if (code == 0 && for_people)
        code = emit_text(call, put_tail, result, out_error);
    table_free(table);
    return code;
}
