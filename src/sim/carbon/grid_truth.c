/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/grid_truth.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

enum { DAY_S = 86400, PERIODS_MAX = 1 << 21 };

struct filling {
    struct grid_truth truth;
    size_t capacity;
    int64_t step_s;
    const struct grid_answer *answer;
};

static int add(struct filling *filling, int64_t start_s, int64_t end_s, double value,
               struct fly_error *out_error)
{
    struct grid_truth *truth = &filling->truth;
    struct truth_period *periods;

    if (truth->count == PERIODS_MAX)
        return error_set(out_error, FLY_ELIMIT, "the grid's record is longer than %d periods", PERIODS_MAX);
    periods = array_grow(truth->periods, truth->count, &filling->capacity, sizeof periods[0]);
    if (periods == NULL)
        return error_no_memory(out_error);
    truth->periods = periods;
    truth->periods[truth->count++] = (struct truth_period){start_s, end_s, value, !isnan(value)};
    return 0;
}

/* Fills a time without record, in steps of the usual length. */
static int add_gap(struct filling *filling, int64_t start_s, int64_t end_s, struct fly_error *out_error)
{
    int code = 0;

    for (; code == 0 && start_s < end_s; start_s += filling->step_s) {
        int64_t until_s = start_s + filling->step_s < end_s ? start_s + filling->step_s : end_s;

        code = add(filling, start_s, until_s, NAN, out_error);
    }
    return code;
}

/* Returns the value on the line between the known neighbours, or the one neighbour that is known. */
static double between(const struct grid_truth *truth, size_t at)
{
    size_t before = at, after = at;
    double share;

    while (before > 0 && !truth->periods[before].known)
        before--;
    while (after + 1 < truth->count && !truth->periods[after].known)
        after++;
    if (!truth->periods[before].known)
        before = after;
    if (!truth->periods[after].known)
        after = before;
    if (after == before)
        return truth->periods[before].value;
    share = (double)(truth->periods[at].start_s - truth->periods[before].start_s) /
            (double)(truth->periods[after].start_s - truth->periods[before].start_s);
    return truth->periods[before].value +
           share * (truth->periods[after].value - truth->periods[before].value);
}

static void fill(struct filling *filling, int64_t last_s)
{
    struct grid_truth *truth = &filling->truth;

    for (size_t i = 0; i < truth->count; i++) {
        struct truth_period *period = &truth->periods[i];
        const struct grid_period *said = grid_series_at(&filling->answer->published, period->start_s);

        if (period->known)
            continue;
        if (said != NULL && !isnan(said->value))
            period->value = said->value;
        else if (period->start_s >= last_s)
            period->value = truth->periods[grid_truth_find(truth, (double)period->start_s - DAY_S)].value;
        else
            period->value = between(truth, i);
    }
}

int grid_truth_init(struct grid_truth *truth, const struct grid_answer *answer, int64_t beyond_s,
                    const char *name, struct fly_error *out_error)
{
    const struct grid_series *series =
        grid_series_has_value(&answer->actual) ? &answer->actual : &answer->published;
    struct filling filling = {.answer = answer, .step_s = grid_series_step(series)};
    int64_t end_s = 0;
    int code = 0;

    if (!grid_series_has_value(series))
        return error_set(out_error, FLY_EDATA, "%s: not one period has a value", name);
    for (size_t i = 0; i < series->count && code == 0; i++) {
        const struct grid_period *period = &series->periods[i];

        if (i > 0)
            code = add_gap(&filling, end_s, period->start_s, out_error);
        if (code == 0)
            code = add(&filling, period->start_s, period->end_s,
                       series == &answer->actual ? period->value : NAN, out_error);
        end_s = period->end_s;
    }
    if (code == 0)
        code = add_gap(&filling, end_s, end_s + beyond_s, out_error);
    if (code == 0) {
        fill(&filling, end_s);
        *truth = filling.truth;
    } else {
        grid_truth_deinit(&filling.truth);
    }
    return code;
}

void grid_truth_deinit(struct grid_truth *truth)
{
    free(truth->periods);
    *truth = (struct grid_truth){0};
}

size_t grid_truth_find(const struct grid_truth *truth, double time_s)
{
    size_t low = 0, high = truth->count - 1;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((double)truth->periods[middle].end_s <= time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
