/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/carbon_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/forecast.h"
#include "grid/providers.h"

enum { NS_PER_S = 1000000000 };

const char *const carbon_signal_names[] = {"average", "marginal", NULL};
static const enum grid_signal signals[] = {GRID_AVERAGE, GRID_MARGINAL};
const char *const carbon_scope_names[] = {"direct", "life-cycle", NULL};
static const enum grid_scope scopes[] = {GRID_DIRECT, GRID_LIFE_CYCLE};

void carbon_view_choose(const struct cli_call *call, struct grid_request *request)
{
    int signal = cli_choice(call, "signal"), scope = cli_choice(call, "scope");

    request->signal = signal >= 0 ? signals[signal] : GRID_SIGNAL_UNKNOWN;
    request->scope = scope >= 0 ? scopes[scope] : GRID_SCOPE_UNKNOWN;
}

int carbon_view_begin(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    const char *source = cli_operand_count(call) > 0 ? cli_operand(call, 0) : cli_text(call, "source");

    *view = (struct carbon_view){.source = source};
    if (source == NULL)
        return cli_usage(call, out_error,
                         "no source of the grid's figures given; name one as gb:national or "
                         "electricity-maps:DE, or set carbon.source");
    view->request = (struct grid_request){
        .quantity = GRID_CARBON,
        .now_s = clock_real.date(clock_real.state).ns / NS_PER_S,
        .cached_only = cli_flag(call, "cached"),
    };
    carbon_view_choose(call, &view->request);
    return 0;
}

int carbon_view_time(const struct cli_call *call, const char *option, int64_t otherwise, int64_t *out_s,
                     struct fly_error *out_error)
{
    *out_s = otherwise;
    if (!cli_set(call, option) || iso_time_parse_utc(cli_text(call, option), true, out_s))
        return 0;
    return cli_value_error(call, option, cli_text(call, option),
                           "a time as 2026-11-22T07:30Z, 2026-11-22T08:30+01:00 or 2026-11-22", out_error);
}

int carbon_view_read(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    int code = grid_read(view->source, &view->request, &view->answer, out_error);

    if (code == 0 && view->answer.remark[0] != '\0')
        cli_warn(call, "%s", view->answer.remark);
    return code;
}

bool carbon_view_is_local(const struct carbon_view *view)
{
    const char *provider = view->answer.actual.kind.provider;

    return strcmp(provider, grid_provider_csv.name) == 0 ||
           strcmp(provider, grid_provider_constant.name) == 0;
}

static bool is_known(const struct grid_period *period)
{
    return period != NULL && !isnan(period->value);
}

/* Returns where the next period begins, if that is after `time_s` and before `end_s`. */
static int64_t next_start(const struct grid_series *series, int64_t time_s, int64_t end_s)
{
    for (size_t i = grid_series_find(series, time_s); i < series->count; i++) {
        if (series->periods[i].start_s > time_s)
            return series->periods[i].start_s < end_s ? series->periods[i].start_s : end_s;
    }
    return end_s;
}

/* Returns the period to show from `time_s` on. */
static struct grid_period row_at(const struct carbon_view *view, int64_t time_s, int64_t to_s)
{
    const struct grid_period *actual = grid_series_at(&view->answer.actual, time_s);
    const struct grid_period *published = grid_series_at(&view->answer.published, time_s);
    struct grid_period row = {
        .end_s = to_s, .value = NAN, .quality = GRID_UNKNOWN, .issued_s = GRID_TIME_UNKNOWN};

    if (is_known(actual)) {
        row = *actual;
    } else if (is_known(published)) {
        row = *published;
        row.end_s = next_start(&view->answer.actual, time_s, row.end_s);
    } else {
        if (actual != NULL)
            row.end_s = actual->end_s;
        row.end_s = next_start(&view->answer.actual, time_s, row.end_s);
        row.end_s = next_start(&view->answer.published, time_s, row.end_s);
    }
    if (row.end_s > to_s)
        row.end_s = to_s;
    row.start_s = time_s;
    return row;
}

int carbon_view_sweep(struct carbon_view *view, int64_t from_s, int64_t to_s, struct fly_error *out_error)
{
    /* Each border of either series ends at most one row. */
    size_t most = 2 * (view->answer.actual.count + view->answer.published.count) + 2;

    view->rows = malloc(most * sizeof view->rows[0]);
    if (view->rows == NULL)
        return error_no_memory(out_error);
    for (int64_t time_s = from_s; time_s < to_s && view->count < most; view->count++) {
        view->rows[view->count] = row_at(view, time_s, to_s);
        time_s = view->rows[view->count].end_s;
    }
    return 0;
}

int carbon_view_forecast(struct carbon_view *view, int64_t from_s, int64_t to_s, struct fly_error *out_error)
{
    const struct grid_forecast_request request = {.actual = &view->answer.actual,
                                                  .published = &view->answer.published,
                                                  .published_until_s = INT64_MAX,
                                                  .now_s = view->request.now_s,
                                                  .until_s = to_s,
                                                  .yearly_mean = NAN};
    size_t count, kept = 0;

    /* A constant needs no forecast, and has no periods from which to make one. */
    if (strcmp(view->answer.actual.kind.provider, grid_provider_constant.name) == 0)
        return carbon_view_sweep(view, from_s, to_s, out_error);
    count = grid_forecast(&request, NULL, 0);
    if (count == 0)
        return carbon_view_sweep(view, from_s, to_s, out_error);
    view->rows = malloc(count * sizeof view->rows[0]);
    if (view->rows == NULL)
        return error_no_memory(out_error);
    (void)grid_forecast(&request, view->rows, count);
    for (size_t i = 0; i < count; i++) {
        if (view->rows[i].end_s > from_s)
            view->rows[kept++] = view->rows[i];
    }
    if (kept > 0 && view->rows[0].start_s < from_s)
        view->rows[0].start_s = from_s;
    view->count = kept;
    return 0;
}

void carbon_view_end(struct carbon_view *view)
{
    free(view->rows);
    grid_answer_deinit(&view->answer);
    view->rows = NULL;
    view->count = 0;
}
