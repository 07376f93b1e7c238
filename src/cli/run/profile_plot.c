/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as a picture: energy over the time of a step, one point for each limit and ceiling. */
#include <math.h>
#include <stdio.h>

#include "cli/kit/picture.h"
#include "cli/run/profile_result.h"

enum { MEMORY_MAX = 4 << 20, TEXT_MAX = 512 };

static const double ms_per_s = 1e3;

static double energy_j(const struct fly_tuner_point *point)
{
    return point->power_w * point->time_s;
}

/* Adds the valid points, and the slowest time within the bound as a line as high as they reach. */
static void add_points(struct picture *picture, struct picture_panel *panel,
                       const struct profile_result *result)
{
    static const struct chart_series looks[] = {
        {.name = "slowest within the bound", .kind = CHART_LINE, .color = SVG_PURPLE, .dash = SVG_DASHED},
        {.name = "power limits, highest to lowest",
         .kind = CHART_LINE,
         .color = SVG_BLUE,
         .shape = SVG_CIRCLE,
         .radius = 3.5},
        {.name = "ceilings on the clock, highest to lowest",
         .kind = CHART_LINE,
         .color = SVG_GREEN,
         .shape = SVG_CIRCLE,
         .radius = 3.5},
        {.name = "the limit that stood",
         .kind = CHART_POINTS,
         .color = SVG_ORANGE,
         .shape = SVG_SQUARE,
         .radius = 6},
    };
    enum { BOUND, LIMITS, CEILINGS, STOOD, ROWS };
    const struct run_tune *tune = result->tune;
    const struct fly_tuner_point *stood = NULL;
    struct picture_row *rows[ROWS];
    double least_j = INFINITY, greatest_j = 0;

    for (int i = 0; i < ROWS; i++)
        rows[i] = picture_row(picture, panel, &looks[i]);
    for (size_t i = 0; i < tune->point_count; i++) {
        const struct fly_tuner_point *point = &tune->points[i];
        char setting[PROFILE_SETTING_MAX];

        if (point->mark != FLY_TUNER_VALID)
            continue;
        picture_point(picture, rows[isnan(point->ceiling_mhz) ? LIMITS : CEILINGS], point->time_s * ms_per_s,
                      energy_j(point),
                      picture_text(picture, "%s: %.4g ms, %.4g J, %.4g W drawn%s",
                                   profile_setting(point, setting), point->time_s * ms_per_s, energy_j(point),
                                   point->power_w,
                                   point->bound == FLY_TUNER_UNBOUND ? "; it never bound" : ""));
        least_j = fmin(least_j, energy_j(point));
        greatest_j = fmax(greatest_j, energy_j(point));
        if (isnan(point->ceiling_mhz) && fabs(point->limit_w - tune->report.start_limit_w) < 0.5)
            stood = point;
    }
    if (stood != NULL)
        picture_point(picture, rows[STOOD], stood->time_s * ms_per_s, energy_j(stood), NULL);
    if (result->highest != NULL) {
        double bound_ms = result->highest->time_s * tune->objective.max_slowdown * ms_per_s;

        picture_point(picture, rows[BOUND], bound_ms, least_j, NULL);
        picture_point(picture, rows[BOUND], bound_ms, greatest_j, NULL);
    }
}

/* Adds one label for each point that a selector chose, with the names of all that did. */
static void add_notes(struct picture *picture, struct picture_panel *panel,
                      const struct profile_choice *choices)
{
    for (int i = 0; i < PROFILE_SELECTOR_COUNT; i++) {
        const struct fly_tuner_point *point = choices[i].point;
        char text[TEXT_MAX], setting[PROFILE_SETTING_MAX];
        int length;
        bool seen = false;

        for (int j = 0; j < i; j++)
            seen |= choices[j].point == point;
        if (point == NULL || seen)
            continue;
        length = snprintf(text, sizeof text, "%s: %s", profile_setting(point, setting), choices[i].name);
        for (int j = i + 1; j < PROFILE_SELECTOR_COUNT && length < TEXT_MAX / 2; j++) {
            if (choices[j].point == point)
                length += snprintf(text + length, sizeof text - (size_t)length, ", %s", choices[j].name);
        }
        picture_note(panel, point->time_s * ms_per_s, energy_j(point), picture_text(picture, "%s", text));
    }
}

int profile_plot_commit(const struct profile_result *result, struct atomic_file *file,
                        struct fly_error *out_error)
{
    const struct run_tune *tune = result->tune;
    struct picture picture;
    struct picture_panel *panel;

    picture_begin(&picture, MEMORY_MAX);
    panel = picture_panel(&picture, &(struct chart_panel){.height = 380,
                                                          .x = {.label = "time of a step (ms)"},
                                                          .y = {.label = "energy of a step (J)"}});
    add_points(&picture, panel, result);
    add_notes(&picture, panel, result->choices);
    return picture_commit(
        &picture,
        picture_text(&picture, "Energy and time of a step under each %s%s, %zu x %.80s",
                     result->of_power || !result->of_clock ? "power limit" : "ceiling on the clock",
                     result->of_power && result->of_clock ? " and ceiling on the clock" : "", tune->gpu_count,
                     tune->gpu_count > 0 ? tune->gpus[0]->info.name : "no GPU"),
        picture_text(&picture, "%zu %ss measured%s.", result->valid, profile_noun(result),
                     result->complete ? "" : "; the profile is not complete"),
        file, out_error);
}
