/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/forecast.h"

#include <math.h>
#include <stdbool.h>

#include "base/math/portable_math.h"

enum { DAY_S = 86400, HOUR_S = 3600, LAST_VALUE_S = 2 * HOUR_S, SLOTS_MAX = 288 };

static const double day_decay = 0.8, anomaly_decay_per_hour = 0.94;

/*
 * The usual course of a day in the past days. Days are counted back from `base_s`, the newest is
 * number 0; each is cut into slots of a period's length.
 */
struct course {
    int64_t base_s, step_s;
    size_t slots;
    double level; /* weighted mean of the days' means; NaN without any */
    double trust; /* in the course: 1 if the days agree, 0 if they differ as if by chance */
    double shape[SLOTS_MAX];
};

/* Everything from which the forecast is made. */
struct outlook {
    const struct grid_forecast_request *request;
    const struct grid_period *last; /* the last period that has ended and has a value, or NULL */
    double anomaly;
    double mean; /* of the past days; NaN without any */
    struct course course;
};

/* The figures of the past days; unknown ones are NaN. */
struct days {
    double values[GRID_FORECAST_DAYS][SLOTS_MAX];
    double means[GRID_FORECAST_DAYS];
};

static void read_days(const struct grid_forecast_request *request, const struct course *course,
                      struct days *days)
{
    const struct grid_series *series = request->actual;

    for (int day = 0; day < GRID_FORECAST_DAYS; day++) {
        int64_t start_s = course->base_s - (day + 1) * (int64_t)DAY_S;
        size_t at = grid_series_find(series, start_s + course->step_s / 2), count = 0;
        double sum = 0.0;

        for (size_t slot = 0; slot < course->slots; slot++) {
            int64_t middle_s = start_s + (int64_t)slot * course->step_s + course->step_s / 2;
            const struct grid_period *period;
            bool known;

            while (at < series->count && series->periods[at].end_s <= middle_s)
                at++;
            period = at < series->count ? &series->periods[at] : NULL;
            known = period != NULL && period->start_s <= middle_s && period->end_s <= request->now_s &&
                    !isnan(period->value);
            days->values[day][slot] = known ? period->value : NAN;
            sum += known ? period->value : 0.0;
            count += known;
        }
        /* The mean of a few hours says little about a day. */
        days->means[day] = 2 * count > course->slots ? sum / (double)count : NAN;
    }
}

/* Returns the mean of one slot's differences from its days' means, from day `first` on; NaN without any. */
static double shape_of(const struct days *days, size_t slot, int first, double *out_scatter)
{
    double sum = 0.0, squares = 0.0, weights = 0.0, weight_squares = 0.0, weight = 1.0, mean;

    for (int day = first; day < GRID_FORECAST_DAYS; day++) {
        double difference = days->values[day][slot] - days->means[day];

        if (!isnan(difference)) {
            sum += weight * difference;
            squares += weight * difference * difference;
            weights += weight;
            weight_squares += weight * weight;
        }
        weight *= day_decay;
    }
    if (weights <= 0.0)
        return NAN;
    mean = sum / weights;
    /* The scatter of the mean itself, if the days were drawn by chance. */
    *out_scatter = weights * weights > weight_squares ? (squares / weights - mean * mean) * weight_squares /
                                                            (weights * weights - weight_squares)
                                                      : mean * mean;
    return mean;
}

static double level_of(const struct days *days, int first)
{
    double sum = 0.0, weights = 0.0, weight = 1.0;

    for (int day = first; day < GRID_FORECAST_DAYS; day++) {
        if (!isnan(days->means[day])) {
            sum += weight * days->means[day];
            weights += weight;
        }
        weight *= day_decay;
    }
    return weights > 0.0 ? sum / weights : NAN;
}

static void find_course(const struct days *days, struct course *course)
{
    double squares = 0.0, scatters = 0.0;

    course->level = level_of(days, 0);
    for (size_t slot = 0; slot < course->slots; slot++) {
        double scatter = 0.0;

        course->shape[slot] = shape_of(days, slot, 0, &scatter);
        if (isnan(course->shape[slot]))
            continue;
        squares += course->shape[slot] * course->shape[slot];
        scatters += scatter;
    }
    course->trust = squares > scatters ? 1.0 - scatters / squares : 0.0;
}

/* Returns what is usual at a time of day; NaN if unknown. */
static double usual_at(const struct course *course, int64_t time_s)
{
    int64_t second = (time_s - course->base_s) % DAY_S;
    size_t slot;

    second += second < 0 ? DAY_S : 0;
    slot = (size_t)(second / course->step_s);
    return slot < course->slots ? course->level + course->trust * course->shape[slot] : NAN;
}

/*
 * Returns the series whose periods a forecast continues: the published one if there was never an
 * actual value.
 */
static const struct grid_series *model_of(const struct grid_series *actual,
                                          const struct grid_series *published)
{
    return actual->count > 0 || published == NULL ? actual : published;
}

/* Returns a border of periods at or before `time_s`, continuing those of the series. */
static int64_t border_before(const struct grid_series *series, int64_t time_s, int64_t step_s)
{
    size_t at = grid_series_find(series, time_s);
    int64_t known_s, behind_s;

    known_s = at < series->count ? series->periods[at].start_s : series->periods[series->count - 1].end_s;
    behind_s = (time_s - known_s) % step_s;
    return time_s - (behind_s < 0 ? behind_s + step_s : behind_s);
}

/* Returns how far the last value was from what was usual then. */
static double anomaly_of(const struct outlook *outlook, const struct days *days)
{
    const struct course *course = &outlook->course;
    int64_t behind_s = course->base_s - outlook->last->start_s;
    size_t slot;
    double scatter, usual;
    int day = (int)((behind_s - 1) / DAY_S);

    if (behind_s <= 0 || day + 1 >= GRID_FORECAST_DAYS)
        return 0.0;
    slot = (size_t)((DAY_S - 1 - (behind_s - 1) % DAY_S) / course->step_s);
    if (slot >= course->slots)
        return 0.0;
    usual = level_of(days, day + 1) + course->trust * shape_of(days, slot, day + 1, &scatter);
    return isnan(usual) ? 0.0 : outlook->last->value - usual;
}

static struct outlook look(const struct grid_forecast_request *request, int64_t step_s)
{
    const struct grid_series *series = request->actual;
    struct outlook outlook = {.request = request};
    struct course *course = &outlook.course;
    struct days days;
    size_t at = grid_series_find(series, request->now_s);
    double coverage;

    for (; at > 0 && outlook.last == NULL; at--) {
        const struct grid_period *period = &series->periods[at - 1];

        if (period->end_s <= request->now_s && !isnan(period->value))
            outlook.last = period;
    }
    outlook.mean = grid_series_mean(series, request->now_s - (int64_t)DAY_S * GRID_FORECAST_DAYS,
                                    outlook.last == NULL ? request->now_s : outlook.last->end_s, &coverage);
    course->base_s = border_before(model_of(series, request->published), request->now_s, step_s);
    course->step_s = DAY_S / SLOTS_MAX > step_s ? DAY_S / SLOTS_MAX : step_s;
    course->slots = (size_t)(DAY_S / course->step_s);
    read_days(request, course, &days);
    find_course(&days, course);
    if (outlook.last != NULL)
        outlook.anomaly = anomaly_of(&outlook, &days);
    return outlook;
}

static void fill(struct grid_period *period, double value, enum grid_quality quality)
{
    period->value = value;
    period->quality = quality;
}

static void foretell(const struct outlook *outlook, struct grid_period *period)
{
    const struct grid_forecast_request *request = outlook->request;
    int64_t middle_s = period->start_s + (period->end_s - period->start_s) / 2;
    const struct grid_period *said = NULL;
    double usual;

    if (request->published != NULL && period->start_s < request->published_until_s)
        said = grid_series_at(request->published, middle_s);
    if (said != NULL && !isnan(said->value)) {
        fill(period, said->value, GRID_FORECAST);
        return;
    }
    if (request->published_until_s == INT64_MAX)
        said = grid_series_at(request->actual, middle_s);
    if (said != NULL && !isnan(said->value)) {
        fill(period, said->value, period->start_s <= request->now_s ? said->quality : GRID_FORECAST);
        return;
    }
    usual = usual_at(&outlook->course, middle_s);
    if (outlook->last != NULL && !isnan(usual)) {
        double lead_h = (double)(middle_s - outlook->last->start_s) / HOUR_S;

        usual += outlook->anomaly * portable_exp(portable_log(anomaly_decay_per_hour) * lead_h);
        /* If course and anomaly make an intensity negative, it is near its minimum instead. */
        if (request->actual->kind.quantity == GRID_CARBON)
            usual = fmax(usual, 0.01 * outlook->mean);
        fill(period, usual, GRID_OWN_FORECAST);
    } else if (outlook->last != NULL && middle_s - outlook->last->end_s <= LAST_VALUE_S) {
        fill(period, outlook->last->value, GRID_FALL_BACK);
    } else if (!isnan(outlook->mean)) {
        fill(period, outlook->mean, GRID_FALL_BACK);
    } else if (!isnan(request->yearly_mean)) {
        fill(period, request->yearly_mean, GRID_FALL_BACK);
    } else {
        fill(period, NAN, GRID_UNKNOWN);
    }
}

int64_t grid_forecast_step(const struct grid_series *actual, const struct grid_series *published)
{
    return grid_series_step(model_of(actual, published));
}

size_t grid_forecast(const struct grid_forecast_request *request, struct grid_period *out, size_t capacity)
{
    int64_t step_s = grid_forecast_step(request->actual, request->published), start_s;
    struct outlook outlook;
    size_t count = 0;

    if (step_s == 0)
        return 0;
    outlook = look(request, step_s);
    start_s = border_before(model_of(request->actual, request->published), request->now_s, step_s);
    for (; start_s < request->until_s; start_s += step_s, count++) {
        struct grid_period period = {
            .start_s = start_s, .end_s = start_s + step_s, .issued_s = request->now_s};

        if (count >= capacity)
            continue;
        foretell(&outlook, &period);
        period.start_s = period.start_s > request->now_s ? period.start_s : request->now_s;
        period.end_s = period.end_s < request->until_s ? period.end_s : request->until_s;
        out[count] = period;
    }
    return count;
}
