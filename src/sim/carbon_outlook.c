/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon_outlook.h"

#include <math.h>

#include "grid/forecast.h"

/* A list of periods to walk along, as one of the figures of a kWh. */
struct walk {
    const struct grid_period *forecast;
    const struct truth_period *truth;
    size_t count, at;
};

/* Room for the borders of all figures up to the deadline, from a start within a period. */
size_t carbon_outlook_capacity(const struct carbon_world *world)
{
    size_t capacity = 4;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_truth *truth = world->truths[i];
        size_t most = 0, first = 0;

        /* The shortest periods stand where most of them fit in. */
        for (size_t last = 0; truth != NULL && last < truth->count; last++) {
            while ((double)(truth->periods[last].start_s - truth->periods[first].end_s) > world->bound_s)
                first++;
            most = last - first + 1 > most ? last - first + 1 : most;
        }
        if (world->answers[i] != NULL && truth != NULL) {
            size_t steps = (size_t)(world->bound_s / (double)grid_series_step(&world->answers[i]->actual));

            most = most > steps ? most : steps;
        }
        capacity += most + 4;
    }
    return capacity;
}

static int64_t end_of(const struct walk *walk)
{
    return walk->forecast != NULL ? walk->forecast[walk->at].end_s : walk->truth[walk->at].end_s;
}

static double value_of(const struct walk *walk)
{
    return walk->forecast != NULL ? walk->forecast[walk->at].value : walk->truth[walk->at].value;
}

/* Spans between the borders of all figures from `from_s` to `to_s`, since 1970. */
static size_t merge(struct carbon_worker *worker, struct walk *walks, double from_s, double to_s)
{
    const struct carbon_objective *objective = &worker->world->objective;
    const double factors[CARBON_SIGNALS] = {objective->per_g, objective->per_money};
    size_t count = 0;

    while (from_s < to_s && count < worker->capacity) {
        double end_s = to_s, weight = objective->per_kwh;

        for (int i = 0; i < CARBON_SIGNALS; i++) {
            struct walk *walk = &walks[i];

            while (walk->at < walk->count && (double)end_of(walk) <= from_s)
                walk->at++;
            if (walk->at >= walk->count) {
                weight += factors[i] != 0.0 ? NAN : 0.0;
                continue;
            }
            end_s = fmin(end_s, (double)end_of(walk));
            weight += factors[i] != 0.0 ? factors[i] * value_of(walk) : 0.0;
        }
        worker->spans[count++] = (struct carbon_span){end_s - from_s, weight};
        from_s = end_s;
    }
    return count;
}

static size_t foretell(struct carbon_worker *worker, int signal, double now_s, double until_s)
{
    const struct grid_answer *answer = worker->world->answers[signal];
    const struct grid_truth *truth = worker->world->truths[signal];
    struct grid_forecast_request request = {
        .actual = &answer->actual,
        .published = &answer->published,
        .now_s = (int64_t)floor(now_s),
        .until_s = (int64_t)ceil(until_s),
        .yearly_mean = NAN,
    };
    size_t count;

    /* A forecast that was published a period ahead: that of the current one. */
    request.published_until_s = truth->periods[grid_truth_find(truth, now_s)].end_s;
    count = grid_forecast(&request, worker->forecasts[signal], worker->capacity);
    return count < worker->capacity ? count : worker->capacity;
}

size_t carbon_outlook_foretell(struct carbon_worker *worker, int64_t start_s, double now_s)
{
    double from_s = (double)start_s + now_s, to_s = (double)start_s + worker->world->bound_s;
    struct walk walks[CARBON_SIGNALS] = {{0}};

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (worker->world->answers[i] != NULL)
            walks[i] =
                (struct walk){.forecast = worker->forecasts[i], .count = foretell(worker, i, from_s, to_s)};
    }
    return merge(worker, walks, from_s, to_s);
}

size_t carbon_outlook_know(struct carbon_worker *worker, int64_t start_s)
{
    double to_s = (double)start_s + worker->world->bound_s;
    struct walk walks[CARBON_SIGNALS] = {{0}};

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_truth *truth = worker->world->truths[i];

        if (truth != NULL)
            walks[i] = (struct walk){.truth = truth->periods,
                                     .count = truth->count,
                                     .at = grid_truth_find(truth, (double)start_s)};
    }
    return merge(worker, walks, (double)start_s, to_s);
}

double carbon_outlook_next(struct carbon_worker *worker, int64_t start_s, double now_s)
{
    double from_s = (double)start_s + now_s;

    if (worker->world->answers[CARBON_INTENSITY] == NULL ||
        foretell(worker, CARBON_INTENSITY, from_s, from_s + 1.0) == 0)
        return NAN;
    return worker->forecasts[CARBON_INTENSITY][0].value;
}

double carbon_outlook_most(const struct grid_answer *answer, int64_t now_s, int64_t back_s)
{
    const struct grid_series *series = &answer->actual;
    double most = 1.0;

    for (size_t i = grid_series_find(series, now_s - back_s); i < series->count; i++) {
        if (series->periods[i].end_s > now_s)
            break;
        if (series->periods[i].value > most)
            most = series->periods[i].value;
    }
    return most;
}
