/* SPDX-License-Identifier: Apache-2.0 */
/* The grid's intensity over time as a picture: a line for each quality, broken where it is not known. */
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/iso_time.h"
#include "cli/carbon_view.h"
#include "cli/chart.h"

enum { MEMORY_MAX = 256 << 20, TEXT_MAX = 320, POINTS_OF_ROW = 3 };

static const double hour_s = 3600.0;

/* How each quality is drawn, best first; what is unknown is not. */
static const struct {
    enum svg_color color;
    enum svg_dash dash;
} looks[GRID_UNKNOWN] = {
    [GRID_MEASURED] = {SVG_BLUE, SVG_SOLID},    [GRID_ESTIMATED] = {SVG_GREEN, SVG_SOLID},
    [GRID_FORECAST] = {SVG_ORANGE, SVG_DASHED}, [GRID_OWN_FORECAST] = {SVG_PURPLE, SVG_DASHED},
    [GRID_FALL_BACK] = {SVG_INK, SVG_DOTTED},
};

struct picture {
    const struct carbon_view *view;
    struct chart_series series[GRID_UNKNOWN];
    size_t count;
    struct chart_panel panel;
    char title[TEXT_MAX], description[TEXT_MAX], label[TEXT_MAX];
};

/* Two points for each row, and one that breaks the line where the next row is of another quality. */
static size_t take_points(const struct carbon_view *view, enum grid_quality quality, double *x, double *y)
{
    size_t count = 0;

    for (size_t i = 0; i < view->count; i++) {
        const struct grid_period *row = &view->rows[i];
        bool goes_on = i + 1 < view->count && view->rows[i + 1].quality == quality &&
                       view->rows[i + 1].start_s == row->end_s;

        if (row->quality != quality)
            continue;
        x[count] = (double)(row->start_s - view->rows[0].start_s) / hour_s;
        y[count++] = row->value;
        x[count] = (double)(row->end_s - view->rows[0].start_s) / hour_s;
        y[count++] = row->value;
        if (!goes_on) {
            x[count] = x[count - 1];
            y[count++] = NAN;
        }
    }
    return count;
}

static int take_series(struct picture *picture, struct arena *arena, struct fly_error *out_error)
{
    const struct carbon_view *view = picture->view;

    for (int i = 0; i < GRID_UNKNOWN; i++) {
        struct chart_series *series = &picture->series[picture->count];
        double *x = arena_alloc(arena, POINTS_OF_ROW * view->count + 1, sizeof *x);
        double *y = arena_alloc(arena, POINTS_OF_ROW * view->count + 1, sizeof *y);

        if (x == NULL || y == NULL)
            return error_no_memory(out_error);
        *series = (struct chart_series){.name = grid_quality_name((enum grid_quality)i),
                                        .kind = CHART_LINE,
                                        .color = looks[i].color,
                                        .dash = looks[i].dash,
                                        .x = x,
                                        .y = y};
        series->count = take_points(view, (enum grid_quality)i, x, y);
        if (series->count > 0)
            picture->count++;
    }
    return 0;
}

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct picture *picture = context;
    const struct carbon_view *view = picture->view;
    const struct grid_kind *kind = &view->answer.actual.kind;
    char from[ISO_TIME_TEXT_MAX] = "now", to[ISO_TIME_TEXT_MAX] = "now";
    int code = take_series(picture, arena, out_error);

    if (view->count > 0) {
        iso_time_format(view->rows[0].start_s, from);
        iso_time_format(view->rows[view->count - 1].end_s, to);
    }
    snprintf(picture->title, sizeof picture->title, "Carbon intensity of %.80s, signal %s, scope %s",
             view->source, grid_signal_name(kind->signal), grid_scope_name(kind->scope));
    snprintf(picture->description, sizeof picture->description,
             "%zu periods from %s to %s; what is not known is left out.", view->count, from, to);
    snprintf(picture->label, sizeof picture->label, "hours since %s", from);
    picture->panel = (struct chart_panel){.height = 300,
                                          .x = {.label = picture->label, .tight = true},
                                          .y = {.label = "carbon intensity (g/kWh)", .from_zero = true},
                                          .series = picture->series,
                                          .series_count = picture->count};
    *out_chart = (struct chart){.title = picture->title,
                                .description = picture->description,
                                .panels = &picture->panel,
                                .panel_count = 1};
    return code;
}

int carbon_plot_commit(const struct carbon_view *view, struct atomic_file *file, struct fly_error *out_error)
{
    struct picture picture = {.view = view};

    return chart_compose_commit(compose, &picture, MEMORY_MAX, file, out_error);
}
