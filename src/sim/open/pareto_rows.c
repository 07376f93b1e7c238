/* SPDX-License-Identifier: Apache-2.0 */
/* The points of a frontier as rows: one table says which columns exist, and who gets them. */
#include "sim/open/pareto_rows.h"

#include <math.h>
#include <stdio.h>

#include "sim/open/pareto_spread.h"

enum { MARK_MAX = 64 };

/* Who gets a column. */
enum reader { READER_ALL, READER_PROGRAM, READER_PEOPLE };

/* A column, what fills it, and whether a recorded job has it too. */
struct pareto_column {
    struct meaning column;
    void (*add)(struct table *table, const struct pareto_result *result, size_t i);
    enum reader reader;
    bool live;
};

static double change_percent(double ours, double theirs)
{
    return (ours / theirs - 1.0) * 100.0;
}

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
    table_add_real(table, pareto_cost(result, &result->points->points[i]));
}

/* The default's own change is no claim. */
static void add_change(struct table *table, const struct pareto_result *result, size_t i, double ours,
                       double theirs)
{
    if (i == result->points->default_point || pareto_change_known(result))
        table_add_real(table, change_percent(ours, theirs));
    else
        table_add_unavailable(table, "-", pareto_spread_doubt(result, i));
}

static void add_time_change(struct table *table, const struct pareto_result *result, size_t i)
{
    add_change(table, result, i, result->points->points[i].time_s,
               pareto_default_known(result) ? pareto_default(result)->time_s : NAN);
}

static void add_energy_change(struct table *table, const struct pareto_result *result, size_t i)
{
    add_change(table, result, i, result->points->points[i].energy_j,
               pareto_default_known(result) ? pareto_default(result)->energy_j : NAN);
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

/* A change is the negative of a saving. */
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

    snprintf(mark, sizeof mark, "%s%s", is_chosen ? pareto_best_name(result->objective.kind) : "",
             is_default ? is_chosen ? ", default" : "default" : "");
    if (!result->points->on_frontier[i])
        snprintf(mark, sizeof mark, "%s",
                 is_default ? "default, not on the frontier" : "not on the frontier");
    table_add_text(table, mark);
}

static const struct pareto_column columns[] = {
    {{"batch_size", "batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Global batch size."},
     add_batch,
     READER_ALL,
     false},
    {{"power_limit_w", "limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit of each GPU."},
     add_limit,
     READER_ALL,
     false},
    {{"trials", "trials", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Trials that the figures are means of."},
     add_trials,
     READER_ALL,
     true},
    {{"time_s", "time (s)", MEANING_REAL, MEANING_DIGITS(3), "s", MEANING_GAUGE, "Time to the target."},
     add_time,
     READER_ALL,
     false},
    {{"time_low_s", "from", MEANING_REAL, 0, "s", MEANING_GAUGE,
      "Lower end of the 95 % interval of that time."},
     add_time_low,
     READER_PROGRAM,
     true},
    {{"time_high_s", "to", MEANING_REAL, 0, "s", MEANING_GAUGE,
      "Upper end of the 95 % interval of that time."},
     add_time_high,
     READER_PROGRAM,
     true},
    {{"energy_j", "energy (J)", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_GAUGE, "Energy to the target."},
     add_energy,
     READER_ALL,
     false},
    {{"energy_low_j", "from", MEANING_REAL, 0, "J", MEANING_GAUGE,
      "Lower end of the 95 % interval of that energy."},
     add_energy_low,
     READER_PROGRAM,
     true},
    {{"energy_high_j", "to", MEANING_REAL, 0, "J", MEANING_GAUGE,
      "Upper end of the 95 % interval of that energy."},
     add_energy_high,
     READER_PROGRAM,
     true},
    {{"cost_j", "score", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_GAUGE,
      "Score of both: eta * energy + (1 - eta) * max_power * time."},
     add_cost,
     READER_ALL,
     false},
    {{"time_change_percent", "time %", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Change of the time against the default."},
     add_time_change,
     READER_ALL,
     false},
    {{"time_change_low_percent", "from", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Lower end of the 95 % interval of that change."},
     add_time_change_low,
     READER_PROGRAM,
     true},
    {{"time_change_high_percent", "to", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Upper end of the 95 % interval of that change."},
     add_time_change_high,
     READER_PROGRAM,
     true},
    {{"energy_change_percent", "energy %", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Change of the energy against the default."},
     add_energy_change,
     READER_ALL,
     false},
    {{"energy_change_low_percent", "from %", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Lower end of the 95 % interval of that change."},
     add_energy_change_low,
     READER_ALL,
     true},
    {{"energy_change_high_percent", "to %", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Upper end of the 95 % interval of that change."},
     add_energy_change_high,
     READER_ALL,
     true},
    {{"on_frontier", "on frontier", MEANING_WHOLE, 0, NULL, MEANING_FACT,
      "1 if no other point is better in both time and energy, else 0."},
     add_on_frontier,
     READER_PROGRAM,
     false},
    {{"default", "default", MEANING_WHOLE, 0, NULL, MEANING_FACT, "1 if it is the default, else 0."},
     add_default,
     READER_PROGRAM,
     false},
    {{"chosen", "chosen", MEANING_WHOLE, 0, NULL, MEANING_FACT,
      "1 if it is the point of the lowest score, else 0."},
     add_chosen,
     READER_PROGRAM,
     false},
    {TABLE_SHOWN("", MEANING_TEXT, 0), add_mark, READER_PEOPLE, false},
};
const struct quantities pareto_quantities = {"a batch size and a power limit",
                                             QUANTITIES_IN(columns, column)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };
_Static_assert(sizeof columns / sizeof columns[0] <= PARETO_COLUMNS_MAX, "every column has its place");

struct pareto_columns pareto_columns_for(const struct pareto_result *result, bool for_people)
{
    struct pareto_columns chosen = {.count = 0};

    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const struct pareto_column *column = &columns[i];

        if (column->reader == (for_people ? READER_PROGRAM : READER_PEOPLE) ||
            (column->live && result->spreads == NULL))
            continue;
        chosen.columns[chosen.count] = column->column;
        chosen.from[chosen.count++] = column;
    }
    return chosen;
}

struct table *pareto_rows_new(const struct pareto_result *result, const struct pareto_columns *chosen,
                              bool all)
{
    struct table *table = table_new(result->source->schema, chosen->columns, chosen->count);

    for (size_t i = 0; i < result->points->count; i++) {
        for (size_t k = 0; k < chosen->count && (all || result->points->on_frontier[i]); k++)
            chosen->from[k]->add(table, result, i);
    }
    return table;
}
