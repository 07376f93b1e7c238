/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/views/statement_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/kit/amount.h"
#include "grid/forecast.h"
#include "grid/providers.h"
#include "shapes/shape_told.h"

/* ---- JSON: figures of one way; unknown ones are null ---- */

struct part_figures {
    double of[STATEMENT_PARTS];
};

static const struct shape_field part_rows[] = {
    {SHAPE_AT_AS("gpus", part_figures, of[STATEMENT_GPUS]), TOLD_NUMBER},
    {SHAPE_AT_AS("host", part_figures, of[STATEMENT_HOST]), TOLD_NUMBER},
    {SHAPE_AT_AS("pue", part_figures, of[STATEMENT_PUE]), TOLD_NUMBER},
    {SHAPE_AT_AS("all", part_figures, of[STATEMENT_ALL]), TOLD_NUMBER},
};
static const struct shape part_shape = {SHAPE_OF(part_figures, part_rows)};

static const struct shape_field share_rows[] = {
    {SHAPE_AT_AS("measured", quality_shares, of[GRID_MEASURED]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("estimated", quality_shares, of[GRID_ESTIMATED]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("forecast", quality_shares, of[GRID_FORECAST]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("own forecast", quality_shares, of[GRID_OWN_FORECAST]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("fall-back", quality_shares, of[GRID_FALL_BACK]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("unknown", quality_shares, of[GRID_UNKNOWN]), TOLD_TIMES(100.0)},
};
const struct shape quality_share_shape = {SHAPE_OF(quality_shares, share_rows)};

/* NULL for figures that the grid does not give, here and below. */
struct coverage {
    const double *intensity, *price; /* shares */
};

static const struct shape_field coverage_rows[] = {
    {SHAPE_AT(coverage, intensity), TOLD_POINTED(&quality_share_shape)},
    {SHAPE_AT(coverage, price), TOLD_POINTED(&quality_share_shape)},
};
static const struct shape coverage_shape = {SHAPE_OF(coverage, coverage_rows)};

static json_t *moment(double time_s)
{
    char text[ISO_TIME_TEXT_MAX];

    return isfinite(time_s) ? json_string(iso_time_format((int64_t)time_s, text)) : NULL;
}

static json_t *start_of(const void *from)
{
    return moment(((const struct statement_figures *)from)->start_s);
}

static json_t *end_of(const void *from)
{
    return moment(((const struct statement_figures *)from)->end_s);
}

static const struct shape_field figures_rows[] = {
    {SHAPE_AT(statement_figures, limit_w), TOLD_NUMBER},
    {.name = "start", TOLD_MADE(start_of)},
    {.name = "end", TOLD_MADE(end_of)},
    {SHAPE_AT(statement_figures, time_s), TOLD_NUMBER},
    {SHAPE_AT(statement_figures, energy_j), SHAPE_IS_STRUCT(&part_shape)},
};
static const struct shape figures_shape = {SHAPE_OF(statement_figures, figures_rows)};

struct way {
    const char *way;
    bool estimated;
    const struct statement_figures *figures;
    const double *carbon_g, *money; /* of each part */
    struct coverage coverage_percent;
    double unmeasured_s;
};

static const struct shape_field way_rows[] = {
    {SHAPE_AT(way, way), TOLD_ANY_TEXT},
    {SHAPE_AT(way, estimated), TOLD_BOOL},
    {SHAPE_AT(way, figures), TOLD_MERGED(&figures_shape)},
    {SHAPE_AT(way, carbon_g), TOLD_POINTED(&part_shape)},
    {SHAPE_AT(way, money), TOLD_POINTED(&part_shape)},
    {SHAPE_AT(way, coverage_percent), SHAPE_IS_STRUCT(&coverage_shape)},
    {SHAPE_AT(way, unmeasured_s), TOLD_NUMBER},
};
static const struct shape way_shape = {SHAPE_OF(way, way_rows)};

static void put_way(const struct carbon_statement *statement, enum statement_way number, struct way *out)
{
    const struct statement_figures *figures = &statement->ways[number];
    bool planned = number == STATEMENT_AS_RUN && statement->planned;
    bool emitted = statement->kinds[CARBON_INTENSITY] != NULL, paid = statement->kinds[CARBON_PRICE] != NULL;

    out->way = planned ? "as planned" : statement_way_name(number);
    out->estimated = number != STATEMENT_AS_RUN || planned;
    out->figures = figures;
    out->carbon_g = emitted ? figures->amount[CARBON_INTENSITY] : NULL;
    out->money = paid ? figures->amount[CARBON_PRICE] : NULL;
    out->coverage_percent = (struct coverage){emitted ? figures->share[CARBON_INTENSITY] : NULL,
                                              paid ? figures->share[CARBON_PRICE] : NULL};
    out->unmeasured_s = figures->unmeasured_s;
}

/* ---- JSON: the grid, and what is saved ---- */

static json_t *signal_of(const void *from)
{
    return json_string(grid_signal_name(((const struct grid_kind *)from)->signal));
}

static json_t *scope_of(const void *from)
{
    return json_string(grid_scope_name(((const struct grid_kind *)from)->scope));
}

static const struct shape_field kind_rows[] = {
    {SHAPE_AT(grid_kind, provider), TOLD_ANY_CHARS(grid_kind, provider)},
    {SHAPE_AT(grid_kind, zone), TOLD_CHARS(grid_kind, zone)},
    {.name = "signal", TOLD_MADE(signal_of)},
    {.name = "scope", TOLD_MADE(scope_of)},
    {SHAPE_AT(grid_kind, currency), TOLD_CHARS(grid_kind, currency)},
};
static const struct shape kind_shape = {SHAPE_OF(grid_kind, kind_rows)};

static const struct shape_field mix_rows[] = {
    {SHAPE_AT_AS("low_limit_w", carbon_mix, low.limit_w), TOLD_NUMBER},
    {SHAPE_AT_AS("high_limit_w", carbon_mix, high.limit_w), TOLD_NUMBER},
    {SHAPE_AT(carbon_mix, high_share), TOLD_NUMBER},
};
static const struct shape mix_shape = {SHAPE_OF(carbon_mix, mix_rows)};

static const struct shape_field saving_rows[] = {
    {SHAPE_AT(statement_saving, time_s), TOLD_NUMBER},
    {SHAPE_AT(statement_saving, energy_j), TOLD_NUMBER},
    {SHAPE_AT_AS("carbon_g", statement_saving, amount[CARBON_INTENSITY]), TOLD_NUMBER},
    {SHAPE_AT_AS("money", statement_saving, amount[CARBON_PRICE]), TOLD_NUMBER},
};
static const struct shape saving_shape = {SHAPE_OF(statement_saving, saving_rows)};

/* ---- JSON: all of it ---- */

static const char *const host_names[] = {[STATEMENT_HOST_LEFT_OUT] = "left out",
                                         [STATEMENT_HOST_STATED] = "stated",
                                         [STATEMENT_HOST_MEASURED] = "measured"};

static const struct shape_field grid_rows[] = {
    {SHAPE_AT_AS("intensity", carbon_statement, kinds[CARBON_INTENSITY]), TOLD_POINTED(&kind_shape)},
    {SHAPE_AT_AS("price", carbon_statement, kinds[CARBON_PRICE]), TOLD_POINTED(&kind_shape)},
};
static const struct shape grid_shape = {SHAPE_OF(carbon_statement, grid_rows)};

static const struct shape_field rest_rows[] = {
    {SHAPE_AT(carbon_statement, saved), SHAPE_IS_STRUCT(&saving_shape)},
    {SHAPE_AT_AS("by_lower_limit", carbon_statement, by_limit), SHAPE_IS_STRUCT(&saving_shape)},
    {SHAPE_AT_AS("by_following", carbon_statement, by_grid), SHAPE_IS_STRUCT(&saving_shape)},
    {SHAPE_AT_AS("nothing_to_compare", carbon_statement, missing), TOLD_CHARS(carbon_statement, missing)},
    {SHAPE_AT(carbon_statement, bound), TOLD_NUMBER},
    {SHAPE_AT(carbon_statement, host), SHAPE_IS_WORD(host_names, STATEMENT_HOST_MEASURED + 1)},
    {SHAPE_AT(carbon_statement, pue), TOLD_NUMBER},
    {SHAPE_AT_AS("modelled_percent", carbon_statement, modelled_share), TOLD_TIMES(100.0)},
    {SHAPE_AT(carbon_statement, measured_per_modelled), TOLD_NUMBER},
    {SHAPE_AT_AS("limit_changes", carbon_statement, changes), TOLD_U32},
};
static const struct shape rest_shape = {SHAPE_OF(carbon_statement, rest_rows)};

struct document {
    const char *schema;
    const struct carbon_statement *grid, *rest;
    struct way ways[STATEMENT_WAYS];
    size_t way_count;
    const struct carbon_mix *best_mixture; /* NULL: not known */
};

static const struct shape_field document_rows[] = {
    {SHAPE_AT(document, schema), TOLD_ANY_TEXT},
    {SHAPE_AT(document, grid), TOLD_MERGED(&grid_shape)},
    {SHAPE_AT(document, ways), SHAPE_IS_STRUCTS_HERE(&way_shape, document, ways, way_count)},
    {SHAPE_AT(document, best_mixture), TOLD_POINTED(&mix_shape)},
    {SHAPE_AT(document, rest), TOLD_MERGED(&rest_shape)},
};
static const struct shape document_shape = {SHAPE_OF(document, document_rows)};

json_t *statement_json(const struct carbon_statement *statement)
{
    /*
     * Version 1 had no best mixture, and counted what the best single limit saves as saved by the
     * lower limit.
     */
    struct document document = {.schema = "flyball.carbon.statement/2", .grid = statement, .rest = statement};

    for (int way = 0; way < STATEMENT_WAYS; way++) {
        if (statement->ways[way].known)
            put_way(statement, (enum statement_way)way, &document.ways[document.way_count++]);
    }
    document.best_mixture = statement->ways[STATEMENT_MIX].known ? &statement->mix : NULL;
    return shape_tell(&document_shape, &document);
}

/* ---- lines ---- */

/*
 * A statement for people: a line for each fact of the ways, for what was saved, and for what that
 * is based on.
 */

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

/* Writes a line for each fact, in the same order as put_column. */
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

static void put_column(const struct carbon_statement *statement, enum statement_way way, struct grid *grid)
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
            put_column(statement, (enum statement_way)way, &grid);
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

/* ---- what is read ---- */

/* Room for a ledger of the largest size, its slices in each way, and its periods. */
enum { MEMORY_MAX = 1 << 30, DAY_S = 86400 };

static int read_ledgers(struct statement_view *view, const struct statement_wish *wish,
                        struct fly_error *out_error)
{
    int code = 0;

    view->ledgers = arena_alloc(&view->arena, wish->path_count, sizeof view->ledgers[0]);
    if (view->ledgers == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < wish->path_count && code == 0; i++) {
        code = carbon_ledger_read(wish->paths[i], &view->arena, &view->ledgers[i], out_error);
        view->ledger_count += code == 0;
    }
    return code;
}

static const char *source_of(const struct statement_view *view, const struct statement_wish *wish, int signal)
{
    const char *source = wish->sources[signal];

    if (source == NULL && view->ledger_count > 0)
        source = view->ledgers[0].head.sources[signal];
    return source != NULL && source[0] != '\0' ? source : NULL;
}

/* Reads what one source says of that time; if it says nothing, sets its remark. */
static void read_source(struct statement_view *view, const struct statement_wish *wish, int signal,
                        int64_t from_s, int64_t to_s)
{
    struct grid_request request = {.from_s = from_s - GRID_FORECAST_DAYS * (int64_t)DAY_S,
                                   .to_s = to_s,
                                   .now_s = wish->now_s,
                                   .cached_only = wish->cached_only};
    struct grid_answer *answer = &view->answers[signal];
    struct fly_error error = {.text = ""};

    view->sources[signal] = source_of(view, wish, signal);
    if (view->sources[signal] == NULL)
        return;
    view->has[signal] =
        grid_read_signal(view->sources[signal], signal, &request, answer, "; they are left out", &error) == 0;
    snprintf(view->remarks[signal], sizeof view->remarks[signal], "%s",
             view->has[signal] ? answer->remark : error.text);
}

int statement_view_open(struct statement_view *view, const struct statement_wish *wish,
                        struct fly_error *out_error)
{
    struct statement_request request = {.yearly_means = {NAN, NAN}};
    int64_t from_s = 0, to_s = 0;
    int code;

    memset(view, 0, sizeof *view);
    arena_init(&view->arena, MEMORY_MAX);
    code = read_ledgers(view, wish, out_error);
    if (code < 0)
        return code;
    request.ledgers = view->ledgers;
    request.ledger_count = view->ledger_count;
    if (carbon_statement_span(&request, &from_s, &to_s)) {
        for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
            read_source(view, wish, signal, from_s, to_s);
            request.answers[signal] = view->has[signal] ? &view->answers[signal] : NULL;
        }
    }
    return carbon_statement_make(&request, &view->arena, &view->statement, out_error);
}

void statement_view_close(struct statement_view *view)
{
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (view->has[signal])
            grid_answer_deinit(&view->answers[signal]);
        view->has[signal] = false;
    }
    arena_deinit(&view->arena);
}
