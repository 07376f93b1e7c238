/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/forecast.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/math/portable_math.h"
#include "grid/providers.h"

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

/* Returns the usual length of those periods; 0: unknown. */
static int64_t grid_forecast_step(const struct grid_series *actual, const struct grid_series *published)
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

/* ---- outlook ---- */

int grid_outlook_init(struct grid_outlook *outlook, size_t capacity, struct fly_error *out_error)
{
    struct grid_outlook made = {.capacity = capacity};
    bool complete;

    if (capacity > (size_t)GRID_PERIODS_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "an outlook on the grid has more than %d periods; look less far ahead",
                         GRID_PERIODS_MAX);
    made.spans = malloc((capacity + 1) * sizeof made.spans[0]);
    complete = made.spans != NULL;
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        made.periods[i] = malloc((capacity + 1) * sizeof made.periods[i][0]);
        complete = complete && made.periods[i] != NULL;
    }
    if (!complete) {
        grid_outlook_deinit(&made);
        return error_no_memory(out_error);
    }
    *outlook = made;
    return 0;
}

void grid_outlook_deinit(struct grid_outlook *outlook)
{
    free(outlook->spans);
    for (int i = 0; i < CARBON_SIGNALS; i++)
        free(outlook->periods[i]);
    *outlook = (struct grid_outlook){0};
}

size_t grid_outlook_capacity(const struct grid_outlook_request *request)
{
    double length_s = request->to_s - request->from_s;
    size_t capacity = 4;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_answer *answer = request->answers[i];
        int64_t step_s = answer == NULL ? 0 : grid_forecast_step(&answer->actual, &answer->published);

        capacity += 4;
        if (step_s > 0 && length_s > 0.0)
            capacity += (size_t)fmin(length_s / (double)step_s, GRID_PERIODS_MAX);
    }
    return capacity < (size_t)GRID_PERIODS_MAX ? capacity : (size_t)GRID_PERIODS_MAX;
}

void grid_outlook_merge(struct grid_outlook *outlook, const struct carbon_objective *objective, double from_s,
                        double to_s)
{
    const double factors[CARBON_SIGNALS] = {objective->per_g, objective->per_money};
    size_t at[CARBON_SIGNALS] = {0};

    for (outlook->count = 0; from_s < to_s && outlook->count < outlook->capacity; outlook->count++) {
        double end_s = to_s, weight = objective->per_kwh;

        for (int i = 0; i < CARBON_SIGNALS; i++) {
            const struct grid_period *periods = outlook->periods[i];

            while (at[i] < outlook->period_counts[i] && (double)periods[at[i]].end_s <= from_s)
                at[i]++;
            if (at[i] >= outlook->period_counts[i]) {
                weight += factors[i] != 0.0 ? NAN : 0.0;
                continue;
            }
            end_s = fmin(end_s, (double)periods[at[i]].end_s);
            weight += factors[i] != 0.0 ? factors[i] * periods[at[i]].value : 0.0;
        }
        outlook->spans[outlook->count] = (struct carbon_span){end_s - from_s, weight};
        from_s = end_s;
    }
}

static void foretell_signal(struct grid_outlook *outlook, const struct grid_outlook_request *request,
                            int signal)
{
    const struct grid_answer *answer = request->answers[signal];
    const struct grid_forecast_request wanted = {
        .actual = &answer->actual,
        .published = &answer->published,
        .published_until_s = request->published_until_s[signal],
        .now_s = (int64_t)floor(request->from_s),
        .until_s = (int64_t)ceil(request->to_s),
        .yearly_mean = NAN,
    };
    size_t count = grid_forecast(&wanted, outlook->periods[signal], outlook->capacity);

    outlook->period_counts[signal] = count < outlook->capacity ? count : outlook->capacity;
}

static bool is_stale(const struct grid_outlook *outlook, const struct grid_answer *answer, int signal)
{
    /* A constant does not grow old, although it is a fall-back. */
    if (answer != NULL && strcmp(answer->actual.kind.provider, grid_provider_constant.name) == 0)
        return false;
    return outlook->period_counts[signal] == 0 || outlook->periods[signal][0].quality >= GRID_FALL_BACK;
}

/* After a value with enough days before it, this much time can be forecast. */
static const double bridged_s = 2 * 86400.0;

/* Returns whether a known value is this recent: then age is not what prevents a longer forecast. */
static bool is_recent(const struct grid_answer *answer, double now_s)
{
    for (size_t i = 0; answer != NULL && i < answer->actual.count; i++) {
        const struct grid_period *period = &answer->actual.periods[i];
        double age_s = now_s - (double)period->end_s;

        if (!isnan(period->value) && age_s >= 0.0 && age_s <= bridged_s)
            return true;
    }
    return false;
}

void grid_outlook_foretell(struct grid_outlook *outlook, const struct grid_outlook_request *request)
{
    const double factors[CARBON_SIGNALS] = {request->objective.per_g, request->objective.per_money};

    outlook->stale = false;
    outlook->scarce = true;
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        outlook->period_counts[i] = 0;
        if (request->answers[i] != NULL)
            foretell_signal(outlook, request, i);
        if (factors[i] == 0.0 || !is_stale(outlook, request->answers[i], i))
            continue;
        outlook->stale = true;
        outlook->scarce = outlook->scarce && is_recent(request->answers[i], request->from_s);
    }
    outlook->scarce = outlook->scarce && outlook->stale;
    grid_outlook_merge(outlook, &request->objective, request->from_s, request->to_s);
}
