/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's picture: what every choice takes, and where the default and our choice lie. */
#include <math.h>

#include "demo/report.h"

enum { WIDTH = 720, HEIGHT = 440, LEFT = 48, RIGHT = 696, TOP = 84, BOTTOM = 392, TICKS = 8 };

/* One direction: the values that it shows, and where. */
struct axis {
    double low, high, from_px, to_px;
};

static double position(const struct axis *axis, double value)
{
    return axis->from_px + (value - axis->low) / (axis->high - axis->low) * (axis->to_px - axis->from_px);
}

/* Returns an axis with room for a twentieth on both sides. */
static struct axis axis_of(double least, double greatest, double from_px, double to_px)
{
    double room = greatest > least ? 0.05 * (greatest - least) : 0.5 * greatest;

    return (struct axis){least - room, greatest + room, from_px, to_px};
}

/* The least of 1, 2, 5, 10, ... that gives at most TICKS steps. */
static double step_of(const struct axis *axis)
{
    double least = (axis->high - axis->low) / TICKS, decade = pow(10.0, floor(log10(least)));

    return least <= decade         ? decade
           : least <= 2.0 * decade ? 2.0 * decade
           : least <= 5.0 * decade ? 5.0 * decade
                                   : 10.0 * decade;
}

/*
 * What a recurrence takes at a choice: the sum of all its checks divided by how many reached the
 * target.
 */
static struct fly_operating_point mean_of(const struct demo_job *job, struct demo_choice choice)
{
    const struct demo_try *checks = job->checks[choice.batch][choice.limit];
    struct fly_operating_point point = {.batch_size = checks->batch_size,
                                        .power_limit_w = checks->power_limit_w};
    double reached = 0.0;

    for (size_t s = 0; s < DEMO_CHECK_SEEDS; s++) {
        point.time_s += checks[s].time_s;
        point.energy_j += checks[s].energy_j;
        reached += checks[s].reached;
    }
    point.time_s /= reached;
    point.energy_j /= reached;
    return point;
}

struct canvas {
    FILE *out;
    struct axis x, y;
};

static void put_text(const struct canvas *canvas, double x, double y, const char *anchor, const char *text)
{
    fprintf(
        canvas->out,
        "<text fill=\"currentColor\" x=\"%.1f\" y=\"%.1f\" font-size=\"12\" text-anchor=\"%s\">%s</text>\n",
        x, y, anchor, text);
}

static void put_axes(const struct canvas *canvas)
{
    char label[32];

    for (double at = step_of(&canvas->y) * ceil(canvas->y.low / step_of(&canvas->y)); at <= canvas->y.high;
         at += step_of(&canvas->y)) {
        double y = position(&canvas->y, at);

        fprintf(canvas->out,
                "<line stroke=\"currentColor\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" "
                "stroke-width=\"0.3\"/>\n",
                LEFT, y, RIGHT, y);
        snprintf(label, sizeof label, "%.6g", at);
        put_text(canvas, LEFT - 6, y + 4, "end", label);
    }
    for (double at = step_of(&canvas->x) * ceil(canvas->x.low / step_of(&canvas->x)); at <= canvas->x.high;
         at += step_of(&canvas->x)) {
        snprintf(label, sizeof label, "%.6g", at);
        put_text(canvas, position(&canvas->x, at), BOTTOM + 18, "middle", label);
    }
    put_text(canvas, 12, TOP - 12, "start", "energy to target (kJ, emulated)");
    put_text(canvas, 0.5 * (LEFT + RIGHT), BOTTOM + 36, "middle", "time to target (s, emulated)");
}

static void put_dot(const struct canvas *canvas, const struct fly_operating_point *at, const char *color,
                    double radius)
{
    fprintf(canvas->out, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n", color,
            position(&canvas->x, at->time_s), position(&canvas->y, at->energy_j / 1e3), radius);
}

/* A choice with its note, on the side where there is more room. */
static void put_mark(const struct canvas *canvas, const struct fly_operating_point *at, const char *color,
                     const char *what)
{
    double x = position(&canvas->x, at->time_s), y = position(&canvas->y, at->energy_j / 1e3);
    bool right = x < 0.5 * (LEFT + RIGHT);
    char note[80];

    put_dot(canvas, at, color, 7);
    snprintf(note, sizeof note, "%s: batch %u, %g W", what, at->batch_size, at->power_limit_w);
    put_text(canvas, right ? x + 12 : x - 12, y + (y > TOP + 24 ? -10 : 20), right ? "start" : "end", note);
}

void picture_draw(FILE *out, const struct demo_report *report)
{
    static const char head[] =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"system-ui,sans-serif\" color=\"#737b85\">\n"
        "<title>Every choice of the demo's first job: real epochs, emulated seconds and watts</title>\n"
        "<desc>Time and energy to the target of every batch size and power limit, means over fresh seeds, "
        "with "
        "the frontier, the default and what was chosen.</desc>\n";
    static const char blue[] = "#2b8cc4", orange[] = "#d55e00", green[] = "#0f9d70";
    const struct demo_job *job = &report->demo->jobs[0];
    const struct findings *findings = &report->findings[0];
    struct fly_operating_point points[DEMO_BATCHES * GPU_LIMITS],
        standard = mean_of(job, (struct demo_choice){job->default_batch, GPU_LIMITS - 1});
    double least_s = INFINITY, most_s = 0.0, least_kj = INFINITY, most_kj = 0.0;
    struct canvas canvas = {.out = out};
    size_t count = 0, frontier;

    for (size_t b = 0; b < DEMO_BATCHES; b++) {
        for (size_t l = 0; l < GPU_LIMITS; l++) {
            points[count] = mean_of(job, (struct demo_choice){b, l});
            if (!isfinite(points[count].time_s))
                continue;
            least_s = fmin(least_s, points[count].time_s);
            most_s = fmax(most_s, points[count].time_s);
            least_kj = fmin(least_kj, points[count].energy_j / 1e3);
            most_kj = fmax(most_kj, points[count++].energy_j / 1e3);
        }
    }
    canvas.x = axis_of(least_s, most_s, LEFT, RIGHT);
    canvas.y = axis_of(least_kj, most_kj, BOTTOM, TOP);
    fprintf(out, head, WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_text(&canvas, 12, 24, "start", "Every choice of the demo's first job, and the frontier");
    put_axes(&canvas);
    for (size_t i = 0; i < count; i++)
        put_dot(&canvas, &points[i], "currentColor", 3.5);
    frontier = fly_pareto_frontier(points, count);
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", blue);
    for (size_t i = 0; i < frontier; i++)
        fprintf(out, "%.1f,%.1f ", position(&canvas.x, points[i].time_s),
                position(&canvas.y, points[i].energy_j / 1e3));
    fputs("\"/>\n", out);
    for (size_t i = 0; i < frontier; i++)
        put_dot(&canvas, &points[i], blue, 3.5);
    if (isfinite(standard.time_s))
        put_mark(&canvas, &standard, orange, "default");
    if (findings->completed > 0) {
        struct fly_operating_point ours = mean_of(job, findings->ours);

        put_mark(&canvas, &ours, green, report->demo->plan.policy);
    }
    fputs("</svg>\n", out);
}
