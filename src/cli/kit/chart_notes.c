/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places labels: each tries positions around its point, near ones first, and takes the one that
 * covers least. The search is small and always gives the same answer; charts here have a handful
 * of labels and some hundred points.
 */
#include <math.h>

#include "cli/kit/chart_plot.h"

struct box {
    double left, top, right, bottom;
};

/* Directions from the point to the nearest corner or edge of the label's box. */
static const struct {
    double x, y;
} directions[] = {{1, -1}, {1, 1}, {-1, -1}, {-1, 1}, {1, 0}, {-1, 0}, {0, -1}, {0, 1}};
enum { DIRECTION_COUNT = sizeof directions / sizeof directions[0] };

static const double distances[] = {12, 22, 36, 54, 76, 102};
enum { DISTANCE_COUNT = sizeof distances / sizeof distances[0] };

static const double point_room = 5.0; /* px around a point that a label keeps free */
static const double cost_of_overlap = 1000.0, cost_of_point = 10.0, cost_of_line = 4.0, cost_of_leading = 3.0;
static const double cost_of_distance = 0.15; /* per px */

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool contains(const struct box *box, double x, double y, double room)
{
    return x > box->left - room && x < box->right + room && y > box->top - room && y < box->bottom + room;
}

static struct box box_at(double x, double y, double width, size_t direction, double distance)
{
    double dx = directions[direction].x, dy = directions[direction].y;
    double near = dx != 0.0 && dy != 0.0 ? distance * 0.7 : distance;
    double left = dx > 0 ? x + near : dx < 0 ? x - near - width : x - width / 2.0;
    double top = dy > 0 ? y + near : dy < 0 ? y - near - SVG_FONT_SIZE : y - SVG_FONT_SIZE / 2.0;

    return (struct box){left, top, left + width, top + SVG_FONT_SIZE};
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* A place to try: the label's box, and the line to it from the point (x, y). */
struct trial {
    struct box box;
    double x, y, to_x, to_y;
};

static struct trial trial_of(double x, double y, const struct box *box)
{
    return (struct trial){*box, x, y, clamp(x, box->left, box->right), clamp(y, box->top, box->bottom)};
}

/* Returns whether the line to the label crosses a place, other than where the line begins. */
static bool leads_over(const struct trial *trial, double x, double y)
{
    double dx = trial->to_x - trial->x, dy = trial->to_y - trial->y, length = sqrt(dx * dx + dy * dy);
    double along = ((x - trial->x) * dx + (y - trial->y) * dy) / length;
    double aside = fabs((x - trial->x) * dy - (y - trial->y) * dx) / length;

    return length > 0.0 && along > 1.0 && along < length && aside < point_room;
}

/* Returns what it costs to cover the points of a series and the middles of its lines. */
static double cost_of_series(const struct plot *plot, const struct chart_series *series,
                             const struct trial *trial)
{
    const struct box *box = &trial->box;
    double cost = 0.0, last_x = 0.0, last_y = 0.0;
    bool joined = false;

    if (series->kind == CHART_BAND)
        return 0.0;
    for (size_t i = 0; i < series->count; i++) {
        double x, y;

        if (!plot_shows(plot->panel, series, i)) {
            joined = false;
            continue;
        }
        x = axis_position(&plot->x, series->x[i]);
        y = axis_position(&plot->y, series->y[i]);
        cost += contains(box, x, y, point_room) ? cost_of_point : 0.0;
        cost += leads_over(trial, x, y) ? cost_of_leading : 0.0;
        for (int part = 1; part < 4 && joined && series->kind != CHART_POINTS; part++)
            cost += contains(box, last_x + (x - last_x) * part / 4.0, last_y + (y - last_y) * part / 4.0, 1.0)
                        ? cost_of_line
                        : 0.0;
        last_x = x;
        last_y = y;
        joined = true;
    }
    return cost;
}

static double cost_of_trial(const struct plot *plot, const struct box *placed, size_t placed_count,
                            const struct trial *trial)
{
    const struct box *box = &trial->box;
    double cost = 0.0;

    if (box->left < plot->left || box->right > plot->right || box->top < plot->top ||
        box->bottom > plot->bottom)
        cost += cost_of_overlap;
    for (size_t i = 0; i < placed_count; i++)
        cost += overlap(&placed[i], box) ? cost_of_overlap : 0.0;
    for (size_t s = 0; s < plot->panel->series_count; s++)
        cost += cost_of_series(plot, &plot->panel->series[s], trial);
    return cost;
}

static struct box place(const struct plot *plot, const struct box *placed, size_t placed_count, double x,
                        double y, double width)
{
    struct box best = {0};
    double least = INFINITY;

    for (size_t distance = 0; distance < DISTANCE_COUNT; distance++) {
        for (size_t direction = 0; direction < DIRECTION_COUNT; direction++) {
            struct box box = box_at(x, y, width, direction, distances[distance]);
            struct trial trial = trial_of(x, y, &box);
            double cost =
                cost_of_trial(plot, placed, placed_count, &trial) + distances[distance] * cost_of_distance;

            if (cost < least) {
                least = cost;
                best = box;
            }
        }
    }
    return best;
}

static void draw_note(struct buffer *out, double width, const struct box *box, double x, double y,
                      const char *text)
{
    static const struct svg_font font = {SVG_START, SVG_INK, SVG_FONT_SIZE, 0};
    struct trial trial = trial_of(x, y, box);
    double dx = trial.to_x - x, dy = trial.to_y - y, length = sqrt(dx * dx + dy * dy);

    if (length > point_room)
        svg_segment(out, x + dx / length * point_room, y + dy / length * point_room, trial.to_x, trial.to_y,
                    SVG_INK, 1.0);
    svg_text(out, width, box->left + 3.0, box->bottom - 2.5, &font, text);
}

void plot_draw_notes(const struct plot *plot, struct buffer *out)
{
    struct box placed[CHART_NOTES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < plot->panel->note_count; i++) {
        const struct chart_note *note = &plot->panel->notes[i];
        double x, y;

        if (!axis_shows(&plot->panel->x, note->x) || !axis_shows(&plot->panel->y, note->y))
            continue;
        x = axis_position(&plot->x, note->x);
        y = axis_position(&plot->y, note->y);
        placed[count] = place(plot, placed, count, x, y, svg_text_width(note->text, SVG_FONT_SIZE) + 6.0);
        draw_note(out, plot->width, &placed[count], x, y, note->text);
        count++;
    }
}
