/* SPDX-License-Identifier: Apache-2.0 */
/* A statement for programs: unknown figures are null. */
#include <math.h>

#include "base/text/iso_time.h"
#include "cli/views/statement_lines.h"
#include "shapes/shape_told.h"

/* ---- figures of one way ---- */

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

/* Shares of the energy by the quality of the grid's figure. */
struct quality_shares {
    double of[GRID_QUALITY_COUNT];
};

static const struct shape_field share_rows[] = {
    {SHAPE_AT_AS("measured", quality_shares, of[GRID_MEASURED]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("estimated", quality_shares, of[GRID_ESTIMATED]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("forecast", quality_shares, of[GRID_FORECAST]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("own forecast", quality_shares, of[GRID_OWN_FORECAST]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("fall-back", quality_shares, of[GRID_FALL_BACK]), TOLD_TIMES(100.0)},
    {SHAPE_AT_AS("unknown", quality_shares, of[GRID_UNKNOWN]), TOLD_TIMES(100.0)},
};
static const struct shape share_shape = {SHAPE_OF(quality_shares, share_rows)};

/* NULL for figures that the grid does not give, here and below. */
struct coverage {
    const double *intensity, *price; /* shares */
};

static const struct shape_field coverage_rows[] = {
    {SHAPE_AT(coverage, intensity), TOLD_POINTED(&share_shape)},
    {SHAPE_AT(coverage, price), TOLD_POINTED(&share_shape)},
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

/* ---- the grid, and what is saved ---- */

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

/* ---- all of it ---- */

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
