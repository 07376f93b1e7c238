/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the frontier as a picture. */
#include <math.h>
#include <stdio.h>

#include "cli/kit/picture.h"
#include "cli/views/pareto_view.h"
#include "sim/open/pareto_spread.h"

enum { MEMORY_MAX = 64 << 20, TEXT_MAX = 256, NOTES_ON_FRONTIER = 8 };

/* Above this ratio of the largest to the smallest value an axis is logarithmic. */
static const double logarithmic_from = 8.0;

struct drawing {
    const struct pareto_result *result;
    const struct operating_points *points;
    struct picture picture;
    struct chart_unit time, energy;
    bool has_today; /* the default is drawn */
};

/* Writes the point's 95 % intervals, with words around them, as far as they are known; else "". */
static const char *spread_of(const struct drawing *drawing, size_t i, const char *before, char text[TEXT_MAX])
{
    struct pareto_range time = pareto_spread_time(drawing->result, i),
                        energy = pareto_spread_energy(drawing->result, i);
    double time_unit = drawing->time.size, energy_unit = drawing->energy.size;

    text[0] = '\0';
    if (isfinite(time.high) && isfinite(energy.high))
        snprintf(text, TEXT_MAX, "%s%.3g to %.3g %s, %.3g to %.3g %s", before, time.low / time_unit,
                 time.high / time_unit, drawing->time.name, energy.low / energy_unit,
                 energy.high / energy_unit, drawing->energy.name);
    return text;
}

/* Adds the points, and the bound on time as a line as high as they reach. */
static void add_points(struct drawing *drawing, struct picture_panel *panel, const char *objective)
{
    const struct chart_series looks[] = {
        {.name = "other choices",
         .kind = CHART_POINTS,
         .color = SVG_FAINT,
         .shape = SVG_CIRCLE,
         .radius = 2.5},
        {.name = "slowest allowed", .kind = CHART_LINE, .color = SVG_PURPLE, .dash = SVG_DASHED},
        {.name = "frontier", .kind = CHART_LINE, .color = SVG_BLUE, .shape = SVG_CIRCLE, .radius = 3.5},
        {.name = "default", .kind = CHART_POINTS, .color = SVG_ORANGE, .shape = SVG_SQUARE, .radius = 6},
        {.name = objective, .kind = CHART_POINTS, .color = SVG_GREEN, .shape = SVG_STAR, .radius = 7},
    };
    enum { OTHERS, BOUND, FRONTIER, TODAY, CHOSEN, ROWS };
    const struct pareto_result *result = drawing->result;
    const struct operating_points *points = drawing->points;
    struct picture *picture = &drawing->picture;
    struct picture_row *rows[ROWS];
    double least_j = INFINITY, greatest_j = 0.0, at;

    for (int i = 0; i < ROWS; i++)
        rows[i] = picture_row(picture, panel, &looks[i]);
    for (size_t i = 0; i < points->count; i++) {
        const struct fly_operating_point *point = &points->points[i];
        double x = point->time_s / drawing->time.size, y = point->energy_j / drawing->energy.size;
        char spread[TEXT_MAX];
        const char *tip = picture_text(picture, "batch %u at %g W: %.3g %s, %.3g %s%s", point->batch_size,
                                       point->power_limit_w, x, drawing->time.name, y, drawing->energy.name,
                                       spread_of(drawing, i, "; 95 %: ", spread));

        picture_point(picture, rows[points->on_frontier[i] ? FRONTIER : OTHERS], x, y, tip);
        if (i == points->default_point && drawing->has_today)
            picture_point(picture, rows[TODAY], x, y, tip);
        if (i == result->chosen)
            picture_point(picture, rows[CHOSEN], x, y, tip);
        least_j = fmin(least_j, point->energy_j);
        greatest_j = fmax(greatest_j, point->energy_j);
    }
    if (!isfinite(result->objective.max_slowdown) || !pareto_default_known(result))
        return;
    at = result->objective.max_slowdown * points->points[points->default_point].time_s / drawing->time.size;
    picture_point(picture, rows[BOUND], at, least_j / drawing->energy.size, NULL);
    picture_point(picture, rows[BOUND], at, greatest_j / drawing->energy.size, NULL);
}

/* Adds "batch 48, 150 W: 1.2 to 1.4 h, 3 to 3.3 MJ" at a point, and returns it. */
static const char *add_note(struct drawing *drawing, struct picture_panel *panel, const char *what,
                            size_t point)
{
    const struct fly_operating_point *at = &drawing->points->points[point];
    char spread[TEXT_MAX];
    const char *text = picture_text(&drawing->picture, "%sbatch %u, %g W%s", what, at->batch_size,
                                    at->power_limit_w, spread_of(drawing, point, ": ", spread));

    picture_note(panel, at->time_s / drawing->time.size, at->energy_j / drawing->energy.size, text);
    return text;
}

/* Of a longer frontier every second or third point has a label, evenly; the others have tips. */
static void note_frontier(struct drawing *drawing, struct picture_panel *panel, size_t on_frontier)
{
    const struct operating_points *points = drawing->points;
    size_t stride = (on_frontier + NOTES_ON_FRONTIER - 1) / NOTES_ON_FRONTIER, seen = 0;

    for (size_t i = 0; i < points->count; i++) {
        bool noted = i == drawing->result->chosen || (i == points->default_point && drawing->has_today);

        if (points->on_frontier[i] && seen++ % stride == 0 && !noted)
            add_note(drawing, panel, "", i);
    }
}

/* Returns whether the values lie so far apart that the axis is logarithmic. */
static bool far_apart(const struct operating_points *points, bool time)
{
    double least = INFINITY, greatest = 0.0;

    for (size_t i = 0; i < points->count; i++) {
        double value = time ? points->points[i].time_s : points->points[i].energy_j;

        least = fmin(least, value);
        greatest = fmax(greatest, value);
    }
    return greatest / least > logarithmic_from;
}

int pareto_plot_commit(const struct pareto_result *result, struct atomic_file *file,
                       struct fly_error *out_error)
{
    const struct operating_points *points = result->points;
    const struct fly_operating_point *chosen = &points->points[result->chosen];
    struct drawing drawing = {.result = result,
                              .points = points,
                              .time = chart_unit_for(chart_time_units, chosen->time_s),
                              .energy = chart_unit_for(chart_energy_units, chosen->energy_j),
                              .has_today =
                                  points->default_point < points->count && !pareto_lacks_default(result)};
    struct picture *picture = &drawing.picture;
    bool both = result->chosen == points->default_point;
    char objective[PARETO_TEXT_MAX];
    const char *ours, *today = "";
    struct picture_panel *panel;
    size_t on_frontier = 0;

    picture_begin(picture, MEMORY_MAX);
    panel = picture_panel(
        picture,
        &(struct chart_panel){
            .height = 380,
            .x = {.label = picture_text(picture, "expected time to the target (%s)", drawing.time.name),
                  .logarithmic = far_apart(points, true)},
            .y = {.label = picture_text(picture, "expected energy to the target (%s)", drawing.energy.name),
                  .logarithmic = far_apart(points, false)}});
    pareto_objective_text(result, objective);
    add_points(&drawing, panel, picture_text(picture, "%s", objective));
    ours = add_note(&drawing, panel, picture_text(picture, "%s%s: ", both ? "default, " : "", objective),
                    result->chosen);
    if (!both && drawing.has_today)
        today = add_note(&drawing, panel, "default: ", points->default_point);
    for (size_t i = 0; i < points->count; i++)
        on_frontier += points->on_frontier[i];
    note_frontier(&drawing, panel, on_frontier);
    return picture_commit(
        picture,
        picture_text(picture, "%.80s on %.40s: energy and time of each batch size and power limit",
                     result->workload->job.name, result->workload->gpu),
        picture_text(picture, "%zu points, %zu of them on the frontier, from %s. %s%s%s.", points->count,
                     on_frontier, result->source->picture_from, ours, today[0] != '\0' ? "; " : "", today),
        file, out_error);
}
