/* SPDX-License-Identifier: Apache-2.0 */
/* A statement for people: a table of the three ways, what was saved, and what it rests on. */
#include "cli/statement_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/amount.h"

enum { CELL_MAX = 96, COLUMNS = 7, ROWS = STATEMENT_WAYS + 1, TEXT_MAX = 256 };

static const double percent = 100.0, kg_from_g = 1e3, tonne_from_g = 1e6, most_text = 1e15;

static const char *const signal_words[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = "carbon", [CARBON_PRICE] = "money"};

char *statement_amount(int signal, double amount, const char *currency, char text[STATEMENT_AMOUNT_MAX])
{
    double size = fabs(amount);

    if (!isfinite(amount) || size > most_text)
        snprintf(text, STATEMENT_AMOUNT_MAX, "unknown");
    else if (signal == CARBON_PRICE)
        snprintf(text, STATEMENT_AMOUNT_MAX, "%.3g%s%.16s", amount, currency[0] != '\0' ? " " : "", currency);
    else if (size >= tonne_from_g)
        snprintf(text, STATEMENT_AMOUNT_MAX, "%.4g t", amount / tonne_from_g);
    else if (size >= kg_from_g)
        snprintf(text, STATEMENT_AMOUNT_MAX, "%.4g kg", amount / kg_from_g);
    else
        snprintf(text, STATEMENT_AMOUNT_MAX, "%.3g g", amount);
    return text;
}

static const char *currency_of(const struct carbon_statement *statement, int signal)
{
    return statement->kinds[signal] != NULL ? statement->kinds[signal]->currency : "";
}

struct grid {
    char cells[ROWS][COLUMNS][CELL_MAX];
    bool shown[COLUMNS];
};

/* Columns of parts that are no part of anything here, and of figures without a source, are left out. */
static void choose_columns(const struct carbon_statement *statement, struct grid *grid)
{
    static const char *const heads[COLUMNS] = {"", "time", "GPUs", "host", "PUE", "carbon", "money"};
    const bool shown[COLUMNS] = {true,
                                 true,
                                 true,
                                 statement->host != STATEMENT_HOST_LEFT_OUT,
                                 statement->pue > 1.0,
                                 statement->kinds[CARBON_INTENSITY] != NULL,
                                 statement->kinds[CARBON_PRICE] != NULL};

    memcpy(grid->shown, shown, sizeof shown);
    for (int i = 0; i < COLUMNS; i++)
        snprintf(grid->cells[0][i], CELL_MAX, "%s", heads[i]);
}

static void fill_row(const struct carbon_statement *statement, enum statement_way way,
                     char cells[COLUMNS][CELL_MAX])
{
    static const enum statement_part parts[] = {STATEMENT_GPUS, STATEMENT_HOST, STATEMENT_PUE};
    const struct statement_figures *figures = &statement->ways[way];
    char text[AMOUNT_MAX];

    if (isfinite(figures->limit_w) && way != STATEMENT_AS_RUN)
        snprintf(cells[0], CELL_MAX, "%s, %g W", statement_way_name(way), figures->limit_w);
    else
        snprintf(cells[0], CELL_MAX, "%s", statement_way_name(way));
    snprintf(cells[1], CELL_MAX, "%s", amount_time(figures->time_s, text));
    for (int i = 0; i < 3; i++)
        snprintf(cells[2 + i], CELL_MAX, "%s",
                 amount_energy(figures->energy_j[parts[i]], NAN, amount_plus_minus(), text));
    for (int i = 0; i < CARBON_SIGNALS; i++)
        statement_amount(i, figures->amount[i][STATEMENT_ALL], currency_of(statement, i), cells[5 + i]);
}

static void put_grid(const struct grid *grid, size_t rows, const char *indent, struct buffer *out)
{
    for (size_t row = 0; row < rows; row++) {
        int gap = 0;

        buffer_puts(out, indent);
        for (int column = 0; column < COLUMNS; column++) {
            int width = 0;

            if (!grid->shown[column])
                continue;
            for (size_t i = 0; i < rows; i++) {
                int length = (int)strlen(grid->cells[i][column]);

                width = length > width ? length : width;
            }
            buffer_printf(out, "%*s%s", gap, "", grid->cells[row][column]);
            gap = width - (int)strlen(grid->cells[row][column]) + 2;
        }
        buffer_puts(out, "\n");
    }
}

/* "20 g by the lower limit and 8 g by following the grid"; nothing where nothing is known. */
static void put_saving(const struct carbon_statement *statement, int signal, const char *indent,
                       struct buffer *out)
{
    char all[STATEMENT_AMOUNT_MAX], limit[STATEMENT_AMOUNT_MAX], grid[STATEMENT_AMOUNT_MAX];
    double highest = statement->ways[STATEMENT_HIGHEST].amount[signal][STATEMENT_ALL];
    double saved = statement->saved.amount[signal];
    const char *currency = currency_of(statement, signal);

    if (!isfinite(saved)) {
        buffer_printf(out, "%s%s saved: unknown, a part of the energy has no figure yet\n", indent,
                      signal_words[signal]);
        return;
    }
    buffer_printf(out, "%s%s saved: %s", indent, signal_words[signal],
                  statement_amount(signal, saved, currency, all));
    if (highest > 0.0)
        buffer_printf(out, " (%.1f %%)", percent * saved / highest);
    buffer_printf(out, ", %s by the lower limit and %s by following the grid; estimated from the profile\n",
                  statement_amount(signal, statement->by_limit.amount[signal], currency, limit),
                  statement_amount(signal, statement->by_grid.amount[signal], currency, grid));
}

/* What the figures of the energy are: "measured 62 %, forecast 38 %". */
static void put_qualities(const struct carbon_statement *statement, int signal, const char *indent,
                          struct buffer *out)
{
    const double *share = statement->ways[STATEMENT_AS_RUN].share[signal];
    const struct grid_kind *kind = statement->kinds[signal];
    const char *between = ": ";

    buffer_printf(out, "%sfigures of %s", indent, kind->provider);
    if (kind->zone[0] != '\0')
        buffer_printf(out, " for %s", kind->zone);
    if (signal == CARBON_INTENSITY)
        buffer_printf(out, " (%s, %s)", grid_signal_name(kind->signal), grid_scope_name(kind->scope));
    for (int i = 0; i < GRID_QUALITY_COUNT; i++) {
        if (!(share[i] > 0.0))
            continue;
        buffer_printf(out, "%s%s %.3g %%", between, grid_quality_name((enum grid_quality)i),
                      percent * share[i]);
        between = ", ";
    }
    buffer_puts(out, "\n");
}

void statement_lines(const struct carbon_statement *statement, const char *indent, struct buffer *out)
{
    struct grid grid = {0};
    size_t rows = 1;

    choose_columns(statement, &grid);
    for (int way = 0; way < STATEMENT_WAYS; way++) {
        if (statement->ways[way].known)
            fill_row(statement, (enum statement_way)way, grid.cells[rows++]);
    }
    put_grid(&grid, rows, indent, out);
    if (statement->missing[0] != '\0')
        buffer_printf(out, "%snothing to compare with: %s\n", indent, statement->missing);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (statement->kinds[i] == NULL)
            continue;
        if (statement->ways[STATEMENT_HIGHEST].known)
            put_saving(statement, i, indent, out);
        put_qualities(statement, i, indent, out);
    }
    if (statement->ways[STATEMENT_AS_RUN].unmeasured_s > 0.0) {
        char text[AMOUNT_MAX];

        buffer_printf(out, "%sGPU energy of %s is not known, and in no figure\n", indent,
                      amount_time(statement->ways[STATEMENT_AS_RUN].unmeasured_s, text));
    }
}
