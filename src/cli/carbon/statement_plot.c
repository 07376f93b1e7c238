/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/statement_plot.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/quality_lines.h"
#include "model/units.h"

enum { MEMORY_MAX = 512 << 20, TEXT_MAX = 400, PANELS_MAX = 6, POINTS_OF_STRETCH = 3 };
enum { FIGURE_HEIGHT = 170, LIMIT_HEIGHT = 120, AMOUNT_HEIGHT = 110 };

static const double hour_s = 3600.0;
static const double gap_h = 1e-5; /* rounding leaves smaller gaps between two stretches, which do not count */

struct picture {
    const struct statement_plot *plot;
    struct arena *arena;
    int64_t zero_s;
    double zero[2], ends_h[2]; /* a line along the time axis, so that all panels have the same ends */
    struct quality_lines lines[CARBON_SIGNALS];
    struct chart_panel panels[PANELS_MAX];
    size_t count;
    char x[TEXT_MAX], money[TEXT_MAX], price[TEXT_MAX], description[TEXT_MAX];
};

static double hours(const struct picture *picture, double time_s)
{
    return (time_s - (double)picture->zero_s) / hour_s;
}

static void add_panel(struct picture *picture, const char *label, double height,
                      const struct chart_series *series, size_t count, bool from_zero)
{
    picture->panels[picture->count++] = (struct chart_panel){.height = height,
                                                             .x = {.label = picture->x, .tight = true},
                                                             .y = {.label = label, .from_zero = from_zero},
                                                             .series = series,
                                                             .series_count = count};
}

/* Adds the grid's figure of each period. */
static int add_figure(struct picture *picture, int signal, const char *label, struct fly_error *out_error)
{
    const struct carbon_statement *statement = picture->plot->statement;
    struct grid_period *periods = arena_alloc(picture->arena, statement->period_count + 1, sizeof periods[0]);
    int code;

    if (periods == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < statement->period_count; i++) {
        const struct statement_period *period = &statement->periods[i];

        periods[i] = (struct grid_period){.start_s = period->start_s,
                                          .end_s = period->end_s,
                                          .value = period->value[signal],
                                          .quality = period->quality[signal]};
    }
    code = quality_lines_make(periods, statement->period_count, picture->zero_s, picture->arena,
                              &picture->lines[signal], out_error);
    add_panel(picture, label, FIGURE_HEIGHT, picture->lines[signal].series, picture->lines[signal].count,
              signal == CARBON_INTENSITY);
    return code;
}

/* Allocates the lines of so many stretches. */
static struct chart_series *new_series(struct picture *picture, size_t stretches, double **x, double **y)
{
    *x = arena_alloc(picture->arena, POINTS_OF_STRETCH * stretches + 1, sizeof **x);
    *y = arena_alloc(picture->arena, POINTS_OF_STRETCH * stretches + 1, sizeof **y);
    return *x == NULL || *y == NULL ? NULL : arena_alloc(picture->arena, 2, sizeof(struct chart_series));
}

/* Adds a stretch at one height, joined to the previous one if that ended here. */
static void add_stretch(double *x, double *y, size_t *count, double from, double to, double value)
{
    if (*count > 0 && from - x[*count - 1] > gap_h) {
        x[*count] = from;
        y[(*count)++] = NAN;
    }
    x[*count] = from;
    y[(*count)++] = value;
    x[*count] = to;
    y[(*count)++] = value;
}

static int add_limit(struct picture *picture, struct fly_error *out_error)
{
    const struct statement_plot *plot = picture->plot;
    double *x, *y;
    struct chart_series *series = new_series(picture, plot->slice_count, &x, &y);
    size_t count = 0;

    if (series == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < plot->slice_count; i++)
        add_stretch(x, y, &count, hours(picture, plot->slices[i].start_s),
                    hours(picture, plot->slices[i].end_s), plot->slices[i].limit_w);
    series[0] = (struct chart_series){.kind = CHART_LINE, .color = SVG_GREEN, .x = x, .y = y, .count = count};
    add_panel(picture, "power limit (W)", LIMIT_HEIGHT, series, 1, false);
    return 0;
}

/* Adds what each period took, as an area. */
static int add_amounts(struct picture *picture, size_t offset, double unit, const char *label,
                       enum svg_color color, struct fly_error *out_error)
{
    const struct carbon_statement *statement = picture->plot->statement;
    double *x, *y;
    struct chart_series *series = new_series(picture, statement->period_count, &x, &y);
    double *zeros =
        arena_alloc(picture->arena, POINTS_OF_STRETCH * statement->period_count + 1, sizeof *zeros);
    size_t count = 0;

    if (series == NULL || zeros == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < statement->period_count; i++) {
        const struct statement_period *period = &statement->periods[i];
        double value = *(const double *)(const void *)((const char *)period + offset);

        add_stretch(x, y, &count, hours(picture, (double)period->start_s),
                    hours(picture, (double)period->end_s), value / unit);
    }
    series[0] = (struct chart_series){
        .kind = CHART_BAND, .color = color, .x = x, .y = zeros, .y_high = y, .count = count};
    series[1] = (struct chart_series){
        .kind = CHART_LINE, .color = SVG_FAINT, .x = picture->ends_h, .y = picture->zero, .count = 2};
    add_panel(picture, label, AMOUNT_HEIGHT, series, 2, true);
    return 0;
}

static void describe(struct picture *picture)
{
    const struct carbon_statement *statement = picture->plot->statement;
    const struct statement_figures *run = &statement->ways[STATEMENT_AS_RUN];
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX];
    int length;

    iso_time_format(picture->zero_s, from);
    iso_time_format(statement->periods[statement->period_count - 1].end_s, to);
    snprintf(picture->x, sizeof picture->x, "hours since %s", from);
    length = snprintf(picture->description, sizeof picture->description, "%zu periods from %s to %s",
                      statement->period_count, from, to);
    if (isfinite(run->energy_j[STATEMENT_ALL]))
        length += snprintf(picture->description + length, sizeof picture->description - (size_t)length,
                           "; %.3f kWh", units_kwh_from_j(run->energy_j[STATEMENT_ALL]));
    if (isfinite(run->amount[CARBON_INTENSITY][STATEMENT_ALL]))
        length += snprintf(picture->description + length, sizeof picture->description - (size_t)length,
                           ", %.1f g", run->amount[CARBON_INTENSITY][STATEMENT_ALL]);
    snprintf(picture->description + length, sizeof picture->description - (size_t)length,
             ". What is not known is left out.");
}

static int add_panels(struct picture *picture, struct fly_error *out_error)
{
    const struct carbon_statement *statement = picture->plot->statement;
    const struct grid_kind *price = statement->kinds[CARBON_PRICE];
    const char *currency = price != NULL && price->currency[0] != '\0' ? price->currency : "money";
    int code = 0;

    snprintf(picture->price, sizeof picture->price, "price (%s/kWh)", currency);
    snprintf(picture->money, sizeof picture->money, "cost of each period (%s)", currency);
    if (statement->kinds[CARBON_INTENSITY] != NULL)
        code = add_figure(picture, CARBON_INTENSITY, "carbon intensity (g/kWh)", out_error);
    if (price != NULL && code == 0)
        code = add_figure(picture, CARBON_PRICE, picture->price, out_error);
    if (code == 0)
        code = add_limit(picture, out_error);
    if (code == 0)
        code = add_amounts(picture, offsetof(struct statement_period, energy_j[STATEMENT_ALL]),
                           JOULES_PER_KWH, "energy of each period (kWh)", SVG_ORANGE, out_error);
    if (statement->kinds[CARBON_INTENSITY] != NULL && code == 0)
        code = add_amounts(picture, offsetof(struct statement_period, amount[CARBON_INTENSITY]), 1.0,
                           "carbon of each period (g)", SVG_BLUE, out_error);
    if (price != NULL && code == 0)
        code = add_amounts(picture, offsetof(struct statement_period, amount[CARBON_PRICE]), 1.0,
                           picture->money, SVG_PURPLE, out_error);
    return code;
}

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct picture *picture = context;
    const struct carbon_statement *statement = picture->plot->statement;
    int code;

    picture->arena = arena;
    picture->zero_s = statement->periods[0].start_s;
    picture->ends_h[1] = hours(picture, (double)statement->periods[statement->period_count - 1].end_s);
    describe(picture);
    code = add_panels(picture, out_error);
    *out_chart = (struct chart){.title = picture->plot->title,
                                .description = picture->description,
                                .panels = picture->panels,
                                .panel_count = picture->count};
    return code;
}

int statement_plot_commit(const struct statement_plot *plot, struct atomic_file *file,
                          struct fly_error *out_error)
{
    struct picture picture = {.plot = plot};

    return chart_compose_commit(compose, &picture, MEMORY_MAX, file, out_error);
}
