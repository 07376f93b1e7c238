/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as a picture: energy over the time of a step, one point for each limit and ceiling. */
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/kit/chart.h"
#include "cli/run/profile_result.h"

enum { MEMORY_MAX = 4 << 20, TEXT_MAX = 256, SERIES_MAX = 4 };

static const double ms_per_s = 1e3;

struct picture {
    const struct profile_result *result;
    struct arena *arena;
    double *time_ms, *energy_j; /* of the valid points */
    const char **tips;
    size_t count, limit_count;      /* limits come first */
    double bound_ms[2], bound_j[2]; /* a line as high as the points reach */
    double start_ms, start_j;       /* the limit before the profile; NAN if it is no point */
    struct chart_note notes[PROFILE_SELECTOR_COUNT + 1];
    size_t note_count;
    struct chart_series series[SERIES_MAX];
    struct chart_panel panel;
    char title[TEXT_MAX], description[TEXT_MAX];
};

static double energy_j(const struct fly_tuner_point *point)
{
    return point->power_w * point->time_s;
}

static const char *keep(struct picture *picture, const char *text)
{
    return arena_strdup(picture->arena, text);
}

static void add_point(struct picture *picture, const struct fly_tuner_point *point)
{
    char text[TEXT_MAX], setting[PROFILE_SETTING_MAX];

    snprintf(text, sizeof text, "%s: %.4g ms, %.4g J, %.4g W drawn%s", profile_setting(point, setting),
             point->time_s * ms_per_s, energy_j(point), point->power_w,
             point->bound == FLY_TUNER_UNBOUND ? "; it never bound" : "");
    picture->time_ms[picture->count] = point->time_s * ms_per_s;
    picture->energy_j[picture->count] = energy_j(point);
    picture->tips[picture->count++] = keep(picture, text);
    picture->limit_count += isnan(point->ceiling_mhz);
    picture->bound_j[0] = fmin(picture->bound_j[0], energy_j(point));
    picture->bound_j[1] = fmax(picture->bound_j[1], energy_j(point));
    if (isnan(point->ceiling_mhz) &&
        fabs(point->limit_w - picture->result->tune->report.start_limit_w) < 0.5) {
        picture->start_ms = point->time_s * ms_per_s;
        picture->start_j = energy_j(point);
    }
}

/* Adds one label for each point that a selector chose, with the names of all that did. */
static void add_notes(struct picture *picture)
{
    const struct profile_choice *choices = picture->result->choices;
    char text[TEXT_MAX * 2], setting[PROFILE_SETTING_MAX];

    for (int i = 0; i < PROFILE_SELECTOR_COUNT; i++) {
        const struct fly_tuner_point *point = choices[i].point;
        int length;
        bool seen = false;

        for (int j = 0; j < i; j++)
            seen |= choices[j].point == point;
        if (point == NULL || seen)
            continue;
        length = snprintf(text, sizeof text, "%s: %s", profile_setting(point, setting), choices[i].name);
        for (int j = i + 1; j < PROFILE_SELECTOR_COUNT && length < TEXT_MAX; j++) {
            if (choices[j].point == point)
                length += snprintf(text + length, sizeof text - (size_t)length, ", %s", choices[j].name);
        }
        picture->notes[picture->note_count++] =
            (struct chart_note){point->time_s * ms_per_s, energy_j(point), keep(picture, text)};
    }
}

static int take_points(struct picture *picture, struct fly_error *out_error)
{
    const struct run_tune *tune = picture->result->tune;
    size_t count = picture->result->valid + 1;

    picture->time_ms = arena_alloc(picture->arena, count, sizeof picture->time_ms[0]);
    picture->energy_j = arena_alloc(picture->arena, count, sizeof picture->energy_j[0]);
    picture->tips = arena_alloc(picture->arena, count, sizeof picture->tips[0]);
    if (picture->time_ms == NULL || picture->energy_j == NULL || picture->tips == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < tune->point_count; i++) {
        if (tune->points[i].mark == FLY_TUNER_VALID)
            add_point(picture, &tune->points[i]);
    }
    if (picture->result->highest != NULL)
        picture->bound_ms[0] = picture->bound_ms[1] =
            picture->result->highest->time_s * tune->objective.max_slowdown * ms_per_s;
    add_notes(picture);
    return 0;
}

/* Leaves out series without points, from the legend too. */
static size_t make_series(const struct picture *picture, struct chart_series series[SERIES_MAX])
{
    const struct chart_series all[SERIES_MAX] = {
        {.name = "slowest within the bound",
         .kind = CHART_LINE,
         .color = SVG_PURPLE,
         .dash = SVG_DASHED,
         .x = picture->bound_ms,
         .y = picture->bound_j,
         .count = picture->result->highest != NULL ? 2 : 0},
        {.name = "power limits, highest to lowest",
         .kind = CHART_LINE,
         .color = SVG_BLUE,
         .shape = SVG_CIRCLE,
         .radius = 3.5,
         .x = picture->time_ms,
         .y = picture->energy_j,
         .tips = picture->tips,
         .count = picture->limit_count},
        {.name = "ceilings on the clock, highest to lowest",
         .kind = CHART_LINE,
         .color = SVG_GREEN,
         .shape = SVG_CIRCLE,
         .radius = 3.5,
         .x = picture->time_ms + picture->limit_count,
         .y = picture->energy_j + picture->limit_count,
         .tips = picture->tips + picture->limit_count,
         .count = picture->count - picture->limit_count},
        {.name = "the limit that stood",
         .kind = CHART_POINTS,
         .color = SVG_ORANGE,
         .shape = SVG_SQUARE,
         .radius = 6,
         .x = &picture->start_ms,
         .y = &picture->start_j,
         .count = isfinite(picture->start_ms) ? 1 : 0},
    };
    size_t count = 0;

    for (size_t i = 0; i < SERIES_MAX; i++) {
        if (all[i].count > 0)
            series[count++] = all[i];
    }
    return count;
}

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct picture *picture = context;
    const struct run_tune *tune = picture->result->tune;
    const char *name = tune->gpu_count > 0 ? tune->gpus[0]->info.name : "no GPU";
    int code;

    picture->arena = arena;
    code = take_points(picture, out_error);
    picture->panel = (struct chart_panel){.height = 380,
                                          .x = {.label = "time of a step (ms)"},
                                          .y = {.label = "energy of a step (J)"},
                                          .series = picture->series,
                                          .series_count = make_series(picture, picture->series),
                                          .notes = picture->notes,
                                          .note_count = picture->note_count};
    snprintf(picture->title, sizeof picture->title, "Energy and time of a step under each %s%s, %zu x %.80s",
             picture->result->of_power || !picture->result->of_clock ? "power limit" : "ceiling on the clock",
             picture->result->of_power && picture->result->of_clock ? " and ceiling on the clock" : "",
             tune->gpu_count, name);
    snprintf(picture->description, sizeof picture->description, "%zu %ss measured%s.", picture->result->valid,
             profile_noun(picture->result), picture->result->complete ? "" : "; the profile is not complete");
    *out_chart = (struct chart){.title = picture->title,
                                .description = picture->description,
                                .panels = &picture->panel,
                                .panel_count = 1};
    return code;
}

int profile_plot_commit(const struct profile_result *result, struct atomic_file *file,
                        struct fly_error *out_error)
{
    struct picture picture = {.result = result, .bound_j = {INFINITY, 0}, .start_ms = NAN, .start_j = NAN};

    return chart_compose_commit(compose, &picture, MEMORY_MAX, file, out_error);
}
