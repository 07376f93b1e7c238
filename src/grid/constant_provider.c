/* SPDX-License-Identifier: Apache-2.0 */
/* One figure for all time, for a site with a contract or a grid without data. */
#include "base/error.h"
#include "base/number.h"
#include "grid/provider.h"
#include "model/grid_settle.h"

/* From 1970 to 2106, in periods of ten years, since the figure never changes. */
static const int64_t last_s = INT64_C(4294967296);

static int constant_read(const struct grid_request *request, struct grid_answer *out_answer,
                         struct fly_error *out_error)
{
    struct grid_kind kind = {.quantity = request->quantity, .scope = request->scope, .provider = "constant"};
    struct grid_answer answer = {.remark = ""};
    struct grid_period period = {
        .start_s = 0, .end_s = last_s, .quality = GRID_FALL_BACK, .issued_s = GRID_TIME_UNKNOWN};
    bool carbon = request->quantity == GRID_CARBON;
    int code;

    if (!number_parse_double(request->place, &period.value) ||
        (carbon ? period.value <= 0.0 || period.value > GRID_CARBON_MOST
                : period.value < -GRID_PRICE_MOST || period.value > GRID_PRICE_MOST))
        return error_set(out_error, FLY_EDATA, "constant '%.60s': expected %s; write it as constant:380",
                         request->place,
                         carbon ? "a carbon intensity above 0 and up to 5000 g/kWh" : "a price per kWh");
    grid_series_init(&answer.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&answer.published, &kind, GRID_PERIODS_MAX);
    code = grid_series_add(&answer.actual, &period, out_error);
    if (code == 0)
        code = grid_series_settle(&answer.actual, out_error);
    if (code == 0)
        *out_answer = answer;
    else
        grid_answer_deinit(&answer);
    return code;
}

const struct grid_provider grid_provider_constant = {
    .name = "constant",
    .place = "NUMBER",
    .summary = "one figure for all time",
    .read = constant_read,
};
