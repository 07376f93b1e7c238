/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon forecast`: the grid's carbon intensity from now on, as a plan sees it. */
#include "base/error.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_view.h"
#include "grid/forecast.h"

enum { DAY_S = 86400, DAYS_MOST = 31 };

static const struct cli_option options[] = {
    CARBON_OPTIONS,
    {.name = "from",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it from then on, ISO 8601, UTC unless it says otherwise; from now on unless set."},
    {.name = "to",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it until then, at most 31 days from now; for 24 hours unless set."},
    CARBON_OPTION_SVG,
};

static int read_times(const struct cli_call *call, struct carbon_view *view, int64_t *out_from_s,
                      struct fly_error *out_error)
{
    int64_t now_s = view->request.now_s, to_s = 0;
    int code = carbon_view_time(call, "from", now_s, out_from_s, out_error);

    if (code == 0)
        code = carbon_view_time(call, "to", (*out_from_s > now_s ? *out_from_s : now_s) + DAY_S, &to_s,
                                out_error);
    if (code < 0)
        return code;
    if (*out_from_s < now_s)
        return cli_usage(call, out_error,
                         "a forecast begins now at the earliest; for the past there is "
                         "'flyball carbon history'");
    if (to_s <= *out_from_s || to_s > now_s + DAYS_MOST * (int64_t)DAY_S)
        return cli_usage(call, out_error, "--to has to be after --from and within %d days", DAYS_MOST);
    view->request.from_s = now_s - GRID_FORECAST_DAYS * (int64_t)DAY_S;
    view->request.to_s = to_s;
    return 0;
}

static int carbon_forecast_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct carbon_view view;
    int64_t from_s = 0;
    int code = carbon_view_begin(call, &view, out_error);

    if (code < 0)
        return code;
    code = read_times(call, &view, &from_s, out_error);
    if (code == 0)
        code = carbon_view_read(call, &view, out_error);
    if (code == 0)
        code = carbon_view_forecast(&view, from_s, view.request.to_s, out_error);
    if (code == 0)
        code = carbon_view_emit(call, &view, "flyball.carbon.forecast/1", out_error);
    carbon_view_end(&view);
    return code;
}

const struct cli_command cmd_carbon_forecast = {
    .words = "carbon forecast",
    .summary = "show the grid's carbon intensity from now on",
    .paragraphs =
        {"What a plan would go by: the published forecast as far as it reaches, then one made from the "
         "past 14 days, then the last value for two hours, or the mean. The column 'quality' says which "
         "it was for each period; nothing known is 'unknown', never 0.",
         "Sources are those of 'flyball carbon now'. The past is asked for as well, which some keys do "
         "not give; a warning says so, and the forecast is made from what there is."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon forecast gb:national --svg tomorrow.svg", "draw the next 24 hours"}},
    .outputs = {&carbon_view_quantities},
    .run = carbon_forecast_run,
};
