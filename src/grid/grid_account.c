/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/grid_account.h"

#include <math.h>

#include "base/error.h"
#include "grid/forecast.h"
#include "model/units.h"

enum { DAY_S = 86400 };

/* Beyond any moment of a real clock; whole seconds up to here are exact in a double. */
static const double time_most_s = 1e15;

/* A stretch of time while it is filled. */
struct filling {
    const struct grid_answer *answer;
    struct grid_series *out;
    double yearly_mean;
    int64_t step_s;
};

static int put(struct filling *filling, const struct grid_period *from, int64_t start_s, int64_t end_s,
               struct fly_error *out_error)
{
    struct grid_period period = *from;

    period.start_s = start_s;
    period.end_s = end_s;
    return grid_series_add(filling->out, &period, out_error);
}

static int put_mean(struct filling *filling, int64_t start_s, int64_t end_s, struct fly_error *out_error)
{
    const struct grid_period mean = {
        .value = filling->yearly_mean, .quality = GRID_FALL_BACK, .issued_s = GRID_TIME_UNKNOWN};

    return put(filling, &mean, start_s, end_s, out_error);
}

/* Returns whether some actual value had ended by then and is recent enough to forecast from. */
static bool has_history(const struct filling *filling, int64_t time_s)
{
    const struct grid_series *series = &filling->answer->actual;
    int64_t oldest_s = time_s - GRID_FORECAST_DAYS * (int64_t)DAY_S - filling->step_s;

    for (size_t at = grid_series_find(series, time_s); at > 0; at--) {
        const struct grid_period *period = &series->periods[at - 1];

        if (period->end_s <= oldest_s)
            return false;
        if (!isnan(period->value))
            return true;
    }
    return false;
}

/* Fills time without actual or published value: each period from what had ended before it. */
static int guess(struct filling *filling, int64_t start_s, int64_t end_s, struct fly_error *out_error)
{
    int code = 0;

    while (start_s < end_s && code == 0) {
        const struct grid_forecast_request request = {
            .actual = &filling->answer->actual,
            .now_s = start_s,
            .until_s = end_s - start_s > filling->step_s ? start_s + filling->step_s : end_s,
            .yearly_mean = filling->yearly_mean,
        };
        struct grid_period period;

        /*
         * From here on nothing will be known, so this avoids going period by period, which may be for
         * years.
         */
        if (!has_history(filling, start_s) || grid_forecast(&request, &period, 1) == 0)
            return put_mean(filling, start_s, end_s, out_error);
        code = put(filling, &period, start_s, period.end_s, out_error);
        start_s = period.end_s;
    }
    return code;
}

/* Returns the next moment after `time_s`, up to `end_s`, at which the series has something again. */
static int64_t next_known(const struct grid_series *series, size_t at, int64_t end_s)
{
    while (at < series->count && series->periods[at].start_s < end_s && isnan(series->periods[at].value))
        at++;
    return at < series->count && series->periods[at].start_s < end_s ? series->periods[at].start_s : end_s;
}

/* Fills [start_s, end_s) from a series, and calls `otherwise` for each stretch of which it says nothing. */
static int walk(struct filling *filling, const struct grid_series *series, enum grid_quality best,
                int64_t start_s, int64_t end_s,
                int (*otherwise)(struct filling *, int64_t, int64_t, struct fly_error *),
                struct fly_error *out_error)
{
    size_t at = grid_series_find(series, start_s);
    int code = 0;

    while (start_s < end_s && code == 0) {
        struct grid_period period;
        int64_t until_s = next_known(series, at, end_s);

        if (until_s > start_s) {
            code = otherwise(filling, start_s, until_s, out_error);
            start_s = until_s;
            while (at < series->count && series->periods[at].end_s <= start_s)
                at++;
            continue;
        }
        period = series->periods[at];
        period.quality = period.quality < best ? best : period.quality;
        until_s = period.end_s < end_s ? period.end_s : end_s;
        code = put(filling, &period, start_s, until_s, out_error);
        start_s = until_s;
        at++;
    }
    return code;
}

static int fill_gap(struct filling *filling, int64_t start_s, int64_t end_s, struct fly_error *out_error)
{
    return walk(filling, &filling->answer->published, GRID_FORECAST, start_s, end_s, guess, out_error);
}

int grid_filler_init(struct grid_filler *filler, const struct grid_answer *answer, double yearly_mean,
                     int64_t from_s, int64_t to_s, struct fly_error *out_error)
{
    const struct grid_kind price = {.quantity = GRID_PRICE};
    struct grid_filler made;
    struct filling filling = {.answer = answer, .out = &made.filled, .yearly_mean = yearly_mean};
    int code;

    if (to_s <= from_s)
        return error_set(out_error, FLY_EUSAGE,
                         "an account ends at second %lld, which is not after its start", (long long)to_s);
    grid_series_init(&made.filled, answer == NULL ? &price : &answer->actual.kind, GRID_PERIODS_MAX);
    if (answer == NULL) {
        code = put_mean(&filling, from_s, to_s, out_error);
    } else {
        filling.step_s = grid_series_step(&answer->actual);
        code = walk(&filling, &answer->actual, GRID_MEASURED, from_s, to_s, fill_gap, out_error);
    }
    if (code < 0) {
        grid_series_deinit(&made.filled);
        return code;
    }
    made.filled.settled = true; /* made in order and without overlap */
    *filler = made;
    return 0;
}

void grid_filler_deinit(struct grid_filler *filler)
{
    grid_series_deinit(&filler->filled);
}

static int64_t clamped(double time_s)
{
    return (int64_t)fmax(-time_most_s, fmin(time_most_s, floor(time_s)));
}

void grid_account_split(const struct grid_filler *filler, double start_s, double end_s, double energy_j,
                        grid_account_piece_fn *piece, void *context)
{
    const struct grid_series *series = &filler->filled;
    const struct grid_period unknown = {.value = NAN, .quality = GRID_UNKNOWN, .issued_s = GRID_TIME_UNKNOWN};
    double length_s = end_s - start_s, at_s = start_s;
    size_t at;

    /* A slice without a time, or with an impossible one, belongs to no period. */
    if (!(fabs(start_s) <= time_most_s) || !(fabs(end_s) <= time_most_s)) {
        piece(context, &unknown, start_s, end_s, energy_j);
        return;
    }
    at = grid_series_find(series, clamped(start_s));
    if (length_s <= 0.0) {
        bool inside = at < series->count && (double)series->periods[at].start_s <= start_s;

        piece(context, inside ? &series->periods[at] : &unknown, start_s, start_s, energy_j);
        return;
    }
    while (at_s < end_s) {
        const struct grid_period *period = at < series->count ? &series->periods[at] : &unknown;
        double until_s = end_s;

        if (at < series->count && (double)period->start_s > at_s) {
            until_s = fmin(end_s, (double)period->start_s);
            period = &unknown;
        } else if (at < series->count) {
            until_s = fmin(end_s, (double)period->end_s);
            at++;
        }
        if (until_s > at_s)
            piece(context, period, at_s, until_s, energy_j * ((until_s - at_s) / length_s));
        at_s = fmax(at_s, until_s);
    }
}

/* Neumaier's sum: `lost` collects what rounding takes from the smaller of the two. */
static void sum_up(struct grid_account_part *part, double value)
{
    double sum = part->sum + value;

    part->lost += fabs(part->sum) >= fabs(value) ? (part->sum - sum) + value : (value - sum) + part->sum;
    part->sum = sum;
}

static double total(const struct grid_account_part *part)
{
    return part->sum + part->lost;
}

static void add_piece(void *context, const struct grid_period *period, double start_s, double end_s,
                      double energy_j)
{
    struct grid_account_sum *sum = context;
    bool known = !isnan(period->value) && period->quality < GRID_UNKNOWN;
    enum grid_quality quality = known ? period->quality : GRID_UNKNOWN;

    (void)start_s;
    (void)end_s;
    sum_up(&sum->energy_j[quality], energy_j);
    if (known) {
        sum_up(&sum->amounts[quality], units_kwh_from_j(energy_j) * period->value);
        sum->known++;
    }
}

void grid_account_add(struct grid_account_sum *sum, const struct grid_filler *filler, double start_s,
                      double end_s, double energy_j)
{
    double length_s = end_s - start_s;
    bool has_time = isfinite(length_s) && length_s > 0.0;

    if (has_time)
        sum_up(&sum->time_s, length_s);
    if (isfinite(energy_j) && energy_j >= 0.0)
        grid_account_split(filler, start_s, end_s, energy_j, add_piece, sum);
    else if (has_time)
        sum_up(&sum->unmeasured_s, length_s);
}

struct grid_account grid_account_read(const struct grid_account_sum *sum)
{
    struct grid_account account = {.time_s = total(&sum->time_s), .unmeasured_s = total(&sum->unmeasured_s)};
    struct grid_account_part all = {0}, amount = {0};

    for (int i = 0; i < GRID_QUALITY_COUNT; i++) {
        account.energy_j[i] = total(&sum->energy_j[i]);
        account.amount_by[i] = total(&sum->amounts[i]);
        sum_up(&all, account.energy_j[i]);
        sum_up(&amount, account.amount_by[i]);
    }
    account.all_j = total(&all);
    account.amount = sum->known > 0 ? total(&amount) : NAN;
    return account;
}
