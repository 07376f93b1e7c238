/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon history`: the grid's carbon intensity of a time in the past. */
#include "base/error.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_view.h"

enum { DAY_S = 86400, DAYS_MOST = 366 };

static const struct cli_option options[] = {
    CARBON_OPTIONS,
    {.name = "from",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it from then on, ISO 8601, UTC unless it says otherwise; the last 24 hours, or all of a "
             "file, unless set."},
    {.name = "to",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it until then; until now unless set."},
    CARBON_OPTION_SVG,
};

static int read_times(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    struct grid_request *request = &view->request;
    int code = carbon_view_time(call, "to", request->now_s, &request->to_s, out_error);

    if (code == 0)
        code = carbon_view_time(call, "from", request->to_s - DAY_S, &request->from_s, out_error);
    if (code < 0)
        return code;
    if (request->to_s <= request->from_s || request->to_s - request->from_s > DAYS_MOST * (int64_t)DAY_S)
        return cli_usage(call, out_error, "--to has to be after --from, by at most %d days", DAYS_MOST);
    return 0;
}

/* Shows a file completely unless the options say otherwise. */
static void widen(const struct cli_call *call, struct carbon_view *view)
{
    const struct grid_series *actual = &view->answer.actual;

    if (!carbon_view_is_local(view) || actual->count < 2)
        return;
    if (!cli_set(call, "from"))
        view->request.from_s = actual->periods[0].start_s;
    if (!cli_set(call, "to"))
        view->request.to_s = actual->periods[actual->count - 1].end_s;
}

static int carbon_history_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct carbon_view view;
    int code = carbon_view_begin(call, &view, out_error);

    if (code < 0)
        return code;
    code = read_times(call, &view, out_error);
    if (code == 0)
        code = carbon_view_read(call, &view, out_error);
    if (code == 0) {
        widen(call, &view);
        code = carbon_view_sweep(&view, view.request.from_s, view.request.to_s, out_error);
    }
    if (code == 0)
        code = carbon_view_emit(call, &view, "flyball.carbon.history/1", out_error);
    carbon_view_end(&view);
    return code;
}

const struct cli_command cmd_carbon_history = {
    .words = "carbon history",
    .summary = "show the grid's carbon intensity of the past",
    .paragraphs =
        {"For each period the actual value, measured or estimated; where the source has none, what it "
         "forecast for it; where it has neither, 'unknown'. The column 'forecast' is the last published "
         "forecast of the period. JSON says how much of the time each quality covers, and the mean.",
         "Sources are those of 'flyball carbon now'. Values that ended more than a week before they were "
         "fetched "
         "are final; younger ones are fetched again, and a provider's revision replaces what it revises."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon history gb:national --from 2026-11-01 --to 2026-11-08 --format csv",
                  "write a week as CSV"},
                 {"flyball carbon history us_ciso_2022.csv --from 2022-07-01 --to 2022-07-02 --svg day.svg",
                  "draw a day of a file"}},
    .outputs = {&carbon_view_quantities},
    .run = carbon_history_run,
};
