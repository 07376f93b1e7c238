/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement for people: a line for each fact of the ways, for what was saved, and for what that
 * is based on.
 */
#include "cli/views/statement_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/amount.h"

enum { CELL_MAX = 96, COLUMNS = STATEMENT_WAYS + 1, ROWS = 3 + STATEMENT_PARTS + CARBON_SIGNALS };

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
    size_t rows, columns;
};

static const char *own_name(const struct carbon_statement *statement)
{
    return statement->planned ? "as planned" : statement_way_name(STATEMENT_AS_RUN);
}

/* Leaves out parts that are absent here, and a sum of only one part. */
static bool is_shown(const struct carbon_statement *statement, enum statement_part part)
{
    bool host = statement->host != STATEMENT_HOST_LEFT_OUT, site = statement->pue > 1.0;

    switch (part) {
    case STATEMENT_HOST:
        return host;
    case STATEMENT_PUE:
        return site;
    case STATEMENT_ALL:
        return host || site;
    default:
        return true;
    }
}

/* Writes a line for each fact, in the same order as put_way. */
static void put_names(const struct carbon_statement *statement, struct grid *grid)
{
    size_t row = 1;

    snprintf(grid->cells[row++][0], CELL_MAX, "time");
    for (int part = 0; part < STATEMENT_PARTS; part++) {
        char *cell = grid->cells[row][0];
        int length;

        if (!is_shown(statement, (enum statement_part)part))
            continue;
        length = snprintf(cell, CELL_MAX, "%s", statement_part_name((enum statement_part)part));
        if (part == STATEMENT_PUE)
            snprintf(cell + length, (size_t)(CELL_MAX - length), " %g", statement->pue);
        row++;
    }
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (statement->kinds[i] != NULL)
            snprintf(grid->cells[row++][0], CELL_MAX, "%s", signal_words[i]);
    }
    grid->rows = row;
    grid->columns = 1;
}

static bool is_mixed(const struct carbon_mix *mix)
{
    return mix->high_share > 0.0 && mix->high_share < 1.0;
}

static void put_way(const struct carbon_statement *statement, enum statement_way way, struct grid *grid)
{
    const struct statement_figures *figures = &statement->ways[way];
    size_t row = 0, column = grid->columns++;
    char text[AMOUNT_MAX];

    if (way == STATEMENT_AS_RUN)
        snprintf(grid->cells[row++][column], CELL_MAX, "%s", own_name(statement));
    else if (way == STATEMENT_MIX && is_mixed(&statement->mix))
        snprintf(grid->cells[row++][column], CELL_MAX, "%s, %g/%g W", statement_way_name(way),
                 statement->mix.low.limit_w, statement->mix.high.limit_w);
    else
        snprintf(grid->cells[row++][column], CELL_MAX, "%s, %g W", statement_way_name(way), figures->limit_w);
    snprintf(grid->cells[row++][column], CELL_MAX, "%s", amount_time(figures->time_s, text));
    for (int part = 0; part < STATEMENT_PARTS; part++) {
        if (is_shown(statement, (enum statement_part)part))
            snprintf(grid->cells[row++][column], CELL_MAX, "%s",
                     amount_energy(figures->energy_j[part], NAN, amount_plus_minus(), text));
    }
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (statement->kinds[i] != NULL)
            statement_amount(i, figures->amount[i][STATEMENT_ALL], currency_of(statement, i),
                             grid->cells[row++][column]);
    }
}

static void put_grid(const struct grid *grid, const char *indent, struct buffer *out)
{
    for (size_t row = 0; row < grid->rows; row++) {
        int gap = 0;

        buffer_puts(out, indent);
        for (size_t column = 0; column < grid->columns; column++) {
            int width = 0;

            for (size_t i = 0; i < grid->rows; i++) {
                int length = (int)strlen(grid->cells[i][column]);

                width = length > width ? length : width;
            }
            buffer_printf(out, "%*s%s", gap, "", grid->cells[row][column]);
            gap = width - (int)strlen(grid->cells[row][column]) + 2;
        }
        buffer_puts(out, "\n");
    }
}

/* Writes "20 g by the lower limit and 8 g by following the grid"; nothing if nothing is known. */
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
    buffer_printf(out, ", %s by the lower limit and %s by following the grid\n",
                  statement_amount(signal, statement->by_limit.amount[signal], currency, limit),
                  statement_amount(signal, statement->by_grid.amount[signal], currency, grid));
}

/* Writes what the energy's figures are based on: "measured 62 %, forecast 38 %". */
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

static void put_energy_saving(const struct carbon_statement *statement, const char *indent,
                              struct buffer *out)
{
    double highest = statement->ways[STATEMENT_HIGHEST].energy_j[STATEMENT_ALL];
    char all[AMOUNT_MAX], limit[AMOUNT_MAX], grid[AMOUNT_MAX];

    if (!(highest > 0.0) || isnan(statement->saved.energy_j))
        return;
    buffer_printf(out, "%senergy saved: %s (%.1f %%), %s by the lower limit and %s by following the grid\n",
                  indent, amount_energy(statement->saved.energy_j, NAN, amount_plus_minus(), all),
                  percent * statement->saved.energy_j / highest,
                  amount_energy(statement->by_limit.energy_j, NAN, amount_plus_minus(), limit),
                  amount_energy(statement->by_grid.energy_j, NAN, amount_plus_minus(), grid));
}

/* Writes what the other ways are based on. */
static void put_basis(const struct carbon_statement *statement, const char *indent, struct buffer *out)
{
    if (!statement->planned)
        buffer_printf(
            out,
            "%sestimated: %.3g %% of the GPUs' energy was used under limits of the profile, %.3f times "
            "what that says,\n%sand is scaled by it; the rest is the same in all\n",
            indent, percent * statement->modelled_share, statement->measured_per_modelled, indent);
    buffer_printf(
        out, "%sthe best single limit and the best mixture take at most %.4g times the time at the fastest\n",
        indent, statement->bound);
}

void statement_lines(const struct carbon_statement *statement, const char *indent, struct buffer *out)
{
    struct grid grid = {0};

    put_names(statement, &grid);
    for (int way = 0; way < STATEMENT_WAYS; way++) {
        if (statement->ways[way].known)
            put_way(statement, (enum statement_way)way, &grid);
    }
    put_grid(&grid, indent, out);
    if (statement->missing[0] != '\0')
        buffer_printf(out, "%snothing to compare with: %s\n", indent, statement->missing);
    if (statement->ways[STATEMENT_HIGHEST].known)
        put_energy_saving(statement, indent, out);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (statement->kinds[i] != NULL && statement->ways[STATEMENT_HIGHEST].known)
            put_saving(statement, i, indent, out);
    }
    if (statement->ways[STATEMENT_HIGHEST].known)
        put_basis(statement, indent, out);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (statement->kinds[i] != NULL)
            put_qualities(statement, i, indent, out);
    }
    if (statement->ways[STATEMENT_AS_RUN].unmeasured_s > 0.0) {
        char text[AMOUNT_MAX];

        buffer_printf(out, "%sGPU energy of %s is not known, and in no figure\n", indent,
                      amount_time(statement->ways[STATEMENT_AS_RUN].unmeasured_s, text));
    }
}
