/* SPDX-License-Identifier: Apache-2.0 */
/* The frontier as text and as rows. */
#include <math.h>
#include <stdio.h>

#include <flyball/cost.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/json_number.h"
#include "cli/pareto_result.h"
#include "cli/pareto_spread.h"
#include "cli/saving_words.h"

enum { TEXT_MAX = 1 << 20, MARK_MAX = 64 };

/* Who gets a column. */
enum reader { READER_ALL, READER_PROGRAM, READER_PEOPLE };

/* A column, what fills it, and whether a recorded job has it as well. */
struct pareto_column {
    struct table_column column;
    void (*add)(struct table *table, const struct pareto_result *result, size_t i);
    enum reader reader;
    bool live;
};

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

static void add_batch(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_integer(table, result->points->points[i].batch_size);
}

static void add_limit(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_real(table, result->points->points[i].power_limit_w);
}

static void add_trials(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_integer(table, (int64_t)pareto_spread_of(result, i)->trials);
}

static void add_time(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_real(table, result->points->points[i].time_s);
}

static void add_energy(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_real(table, result->points->points[i].energy_j);
}

static void add_cost(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_real(table, cost_of(result, &result->points->points[i]));
}

static const char no_default[] = "the default batch size is not known to reach the target";

static void add_change(struct table *table, const struct pareto_result *result, double ours, double theirs)
{
    if (pareto_default_known(result))
        table_add_real(table, change_percent(ours, theirs));
    else
        table_add_unavailable(table, NULL, no_default);
}

static void add_time_change(struct table *table, const struct pareto_result *result, size_t i)
{
    add_change(table, result, result->points->points[i].time_s,
               pareto_default_known(result) ? default_point(result)->time_s : NAN);
}

static void add_energy_change(struct table *table, const struct pareto_result *result, size_t i)
{
    add_change(table, result, result->points->points[i].energy_j,
               pareto_default_known(result) ? default_point(result)->energy_j : NAN);
}

static void add_bound(struct table *table, double value, const char *reason)
{
    if (isnan(value))
        table_add_unavailable(table, "-", reason);
    else
        table_add_real(table, value);
}

static void add_time_low(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, pareto_spread_time(result, i).low, pareto_spread_few);
}

static void add_time_high(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, pareto_spread_time(result, i).high, pareto_spread_few);
}

static void add_energy_low(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, pareto_spread_energy(result, i).low, pareto_spread_few);
}

static void add_energy_high(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, pareto_spread_energy(result, i).high, pareto_spread_few);
}

/* A change is a saving the other way round. */
static void add_time_change_low(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, -100.0 * pareto_time_saving(result, i).high, pareto_spread_doubt(result, i));
}

static void add_time_change_high(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, -100.0 * pareto_time_saving(result, i).low, pareto_spread_doubt(result, i));
}

static void add_energy_change_low(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, -100.0 * pareto_energy_saving(result, i).high, pareto_spread_doubt(result, i));
}

static void add_energy_change_high(struct table *table, const struct pareto_result *result, size_t i)
{
    add_bound(table, -100.0 * pareto_energy_saving(result, i).low, pareto_spread_doubt(result, i));
}

static void add_on_frontier(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_integer(table, result->points->on_frontier[i]);
}

static void add_default(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_integer(table, i == result->points->default_point);
}

static void add_chosen(struct table *table, const struct pareto_result *result, size_t i)
{
    table_add_integer(table, i == result->chosen);
}

/* The three marks as words. */
static void add_mark(struct table *table, const struct pareto_result *result, size_t i)
{
    bool is_default = i == result->points->default_point, is_chosen = i == result->chosen;
    char mark[MARK_MAX];

    snprintf(mark, sizeof mark, "%s%s%s", is_chosen ? "least " : "",
             is_chosen ? objective_names[result->objective.kind] : "",
             is_default ? is_chosen ? ", default" : "default" : "");
    if (!result->points->on_frontier[i])
        snprintf(mark, sizeof mark, "%s",
                 is_default ? "default, not on the frontier" : "not on the frontier");
    table_add_text(table, mark);
}

static const struct pareto_column columns[] = {
    {{"batch_size", "batch", TABLE_INTEGER, 0}, add_batch, READER_ALL, false},
    {{"power_limit_w", "limit (W)", TABLE_REAL, 0}, add_limit, READER_ALL, false},
    {{"trials", "trials", TABLE_INTEGER, 0}, add_trials, READER_ALL, true},
    {{"time_s", "time (s)", TABLE_REAL, TABLE_DIGITS(3)}, add_time, READER_ALL, false},
    {{"time_low_s", "from", TABLE_REAL, 0}, add_time_low, READER_PROGRAM, true},
    {{"time_high_s", "to", TABLE_REAL, 0}, add_time_high, READER_PROGRAM, true},
    {{"energy_j", "energy (J)", TABLE_REAL, TABLE_DIGITS(3)}, add_energy, READER_ALL, false},
    {{"energy_low_j", "from", TABLE_REAL, 0}, add_energy_low, READER_PROGRAM, true},
    {{"energy_high_j", "to", TABLE_REAL, 0}, add_energy_high, READER_PROGRAM, true},
    {{"cost_j", "cost (J)", TABLE_REAL, TABLE_DIGITS(3)}, add_cost, READER_ALL, false},
    {{"time_change_percent", "time %", TABLE_REAL, 1}, add_time_change, READER_ALL, false},
    {{"time_change_low_percent", "from", TABLE_REAL, 1}, add_time_change_low, READER_PROGRAM, true},
    {{"time_change_high_percent", "to", TABLE_REAL, 1}, add_time_change_high, READER_PROGRAM, true},
    {{"energy_change_percent", "energy %", TABLE_REAL, 1}, add_energy_change, READER_ALL, false},
    {{"energy_change_low_percent", "from %", TABLE_REAL, 1}, add_energy_change_low, READER_ALL, true},
    {{"energy_change_high_percent", "to %", TABLE_REAL, 1}, add_energy_change_high, READER_ALL, true},
    {{"on_frontier", "on frontier", TABLE_INTEGER, 0}, add_on_frontier, READER_PROGRAM, false},
    {{"default", "default", TABLE_INTEGER, 0}, add_default, READER_PROGRAM, false},
    {{"chosen", "chosen", TABLE_INTEGER, 0}, add_chosen, READER_PROGRAM, false},
    {{"mark", "", TABLE_TEXT, 0}, add_mark, READER_PEOPLE, false},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

/* The columns of one emission. */
struct shown {
    struct table_column columns[COLUMN_COUNT];
    const struct pareto_column *from[COLUMN_COUNT];
    size_t count;
};

static void choose_columns(const struct pareto_result *result, bool for_people, struct shown *shown)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const struct pareto_column *column = &columns[i];

        if (column->reader == (for_people ? READER_PROGRAM : READER_PEOPLE) ||
            (column->live && result->spreads == NULL))
            continue;
        shown->columns[shown->count] = column->column;
        shown->from[shown->count++] = column;
    }
}

static void add_rows(struct table *table, const struct pareto_result *result, const struct shown *shown,
                     bool all)
{
    for (size_t i = 0; i < result->points->count; i++) {
        for (size_t k = 0; k < shown->count && (all || result->points->on_frontier[i]); k++)
            shown->from[k]->add(table, result, i);
    }
}

/* -- For programs -- */

static const char not_known[] = "it is not known";

static json_t *point_document(const struct pareto_result *result, size_t i)
{
    const struct fly_operating_point *point = &result->points->points[i];
    json_t *document = json_pack("{s:I, s:i}", "batch_size", (json_int_t)point->batch_size, "on_frontier",
                                 result->points->on_frontier[i]);

    json_number_set(document, "power_limit_w", point->power_limit_w, not_known);
    json_number_set(document, "time_s", point->time_s, not_known);
    json_number_set(document, "energy_j", point->energy_j, not_known);
    json_number_set(document, "cost_j", cost_of(result, point), not_known);
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
    json_number_set(document, "time_s", NAN, default_unknown(result));
    json_number_set(document, "energy_j", NAN, default_unknown(result));
    return document;
}

static json_t *objective_document(const struct pareto_result *result)
{
    const struct fly_objective *objective = &result->objective;
    json_t *document = json_pack("{s:s}", "kind", objective_names[objective->kind]);

    json_number_set(document, "eta", objective->eta, not_known);
    json_number_set(document, "max_power_w", result->workload->spec.max_power_w, not_known);
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

/* What was really saved, as `job show` has it. */
static json_t *measured_document(const struct job_savings *savings)
{
    const char *doubt = saving_doubt_text(savings->doubt);
    json_t *document = json_object();

    json_number_set(document, "energy_saving_percent", 100.0 * savings->energy.saving, doubt);
    json_number_set(document, "energy_saving_low_percent", 100.0 * savings->energy.low, doubt);
    json_number_set(document, "energy_saving_high_percent", 100.0 * savings->energy.high, doubt);
    return document;
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
    if (result->savings != NULL)
        table_member(table, "measured", measured_document(result->savings));
}

/* -- For people -- */

/* "12.3 % less energy (4.5 to 19.8 %)", without bounds where these are not known. */
static void put_change(struct buffer *text, double ours, double theirs, struct saving saving,
                       const char *what)
{
    saving.saving = 1.0 - ours / theirs;
    saving_words_change(text, &saving, what);
}

/* How sure the change is: in the words of `job show`. */
static void put_certainty(struct buffer *text, const struct pareto_result *result)
{
    const struct job_savings *savings = result->savings;
    struct saving energy = pareto_energy_saving(result, result->chosen);
    bool bounded = isfinite(energy.low);

    if (savings == NULL)
        return;
    if (!bounded)
        buffer_printf(text, "These are expectations; within which bounds is not known, since %s.\n",
                      pareto_spread_doubt(result, result->chosen));
    if (savings->known) {
        buffer_puts(text, "What the job really saves ('flyball job show'): ");
        saving_words_change(text, &savings->energy, "energy");
        buffer_puts(text, ".\n");
    }
    if ((bounded && saving_words_by_chance(&energy)) ||
        (savings->known && saving_words_by_chance(&savings->energy)))
        buffer_printf(text, "%s\n", saving_words_chance);
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
    put_change(text, chosen->energy_j, today->energy_j, pareto_energy_saving(result, result->chosen),
               "energy");
    buffer_puts(text, ", ");
    put_change(text, chosen->time_s, today->time_s, pareto_time_saving(result, result->chosen), "time");
    buffer_puts(text, ", ");
    put_change(text, cost_of(result, chosen), cost_of(result, today), (struct saving){NAN, NAN, NAN}, "cost");
    buffer_puts(text, ".\n");
    put_certainty(text, result);
}

static void put_default(struct buffer *text, const struct pareto_result *result)
{
    const struct job_spec *spec = &result->workload->spec;
    const struct batch_choice *batch = &spec->batches[spec->default_batch];

    buffer_printf(text, "Default: batch %u at %g W, ", batch->size, batch_highest_limit_w(batch));
    if (pareto_default_known(result))
        buffer_printf(
            text, "%.*f s and %.*f J%s.\n", table_decimals(TABLE_DIGITS(3), default_point(result)->time_s),
            default_point(result)->time_s, table_decimals(TABLE_DIGITS(3), default_point(result)->energy_j),
            default_point(result)->energy_j,
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
    struct shown shown = {.count = 0};
    struct table *table;
    int code = 0;

    choose_columns(result, for_people, &shown);
    table = table_new(result->source->schema, shown.columns, shown.count);
    add_rows(table, result, &shown, cli_flag(call, "all"));
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
