/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/carbon_outlook.h"

#include <math.h>

/* Returns room for the borders of all figures up to the deadline, from any start within a period. */
size_t carbon_outlook_capacity(const struct carbon_world *world)
{
    size_t capacity = 4;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_truth *truth = world->truths[i];
        size_t most = 0, first = 0;

        /* The number of periods is greatest where they are shortest. */
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

/* Asks for the published forecasts that are known by then: that of the current period, at least. */
static struct grid_outlook_request ask(const struct carbon_world *world, double from_s, double to_s)
{
    struct grid_outlook_request request = {.objective = world->objective, .from_s = from_s, .to_s = to_s};

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_truth *truth = world->truths[i];

        request.answers[i] = world->answers[i];
        if (truth != NULL)
            request.published_until_s[i] = (int64_t)fmax(
                (double)truth->periods[grid_truth_find(truth, from_s)].end_s, from_s + world->known_ahead_s);
    }
    return request;
}

void carbon_outlook_foretell(struct carbon_worker *worker, int64_t start_s, double now_s)
{
    const struct grid_outlook_request request =
        ask(worker->world, (double)start_s + now_s, (double)start_s + worker->world->bound_s);

    grid_outlook_foretell(&worker->outlook, &request);
}

void carbon_outlook_know(struct carbon_worker *worker, int64_t start_s)
{
    struct grid_outlook *outlook = &worker->outlook;
    double to_s = (double)start_s + worker->world->bound_s;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_truth *truth = worker->world->truths[i];
        size_t at = truth == NULL ? 0 : grid_truth_find(truth, (double)start_s), count = 0;

        for (; truth != NULL && at < truth->count && (double)truth->periods[at].start_s < to_s &&
               count < outlook->capacity;
             at++)
            outlook->periods[i][count++] = (struct grid_period){.start_s = truth->periods[at].start_s,
                                                                .end_s = truth->periods[at].end_s,
                                                                .value = truth->periods[at].value};
        outlook->period_counts[i] = count;
    }
    grid_outlook_merge(outlook, &worker->world->objective, (double)start_s, to_s);
}

double carbon_outlook_next(struct carbon_worker *worker, int64_t start_s, double now_s)
{
    double from_s = (double)start_s + now_s;
    struct grid_outlook_request request = ask(worker->world, from_s, from_s + 1.0);

    request.answers[CARBON_PRICE] = NULL;
    grid_outlook_foretell(&worker->outlook, &request);
    return worker->outlook.period_counts[CARBON_INTENSITY] > 0
               ? worker->outlook.periods[CARBON_INTENSITY][0].value
               : NAN;
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
