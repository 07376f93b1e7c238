/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of `flyball demo`: what every choice takes, and where the default and our choice lie. */
#include <math.h>
#include <stdio.h>

#include <flyball/pareto.h>

#include "cli/demo/demo_report.h"
#include "cli/kit/chart.h"

enum { POINTS_MAX = DEMO_BATCHES * 64, NOTE_MAX = 64 };

struct points {
    double time_s[POINTS_MAX], energy_kj[POINTS_MAX];
    size_t count;
};

static void add_point(struct points *points, const struct fly_operating_point *at)
{
    points->time_s[points->count] = at->time_s;
    points->energy_kj[points->count++] = at->energy_j / 1e3;
}

/*
 * Returns what a recurrence takes at a choice: the sum of all its checks divided by how many
 * reached the target.
 */
static struct fly_operating_point mean_of(const struct demo_job *job, size_t batch, size_t limit)
{
    const struct demo_try *checks = demo_checks(job, batch, limit);
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

/* One choice as a series of its own, with its note. */
struct mark {
    double time_s, energy_kj;
    char text[NOTE_MAX];
};

static struct mark mark_of(const struct demo_job *job, struct demo_choice choice, const char *what)
{
    const struct fly_operating_point at = mean_of(job, choice.batch, choice.limit);
    struct mark mark = {at.time_s, at.energy_j / 1e3, ""};

    snprintf(mark.text, sizeof mark.text, "%s: batch %u, %g W", what, at.batch_size, at.power_limit_w);
    return mark;
}

static void gather(const struct demo_job *job, struct points *all, struct points *frontier)
{
    struct fly_operating_point points[POINTS_MAX];
    size_t count = 0, length;

    for (size_t b = 0; b < DEMO_BATCHES; b++) {
        for (size_t l = 0; l < demo_limit_count(job); l++) {
            points[count] = mean_of(job, b, l);
            if (isfinite(points[count].time_s))
                add_point(all, &points[count++]);
        }
    }
    length = fly_pareto_frontier(points, count);
    for (size_t i = 0; i < length; i++)
        add_point(frontier, &points[i]);
}

int demo_picture_draw(struct buffer *out, const struct demo_report *report, struct fly_error *out_error)
{
    const struct demo_job *job = &report->demo->jobs[0];
    const struct findings *findings = &report->findings[0];
    struct points all = {.count = 0}, frontier = {.count = 0};
    struct mark standard = mark_of(
        job, (struct demo_choice){job->workload.spec.default_batch, demo_limit_count(job) - 1}, "default");
    struct mark ours = mark_of(job, findings->ours, report->policy);
    const struct chart_series series[] = {
        {.name = "every choice",
         .kind = CHART_POINTS,
         .color = SVG_FAINT,
         .shape = SVG_CIRCLE,
         .x = all.time_s,
         .y = all.energy_kj,
         .count = (gather(job, &all, &frontier), all.count)},
        {.name = "frontier",
         .kind = CHART_LINE,
         .color = SVG_BLUE,
         .shape = SVG_CIRCLE,
         .x = frontier.time_s,
         .y = frontier.energy_kj,
         .count = frontier.count},
        {.name = "default",
         .kind = CHART_POINTS,
         .color = SVG_ORANGE,
         .shape = SVG_SQUARE,
         .radius = 6,
         .x = &standard.time_s,
         .y = &standard.energy_kj,
         .count = 1},
        {.name = report->policy,
         .kind = CHART_POINTS,
         .color = SVG_GREEN,
         .shape = SVG_STAR,
         .radius = 7,
         .x = &ours.time_s,
         .y = &ours.energy_kj,
         .count = findings->completed > 0},
    };
    const struct chart_note notes[] = {{standard.time_s, standard.energy_kj, standard.text},
                                       {ours.time_s, ours.energy_kj, ours.text}};
    const struct chart_panel panel = {.height = 320,
                                      .x = {.label = "time to target (s, emulated)"},
                                      .y = {.label = "energy to target (kJ, emulated)"},
                                      .series = series,
                                      .series_count = sizeof series / sizeof series[0],
                                      .notes = notes,
                                      .note_count = findings->completed > 0 ? 2 : 1};
    const struct chart chart = {
        .title = "Every choice of the demo's first job: real epochs, emulated seconds and watts",
        .description = "Time and energy to the target of every batch size and power limit, means over fresh "
                       "seeds, with the frontier, the default and what was chosen.",
        .panels = &panel,
        .panel_count = 1};

    return chart_draw(&chart, out, out_error);
}
