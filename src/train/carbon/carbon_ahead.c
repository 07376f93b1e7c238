/* SPDX-License-Identifier: Apache-2.0 */
#include "train/carbon/carbon_ahead.h"

#include <math.h>

/* Figures of the grid further ahead than this are of no use. */
static const double farthest_s = 60.0 * 86400.0;

enum { DAY_S = 86400, WEEK_S = 7 * DAY_S, FORECAST_LOOKS_BACK_S = (GRID_FORECAST_DAYS + 2) * DAY_S };

void carbon_ahead_deinit(struct carbon_ahead *ahead)
{
    grid_outlook_deinit(&ahead->outlook);
}

/* FNV-1a. */
static uint64_t mix(uint64_t mark, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        mark = (mark ^ at[i]) * 1099511628211u;
    return mark;
}

static uint64_t mix_series(uint64_t mark, const struct grid_series *series, int64_t from_s)
{
    for (size_t i = grid_series_find(series, from_s); i < series->count; i++) {
        const struct grid_period *period = &series->periods[i];

        mark = mix(mark, &period->start_s, sizeof period->start_s);
        mark = mix(mark, &period->end_s, sizeof period->end_s);
        mark = mix(mark, &period->value, sizeof period->value);
    }
    return mix(mark, &series->count, sizeof series->count);
}

bool carbon_ahead_take(struct carbon_ahead *ahead, struct carbon_keeper *keeper, double date_s)
{
    int64_t from_s = ((int64_t)date_s - FORECAST_LOOKS_BACK_S) / DAY_S * DAY_S;
    uint64_t mark = 14695981039346656037u;
    bool changed;

    if (!carbon_keeper_take(keeper, ahead->answers))
        return false;
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (ahead->answers[i] != NULL) {
            mark = mix_series(mark, &ahead->answers[i]->actual, from_s);
            mark = mix_series(mark, &ahead->answers[i]->published, from_s);
        }
        mark = mix(mark, &i, sizeof i);
    }
    changed = mark != ahead->mark;
    ahead->mark = mark;
    return changed;
}

void carbon_ahead_look(struct carbon_ahead *ahead, const struct carbon_objective *objective, double date_s,
                       double share, struct carbon_question *question)
{
    const struct grid_outlook_request request = {
        .answers = {ahead->answers[CARBON_INTENSITY], ahead->answers[CARBON_PRICE]},
        .published_until_s = {INT64_MAX, INT64_MAX},
        .objective = *objective,
        .from_s = date_s,
        .to_s = date_s + fmin(question->time_s / share, farthest_s),
    };
    size_t capacity;

    if (!(question->time_s > 0.0))
        return;
    capacity = grid_outlook_capacity(&request);
    if (capacity > ahead->outlook.capacity) {
        grid_outlook_deinit(&ahead->outlook);
        if (grid_outlook_init(&ahead->outlook, capacity, NULL) < 0)
            return; /* nothing is known of the grid */
    }
    grid_outlook_foretell(&ahead->outlook, &request);
    for (size_t i = 0; i < ahead->outlook.count; i++)
        ahead->outlook.spans[i].duration_s *= share;
    question->outlook = ahead->outlook.spans;
    question->outlook_count = ahead->outlook.count;
    question->stale = ahead->outlook.stale;
    question->scarce = ahead->outlook.scarce;
}

double carbon_ahead_intensity(const struct carbon_ahead *ahead, double date_s)
{
    const struct grid_outlook *outlook = &ahead->outlook;
    const struct grid_answer *answer = ahead->answers[CARBON_INTENSITY];
    const struct grid_period *period;
    int64_t now_s = (int64_t)date_s;

    for (size_t i = 0; i < outlook->period_counts[CARBON_INTENSITY]; i++) {
        period = &outlook->periods[CARBON_INTENSITY][i];
        if (period->start_s <= now_s && now_s < period->end_s)
            return period->value;
    }
    period = answer != NULL ? grid_series_at(&answer->published, now_s) : NULL;
    return period != NULL ? period->value : NAN;
}

double carbon_ahead_reference(const struct carbon_ahead *ahead, int signal, double date_s)
{
    const struct grid_answer *answer = ahead->answers[signal];
    double coverage;

    if (answer == NULL)
        return NAN;
    return grid_series_mean(&answer->actual, (int64_t)date_s - WEEK_S, (int64_t)date_s, &coverage);
}
