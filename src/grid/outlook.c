/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/outlook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grid/provider.h"

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

static void foretell(struct grid_outlook *outlook, const struct grid_outlook_request *request, int signal)
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
            foretell(outlook, request, i);
        if (factors[i] == 0.0 || !is_stale(outlook, request->answers[i], i))
            continue;
        outlook->stale = true;
        outlook->scarce = outlook->scarce && is_recent(request->answers[i], request->from_s);
    }
    outlook->scarce = outlook->scarce && outlook->stale;
    grid_outlook_merge(outlook, &request->objective, request->from_s, request->to_s);
}
