/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grid's figures over time, a line for each quality, broken where it is another or unknown. For a run or
 * a plan, below them the power limit that was chosen, and energy, grams and money of each period.
 */
#include <math.h>

#include "base/text/iso_time.h"
#include "cli/carbon/carbon_view.h"
#include "cli/kit/picture.h"
#include "cli/options/output_path.h"
#include "model/units.h"

enum { VIEW_MEMORY_MAX = 256 << 20, STATEMENT_MEMORY_MAX = 512 << 20 };

static const double hour_s = 3600.0;
static const double gap_h = 1e-5; /* rounding leaves smaller gaps between two stretches, which do not count */

/* How each quality is drawn, best first; unknown values are not drawn. */
static const struct {
    enum svg_color color;
    enum svg_dash dash;
} looks[GRID_UNKNOWN] = {
    [GRID_MEASURED] = {SVG_BLUE, SVG_SOLID},    [GRID_ESTIMATED] = {SVG_GREEN, SVG_SOLID},
    [GRID_FORECAST] = {SVG_ORANGE, SVG_DASHED}, [GRID_OWN_FORECAST] = {SVG_PURPLE, SVG_DASHED},
    [GRID_FALL_BACK] = {SVG_INK, SVG_DOTTED},
};

/* One panel below the other over the same time. */
struct drawing {
    struct picture picture;
    int64_t zero_s;
    const char *x; /* the label of the time's axis */
};

static double hours(const struct drawing *drawing, double time_s)
{
    return (time_s - (double)drawing->zero_s) / hour_s;
}

static void begin(struct drawing *drawing, size_t memory_max, int64_t zero_s, const char *from)
{
    picture_begin(&drawing->picture, memory_max);
    drawing->zero_s = zero_s;
    drawing->x = picture_text(&drawing->picture, "hours since %s", from);
}

static struct picture_panel *add_panel(struct drawing *drawing, const char *label, double height,
                                       bool from_zero)
{
    return picture_panel(&drawing->picture,
                         &(struct chart_panel){.height = height,
                                               .x = {.label = drawing->x, .tight = true},
                                               .y = {.label = label, .from_zero = from_zero}});
}

static void make_lines(struct drawing *drawing, struct picture_panel *panel,
                       struct picture_row *lines[GRID_UNKNOWN])
{
    for (int i = 0; i < GRID_UNKNOWN; i++)
        lines[i] = picture_row(&drawing->picture, panel,
                               &(struct chart_series){.name = grid_quality_name((enum grid_quality)i),
                                                      .kind = CHART_LINE,
                                                      .color = looks[i].color,
                                                      .dash = looks[i].dash});
}

/* Adds a period, and a break of its line where the next one (NULL: none) has another quality. */
static void add_period(struct drawing *drawing, struct picture_row *const lines[GRID_UNKNOWN],
                       const struct grid_period *period, const struct grid_period *next)
{
    double end_h = hours(drawing, (double)period->end_s);
    struct picture_row *line;

    if (period->quality >= GRID_UNKNOWN)
        return;
    line = lines[period->quality];
    picture_point(&drawing->picture, line, hours(drawing, (double)period->start_s), period->value, NULL);
    picture_point(&drawing->picture, line, end_h, period->value, NULL);
    if (next == NULL || next->quality != period->quality || next->start_s != period->end_s)
        picture_point(&drawing->picture, line, end_h, NAN, NULL);
}

int carbon_plot(const struct carbon_view *view, const char *path, struct fly_error *out_error)
{
    const struct grid_kind *kind = &view->answer.actual.kind;
    char from[ISO_TIME_TEXT_MAX] = "now", to[ISO_TIME_TEXT_MAX] = "now";
    struct picture_row *lines[GRID_UNKNOWN];
    char name[OUTPUT_PATH_MAX];
    struct drawing drawing;
    int code = output_path_expand(path, name, out_error);

    if (code < 0)
        return code;
    if (view->count > 0) {
        iso_time_format(view->rows[0].start_s, from);
        iso_time_format(view->rows[view->count - 1].end_s, to);
    }
    begin(&drawing, VIEW_MEMORY_MAX, view->count > 0 ? view->rows[0].start_s : 0, from);
    make_lines(&drawing, add_panel(&drawing, "carbon intensity (g/kWh)", 300, true), lines);
    for (size_t i = 0; i < view->count; i++)
        add_period(&drawing, lines, &view->rows[i], i + 1 < view->count ? &view->rows[i + 1] : NULL);
    return picture_save(
        &drawing.picture, name,
        picture_text(&drawing.picture, "Carbon intensity of %.80s, signal %s, scope %s", view->source,
                     grid_signal_name(kind->signal), grid_scope_name(kind->scope)),
        picture_text(&drawing.picture, "%zu periods from %s to %s; what is not known is left out.",
                     view->count, from, to),
        out_error);
}

static struct grid_period period_of(const struct statement_period *period, int signal)
{
    return (struct grid_period){.start_s = period->start_s,
                                .end_s = period->end_s,
                                .value = period->value[signal],
                                .quality = period->quality[signal]};
}

static void add_figure(struct drawing *drawing, const struct carbon_statement *statement, int signal,
                       const char *label)
{
    struct picture_row *lines[GRID_UNKNOWN];

    make_lines(drawing, add_panel(drawing, label, 170, signal == CARBON_INTENSITY), lines);
    for (size_t i = 0; i < statement->period_count; i++) {
        bool is_last = i + 1 == statement->period_count;
        const struct grid_period period = period_of(&statement->periods[i], signal),
                                 next = period_of(&statement->periods[is_last ? i : i + 1], signal);

        add_period(drawing, lines, &period, is_last ? NULL : &next);
    }
}

/* Adds a stretch at one height, joined to the previous one if that ended here. A band lies above 0. */
static void add_stretch(struct drawing *drawing, struct picture_row *row, double start_s, double end_s,
                        double value)
{
    const struct chart_series *series = &row->series;
    double from = hours(drawing, start_s);
    const double places[] = {from, from, hours(drawing, end_s)};
    bool parts = series->count > 0 && from - series->x[series->count - 1] > gap_h;

    for (int i = parts ? 0 : 1; i < 3; i++) {
        double at = i == 0 ? NAN : value;

        if (series->kind == CHART_BAND)
            picture_between(&drawing->picture, row, places[i], 0, at);
        else
            picture_point(&drawing->picture, row, places[i], at, NULL);
    }
}

/* Adds what each period took, as an area. */
static void add_amounts(struct drawing *drawing, const struct carbon_statement *statement, size_t offset,
                        double unit, const char *label, enum svg_color color)
{
    struct picture_panel *panel = add_panel(drawing, label, 110, true);
    struct picture_row *row =
        picture_row(&drawing->picture, panel, &(struct chart_series){.kind = CHART_BAND, .color = color});
    int64_t end_s = statement->periods[statement->period_count - 1].end_s;

    for (size_t i = 0; i < statement->period_count; i++) {
        const struct statement_period *period = &statement->periods[i];
        double value = *(const double *)(const void *)((const char *)period + offset);

        add_stretch(drawing, row, (double)period->start_s, (double)period->end_s, value / unit);
    }
    /* A line along the time's axis, so that all panels have the same ends. */
    row =
        picture_row(&drawing->picture, panel, &(struct chart_series){.kind = CHART_LINE, .color = SVG_FAINT});
    picture_point(&drawing->picture, row, 0, 0, NULL);
    picture_point(&drawing->picture, row, hours(drawing, (double)end_s), 0, NULL);
}

static const char *describe(struct drawing *drawing, const struct carbon_statement *statement,
                            const char *from)
{
    const struct statement_figures *run = &statement->ways[STATEMENT_AS_RUN];
    double energy_j = run->energy_j[STATEMENT_ALL], carbon_g = run->amount[CARBON_INTENSITY][STATEMENT_ALL];
    const char *energy = "", *carbon = "";
    char to[ISO_TIME_TEXT_MAX];

    iso_time_format(statement->periods[statement->period_count - 1].end_s, to);
    if (isfinite(energy_j))
        energy = picture_text(&drawing->picture, "; %.3f kWh", units_kwh_from_j(energy_j));
    if (isfinite(carbon_g))
        carbon = picture_text(&drawing->picture, ", %.1f g", carbon_g);
    return picture_text(&drawing->picture, "%zu periods from %s to %s%s%s. What is not known is left out.",
                        statement->period_count, from, to, energy, carbon);
}

int statement_plot(const struct carbon_statement *statement, const struct energy_slice *slices,
                   size_t slice_count, const char *title, const char *path, struct fly_error *out_error)
{
    const struct grid_kind *price = statement->kinds[CARBON_PRICE];
    const char *currency = price != NULL && price->currency[0] != '\0' ? price->currency : "money";
    char from[ISO_TIME_TEXT_MAX];
    struct picture_row *limit;
    char name[OUTPUT_PATH_MAX];
    struct drawing drawing;
    int code = output_path_expand(path, name, out_error);

    if (code < 0)
        return code;
    iso_time_format(statement->periods[0].start_s, from);
    begin(&drawing, STATEMENT_MEMORY_MAX, statement->periods[0].start_s, from);
    if (statement->kinds[CARBON_INTENSITY] != NULL)
        add_figure(&drawing, statement, CARBON_INTENSITY, "carbon intensity (g/kWh)");
    if (price != NULL)
        add_figure(&drawing, statement, CARBON_PRICE,
                   picture_text(&drawing.picture, "price (%s/kWh)", currency));
    limit = picture_row(&drawing.picture, add_panel(&drawing, "power limit (W)", 120, false),
                        &(struct chart_series){.kind = CHART_LINE, .color = SVG_GREEN});
    for (size_t i = 0; i < slice_count; i++)
        add_stretch(&drawing, limit, slices[i].start_s, slices[i].end_s, slices[i].limit_w);
    add_amounts(&drawing, statement, offsetof(struct statement_period, energy_j[STATEMENT_ALL]),
                JOULES_PER_KWH, "energy of each period (kWh)", SVG_ORANGE);
    if (statement->kinds[CARBON_INTENSITY] != NULL)
        add_amounts(&drawing, statement, offsetof(struct statement_period, amount[CARBON_INTENSITY]), 1.0,
                    "carbon of each period (g)", SVG_BLUE);
    if (price != NULL)
        add_amounts(&drawing, statement, offsetof(struct statement_period, amount[CARBON_PRICE]), 1.0,
                    picture_text(&drawing.picture, "cost of each period (%s)", currency), SVG_PURPLE);
    return picture_save(&drawing.picture, name, title, describe(&drawing, statement, from), out_error);
}
