/* SPDX-License-Identifier: Apache-2.0 */
/* The grid's intensity over time as a picture: a line for each quality, broken where it is unknown. */
#include <stdio.h>

#include "base/text/iso_time.h"
#include "cli/carbon/carbon_view.h"
#include "cli/carbon/quality_lines.h"
#include "cli/kit/chart.h"

enum { MEMORY_MAX = 256 << 20, TEXT_MAX = 320 };

struct picture {
    const struct carbon_view *view;
    struct quality_lines lines;
    struct chart_panel panel;
    char title[TEXT_MAX], description[TEXT_MAX], label[TEXT_MAX];
};

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct picture *picture = context;
    const struct carbon_view *view = picture->view;
    const struct grid_kind *kind = &view->answer.actual.kind;
    char from[ISO_TIME_TEXT_MAX] = "now", to[ISO_TIME_TEXT_MAX] = "now";
    int code = quality_lines_make(view->rows, view->count, view->count > 0 ? view->rows[0].start_s : 0, arena,
                                  &picture->lines, out_error);

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
                                          .series = picture->lines.series,
                                          .series_count = picture->lines.count};
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
