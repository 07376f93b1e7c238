/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the frontier as a picture. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/kit/chart_dots.h"
#include "cli/views/pareto_view.h"
#include "sim/open/pareto_spread.h"

enum {
    MEMORY_MAX = 64 << 20,
    TEXT_MAX = 256,
    NOTES_ON_FRONTIER = 8,
    NOTE_COUNT = 2 + NOTES_ON_FRONTIER,
    SERIES_MAX = 5
};

/* Above this ratio of the largest to the smallest value an axis is logarithmic. */
static const double logarithmic_from = 8.0;

struct picture {
    const struct pareto_result *result;
    struct arena *arena;
    struct chart_unit time, energy;
    struct chart_dots others, frontier, today, chosen, bound;
    struct chart_series series[SERIES_MAX];
    struct chart_note notes[NOTE_COUNT];
    size_t named; /* of these: the choice and the default */
    struct chart_panel panel;
    char objective[PARETO_TEXT_MAX], title[TEXT_MAX], description[2 * TEXT_MAX], x[TEXT_MAX], y[TEXT_MAX];
};

static const char *tip_of(struct picture *picture, size_t i)
{
    const struct fly_operating_point *point = &picture->result->points->points[i];
    struct pareto_range time = pareto_spread_time(picture->result, i),
                        energy = pareto_spread_energy(picture->result, i);
    double time_unit = picture->time.size, energy_unit = picture->energy.size;
    char text[TEXT_MAX];
    int length = snprintf(text, sizeof text, "batch %u at %g W: %.3g %s, %.3g %s", point->batch_size,
                          point->power_limit_w, point->time_s / time_unit, picture->time.name,
                          point->energy_j / energy_unit, picture->energy.name);

    if (isfinite(time.high) && isfinite(energy.high))
        snprintf(text + length, sizeof text - (size_t)length, "; 95 %%: %.3g to %.3g %s, %.3g to %.3g %s",
                 time.low / time_unit, time.high / time_unit, picture->time.name, energy.low / energy_unit,
                 energy.high / energy_unit, picture->energy.name);
    return arena_strdup(picture->arena, text);
}

/* Adds the bound on time, as a line as high as the points reach. */
static void add_bound(struct picture *picture, double least_j, double greatest_j)
{
    const struct pareto_result *result = picture->result;
    double at;

    if (!isfinite(result->objective.max_slowdown) || !pareto_default_known(result))
        return;
    at = result->objective.max_slowdown * result->points->points[result->points->default_point].time_s;
    chart_dots_add(&picture->bound, at / picture->time.size, least_j / picture->energy.size, NULL);
    chart_dots_add(&picture->bound, at / picture->time.size, greatest_j / picture->energy.size, NULL);
}

static int sort_points(struct picture *picture, struct fly_error *out_error)
{
    const struct operating_points *points = picture->result->points;
    double least_j = INFINITY, greatest_j = 0.0;

    if (!chart_dots_init(&picture->others, picture->arena, points->count) ||
        !chart_dots_init(&picture->frontier, picture->arena, points->count) ||
        !chart_dots_init(&picture->today, picture->arena, 1) ||
        !chart_dots_init(&picture->chosen, picture->arena, 1) ||
        !chart_dots_init(&picture->bound, picture->arena, 2))
        return error_no_memory(out_error);
    for (size_t i = 0; i < points->count; i++) {
        const struct fly_operating_point *point = &points->points[i];
        double x = point->time_s / picture->time.size, y = point->energy_j / picture->energy.size;
        const char *tip = tip_of(picture, i);

        chart_dots_add(points->on_frontier[i] ? &picture->frontier : &picture->others, x, y, tip);
        if (i == points->default_point && !pareto_lacks_default(picture->result))
            chart_dots_add(&picture->today, x, y, tip);
        if (i == picture->result->chosen)
            chart_dots_add(&picture->chosen, x, y, tip);
        least_j = fmin(least_j, point->energy_j);
        greatest_j = fmax(greatest_j, point->energy_j);
    }
    add_bound(picture, least_j, greatest_j);
    return 0;
}

/* Leaves out series without points, from the legend too. */
static size_t make_series(const struct picture *picture, const char *objective, struct chart_series *series)
{
    const struct chart_series all[SERIES_MAX] = {
        chart_dots_series(&picture->others, "other choices", CHART_POINTS, SVG_FAINT, SVG_CIRCLE, 2.5),
        chart_dots_series(&picture->bound, "slowest allowed", CHART_LINE, SVG_PURPLE, SVG_NO_SHAPE, 0),
        chart_dots_series(&picture->frontier, "frontier", CHART_LINE, SVG_BLUE, SVG_CIRCLE, 3.5),
        chart_dots_series(&picture->today, "default", CHART_POINTS, SVG_ORANGE, SVG_SQUARE, 6),
        chart_dots_series(&picture->chosen, objective, CHART_POINTS, SVG_GREEN, SVG_STAR, 7),
    };
    size_t count = 0;

    for (size_t i = 0; i < SERIES_MAX; i++) {
        if (all[i].count > 0)
            series[count++] = all[i];
        if (all[i].count > 0 && all[i].shape == SVG_NO_SHAPE)
            series[count - 1].dash = SVG_DASHED;
    }
    return count;
}

/* "batch 48, 150 W: 1.2 to 1.4 h, 3 to 3.3 MJ": its 95 % intervals as far as they are known. */
static size_t add_note(struct picture *picture, const char *what, size_t point, struct chart_note *note)
{
    const struct fly_operating_point *at = &picture->result->points->points[point];
    struct pareto_range time = pareto_spread_time(picture->result, point),
                        energy = pareto_spread_energy(picture->result, point);
    double time_unit = picture->time.size, energy_unit = picture->energy.size;
    char text[2 * TEXT_MAX];
    int length = snprintf(text, sizeof text, "%sbatch %u, %g W", what, at->batch_size, at->power_limit_w);

    if (isfinite(time.high) && isfinite(energy.high))
        snprintf(text + length, sizeof text - (size_t)length, ": %.3g to %.3g %s, %.3g to %.3g %s",
                 time.low / time_unit, time.high / time_unit, picture->time.name, energy.low / energy_unit,
                 energy.high / energy_unit, picture->energy.name);
    *note = (struct chart_note){at->time_s / time_unit, at->energy_j / energy_unit,
                                arena_strdup(picture->arena, text)};
    return note->text != NULL;
}

/* Of a longer frontier every second or third point has a label, evenly; the others have tips. */
static size_t note_frontier(struct picture *picture, struct chart_note *notes)
{
    const struct pareto_result *result = picture->result;
    size_t stride = (picture->frontier.count + NOTES_ON_FRONTIER - 1) / NOTES_ON_FRONTIER;
    size_t seen = 0, count = 0;

    for (size_t i = 0; i < result->points->count; i++) {
        bool noted = i == result->chosen || (i == result->points->default_point && picture->today.count > 0);

        if (result->points->on_frontier[i] && seen++ % stride == 0 && !noted)
            count += add_note(picture, "", i, &notes[count]);
    }
    return count;
}

static size_t make_notes(struct picture *picture, const char *objective, struct chart_note *notes)
{
    const struct pareto_result *result = picture->result;
    size_t count = 0;

    bool both = result->chosen == result->points->default_point;
    char what[PARETO_TEXT_MAX + 16];

    snprintf(what, sizeof what, "%s%s: ", both ? "default, " : "", objective);
    count += add_note(picture, what, result->chosen, &notes[count]);
    if (!both && picture->today.count > 0)
        count += add_note(picture, "default: ", result->points->default_point, &notes[count]);
    picture->named = count;
    return count + note_frontier(picture, &notes[count]);
}

/* Returns whether the values lie so far apart that the axis is logarithmic. */
static bool far_apart(const struct picture *picture, bool time)
{
    double least = INFINITY, greatest = 0.0;

    for (size_t i = 0; i < picture->result->points->count; i++) {
        const struct fly_operating_point *point = &picture->result->points->points[i];

        least = fmin(least, time ? point->time_s : point->energy_j);
        greatest = fmax(greatest, time ? point->time_s : point->energy_j);
    }
    return greatest / least > logarithmic_from;
}

/* Describes the picture in words. */
static void put_texts(struct picture *picture)
{
    const struct workload *workload = picture->result->workload;
    const struct chart_note *notes = picture->notes;
    size_t note_count = picture->named;

    snprintf(picture->x, sizeof picture->x, "expected time to the target (%s)", picture->time.name);
    snprintf(picture->y, sizeof picture->y, "expected energy to the target (%s)", picture->energy.name);
    snprintf(picture->title, sizeof picture->title,
             "%.80s on %.40s: energy and time of each batch size and power limit", workload->job.name,
             workload->gpu);
    snprintf(picture->description, sizeof picture->description,
             "%zu points, %zu of them on the frontier, from %s. %s%s%s.", picture->result->points->count,
             picture->frontier.count, picture->result->source->picture_from,
             note_count > 0 ? notes[0].text : "", note_count > 1 ? "; " : "",
             note_count > 1 ? notes[1].text : "");
}

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct picture *picture = context;
    int code;

    picture->arena = arena;
    code = sort_points(picture, out_error);
    if (code < 0)
        return code;
    pareto_objective_text(picture->result, picture->objective);
    picture->panel = (struct chart_panel){
        .height = 380,
        .x = {.label = picture->x, .logarithmic = far_apart(picture, true)},
        .y = {.label = picture->y, .logarithmic = far_apart(picture, false)},
        .series = picture->series,
        .series_count = make_series(picture, picture->objective, picture->series),
        .notes = picture->notes,
        .note_count = make_notes(picture, picture->objective, picture->notes),
    };
    put_texts(picture);
    *out_chart = (struct chart){.title = picture->title,
                                .description = picture->description,
                                .panels = &picture->panel,
                                .panel_count = 1};
    return 0;
}

int pareto_plot_commit(const struct pareto_result *result, struct atomic_file *file,
                       struct fly_error *out_error)
{
    const struct fly_operating_point *chosen = &result->points->points[result->chosen];
    struct picture picture = {
        .result = result,
        .time = chart_unit_for(chart_time_units, chosen->time_s),
        .energy = chart_unit_for(chart_energy_units, chosen->energy_j),
    };

    return chart_compose_commit(compose, &picture, MEMORY_MAX, file, out_error);
}
