/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon now`: the grid's carbon intensity at this moment. */
#include <math.h>

#include "base/error.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_view.h"

enum { DAY_S = 86400, HOUR_S = 3600 };

static const struct cli_option options[] = {CARBON_OPTIONS, CARBON_OPTION_SVG};

/* Finds the value of the current period if there is one, else the value that a plan would use. */
static int find(struct carbon_view *view, struct fly_error *out_error)
{
    int64_t now_s = view->request.now_s;
    const struct grid_period *running = grid_series_at(&view->answer.actual, now_s);
    int code;

    if (running != NULL && !isnan(running->value))
        code = carbon_view_sweep(view, now_s, running->end_s, out_error);
    else
        code = carbon_view_forecast(view, now_s, now_s + HOUR_S, out_error);
    if (code == 0 && view->count > 1)
        view->count = 1;
    return code;
}

static int carbon_now_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct carbon_view view;
    int code = carbon_view_begin(call, &view, out_error);

    if (code < 0)
        return code;
    view.request.from_s = view.request.now_s - DAY_S;
    view.request.to_s = view.request.now_s + HOUR_S;
    code = carbon_view_read(call, &view, out_error);
    if (code == 0)
        code = find(&view, out_error);
    if (code == 0)
        code = carbon_view_emit(call, &view, "flyball.carbon.now/1", out_error);
    carbon_view_end(&view);
    return code;
}

const struct cli_command cmd_carbon_now = {
    .words = "carbon now",
    .summary = "show the grid's carbon intensity at this moment",
    .paragraphs =
        {"The actual value of the running period where the source has one already; else the published "
         "forecast of it, else one made from the past, the last value for two hours, or the mean of the "
         "past day, and at last 'unknown'. The column 'quality' says which.",
         "Sources: gb:national, gb:13, gb:RG10 (Great Britain, no key), electricity-maps:ZONE, "
         "watttime:REGION, carbon-aware:LOCATION (a Carbon Aware SDK of the site's), a CSV file, or "
         "constant:380. Servers are asked at most once in each period by all processes of a user together; "
         "the rest comes from a cache."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon now gb:national", "show what a kWh in Great Britain costs now"}},
    .outputs = {&carbon_view_quantities},
    .run = carbon_now_run,
};
