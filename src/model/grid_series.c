/* SPDX-License-Identifier: Apache-2.0 */
#include "model/grid_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/math/order.h"

static const char *const quality_names[] = {
    [GRID_MEASURED] = "measured",         [GRID_ESTIMATED] = "estimated", [GRID_FORECAST] = "forecast",
    [GRID_OWN_FORECAST] = "own forecast", [GRID_FALL_BACK] = "fall-back", [GRID_UNKNOWN] = "unknown",
};
_Static_assert(sizeof quality_names / sizeof quality_names[0] == GRID_QUALITY_COUNT, "a name for each");

static const char *const signal_names[] = {
    [GRID_SIGNAL_UNKNOWN] = "unknown", [GRID_AVERAGE] = "average", [GRID_MARGINAL] = "marginal"};
_Static_assert(sizeof signal_names / sizeof signal_names[0] == GRID_SIGNAL_COUNT, "a name for each");

static const char *const scope_names[] = {
    [GRID_SCOPE_UNKNOWN] = "unknown", [GRID_DIRECT] = "direct", [GRID_LIFE_CYCLE] = "life cycle"};
_Static_assert(sizeof scope_names / sizeof scope_names[0] == GRID_SCOPE_COUNT, "a name for each");

const char *grid_quality_name(enum grid_quality quality)
{
    return quality_names[quality];
}

const char *grid_signal_name(enum grid_signal signal)
{
    return signal_names[signal];
}

const char *grid_scope_name(enum grid_scope scope)
{
    return scope_names[scope];
}

void grid_series_init(struct grid_series *series, const struct grid_kind *kind, size_t maximum)
{
    *series = (struct grid_series){.kind = *kind, .maximum = maximum};
}

void grid_series_deinit(struct grid_series *series)
{
    free(series->periods);
    *series = (struct grid_series){0};
}

bool grid_kind_equal(const struct grid_kind *a, const struct grid_kind *b)
{
    return a->quantity == b->quantity && a->signal == b->signal && a->scope == b->scope &&
           strcmp(a->provider, b->provider) == 0 && strcmp(a->zone, b->zone) == 0 &&
           strcmp(a->currency, b->currency) == 0;
}

/* Returns NaN for an impossible value, and counts it in the remarks. */
static double checked_value(struct grid_series *series, double value)
{
    bool carbon = series->kind.quantity == GRID_CARBON;
    struct grid_remarks *remarks = &series->remarks;

    if (isnan(value))
        remarks->missing++;
    else if (carbon && value == 0.0)
        remarks->zero++;
    else if (carbon ? value < 0.0 || value > GRID_CARBON_MOST : fabs(value) > GRID_PRICE_MOST)
        remarks->absurd++;
    else
        return value;
    return NAN;
}

int grid_series_add(struct grid_series *series, const struct grid_period *period, struct fly_error *out_error)
{
    struct grid_period added = *period;
    struct grid_period *periods;

    if (period->end_s <= period->start_s)
        return error_set(out_error, FLY_EDATA,
                         "a period of the grid's figures ends at second %lld, which is not after its start",
                         (long long)period->end_s);
    if (series->count >= series->maximum)
        return error_set(out_error, FLY_ELIMIT,
                         "a series of the grid's figures has more than %zu periods; take a part of it",
                         series->maximum);
    periods = array_grow(series->periods, series->count, &series->capacity, sizeof periods[0]);
    if (periods == NULL)
        return error_no_memory(out_error);
    series->periods = periods;
    added.value = checked_value(series, period->value);
    if (isnan(added.value))
        added.quality = GRID_UNKNOWN;
    if (series->count > 0 && added.start_s < series->periods[series->count - 1].start_s)
        series->remarks.unordered++;
    series->periods[series->count++] = added;
    series->settled = false;
    return 0;
}

int grid_series_merge(struct grid_series *series, const struct grid_series *other,
                      struct fly_error *out_error)
{
    int code = 0;

    if (!grid_kind_equal(&series->kind, &other->kind))
        return error_set(out_error, FLY_ECONFLICT,
                         "figures of %s (%s, %s) and of %s (%s, %s) are of two kinds, which are never mixed",
                         series->kind.provider, signal_names[series->kind.signal],
                         scope_names[series->kind.scope], other->kind.provider,
                         signal_names[other->kind.signal], scope_names[other->kind.scope]);
    for (size_t i = 0; i < other->count && code == 0; i++)
        code = grid_series_add(series, &other->periods[i], out_error);
    return code;
}

size_t grid_series_find(const struct grid_series *series, int64_t time_s)
{
    size_t low = 0, high = series->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (series->periods[middle].end_s <= time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct grid_period *grid_series_at(const struct grid_series *series, int64_t time_s)
{
    size_t at = grid_series_find(series, time_s);

    return at < series->count && series->periods[at].start_s <= time_s ? &series->periods[at] : NULL;
}

double grid_series_mean(const struct grid_series *series, int64_t from_s, int64_t to_s, double *out_coverage)
{
    double sum = 0.0, known_s = 0.0;

    for (size_t i = grid_series_find(series, from_s); i < series->count; i++) {
        const struct grid_period *period = &series->periods[i];
        int64_t start_s = period->start_s > from_s ? period->start_s : from_s;
        int64_t end_s = period->end_s < to_s ? period->end_s : to_s;

        if (period->start_s >= to_s)
            break;
        if (isnan(period->value))
            continue;
        sum += period->value * (double)(end_s - start_s);
        known_s += (double)(end_s - start_s);
    }
    *out_coverage = to_s > from_s ? known_s / (double)(to_s - from_s) : 0.0;
    return known_s > 0.0 ? sum / known_s : NAN;
}

int64_t grid_series_step(const struct grid_series *series)
{
    int64_t lengths[64];
    size_t count = series->count < 64 ? series->count : 64;

    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const struct grid_period *period = &series->periods[i * series->count / count];

        lengths[i] = period->end_s - period->start_s;
    }
    qsort(lengths, count, sizeof lengths[0], order_i64);
    return lengths[count / 2];
}

bool grid_series_has_value(const struct grid_series *series)
{
    size_t i = 0;

    while (i < series->count && isnan(series->periods[i].value))
        i++;
    return i < series->count;
}

/* ---- settling ---- */

/*
 * Makes an ordered series out of the periods that providers send. The sweep visits the periods by
 * their start and keeps those that are still running in a heap, with the one that counts on top:
 * O(n log n) however they overlap.
 */

/* A period as it was added. */
struct candidate {
    struct grid_period period;
    size_t number;
};

struct settling {
    struct candidate *candidates; /* sorted by start */
    size_t count;
    struct candidate **heap; /* those that have begun; the one that counts is on top */
    size_t heap_count;
    struct grid_series *out;
};

static int compare_starts(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->period.start_s != b->period.start_s)
        return a->period.start_s < b->period.start_s ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Returns whether `a` counts rather than `b` where they overlap. */
static bool is_above(const struct candidate *a, const struct candidate *b)
{
    int64_t a_s = a->period.end_s - a->period.start_s, b_s = b->period.end_s - b->period.start_s;

    if (isnan(a->period.value) != isnan(b->period.value))
        return isnan(b->period.value);
    if (a->period.issued_s != b->period.issued_s)
        return a->period.issued_s > b->period.issued_s;
    if (a_s != b_s)
        return a_s < b_s;
    return a->number > b->number;
}

static void push(struct settling *settling, struct candidate *candidate)
{
    size_t at = settling->heap_count++;

    while (at > 0 && is_above(candidate, settling->heap[(at - 1) / 2])) {
        settling->heap[at] = settling->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    settling->heap[at] = candidate;
}

static void pop(struct settling *settling)
{
    struct candidate *moved = settling->heap[--settling->heap_count];
    size_t at = 0, child;

    for (; (child = 2 * at + 1) < settling->heap_count; at = child) {
        if (child + 1 < settling->heap_count && is_above(settling->heap[child + 1], settling->heap[child]))
            child++;
        if (is_above(moved, settling->heap[child]))
            break;
        settling->heap[at] = settling->heap[child];
    }
    if (settling->heap_count > 0)
        settling->heap[at] = moved;
}

/* Puts out a piece of a period; extends the last piece if that is of the same period. */
static int put_out(struct settling *settling, const struct candidate *from, int64_t start_s, int64_t end_s,
                   const struct candidate **last, struct fly_error *out_error)
{
    struct grid_series *out = settling->out;
    struct grid_period piece = from->period;
    int code;

    if (*last == from && out->count > 0 && out->periods[out->count - 1].end_s == start_s) {
        out->periods[out->count - 1].end_s = end_s;
        return 0;
    }
    piece.start_s = start_s;
    piece.end_s = end_s;
    code = grid_series_add(out, &piece, out_error);
    *last = from;
    return code;
}

/* Fills the time from the end of the last piece up to `until_s`. */
static int sweep(struct settling *settling, int64_t *time_s, int64_t until_s, const struct candidate **last,
                 struct fly_error *out_error)
{
    int code = 0;

    while (code == 0 && settling->heap_count > 0 && *time_s < until_s) {
        const struct candidate *top = settling->heap[0];
        int64_t end_s = top->period.end_s < until_s ? top->period.end_s : until_s;

        if (end_s > *time_s) {
            code = put_out(settling, top, *time_s, end_s, last, out_error);
            *time_s = end_s;
        }
        if (top->period.end_s <= *time_s)
            pop(settling);
    }
    return code;
}

static int sweep_all(struct settling *settling, struct fly_error *out_error)
{
    const struct candidate *last = NULL;
    int64_t time_s = INT64_MIN;
    int code = 0;

    for (size_t i = 0; i < settling->count && code == 0; i++) {
        struct candidate *next = &settling->candidates[i];

        code = sweep(settling, &time_s, next->period.start_s, &last, out_error);
        time_s = next->period.start_s;
        push(settling, next);
    }
    if (code == 0)
        code = sweep(settling, &time_s, INT64_MAX, &last, out_error);
    return code;
}

/* Counts overlaps between neighbours by start. */
static void count_overlaps(const struct settling *settling, struct grid_remarks *remarks)
{
    int64_t end_s = INT64_MIN;

    for (size_t i = 0; i < settling->count; i++) {
        const struct grid_period *period = &settling->candidates[i].period;

        if (i > 0 && settling->candidates[i - 1].period.start_s == period->start_s &&
            settling->candidates[i - 1].period.end_s == period->end_s)
            remarks->duplicates++;
        else if (period->start_s < end_s)
            remarks->overlapping++;
        end_s = period->end_s > end_s ? period->end_s : end_s;
    }
}

int grid_series_settle(struct grid_series *series, struct fly_error *out_error)
{
    struct grid_series out;
    struct settling settling = {.count = series->count, .out = &out};
    int code = 0;

    settling.candidates = malloc((series->count + 1) * sizeof settling.candidates[0]);
    settling.heap = malloc((series->count + 1) * sizeof(struct candidate *));
    /* Each start and each end may cut a period in two. */
    grid_series_init(&out, &series->kind, 2 * series->maximum);
    if (settling.candidates == NULL || settling.heap == NULL)
        code = error_no_memory(out_error);
    for (size_t i = 0; i < series->count && code == 0; i++)
        settling.candidates[i] = (struct candidate){series->periods[i], i};
    if (code == 0) {
        qsort(settling.candidates, series->count, sizeof settling.candidates[0], compare_starts);
        count_overlaps(&settling, &series->remarks);
        code = sweep_all(&settling, out_error);
    }
    if (code == 0) {
        free(series->periods);
        series->periods = out.periods;
        series->count = out.count;
        series->capacity = out.capacity;
        series->settled = true;
    } else {
        grid_series_deinit(&out);
    }
    free(settling.candidates);
    free(settling.heap);
    return code;
}

void grid_series_count_absent(struct grid_series *series)
{
    int64_t step_s = series->count > 1 ? grid_series_step(series) : 0;

    for (size_t i = 1; i < series->count && step_s > 0; i++) {
        int64_t gap_s = series->periods[i].start_s - series->periods[i - 1].end_s;

        if (gap_s > 0)
            series->remarks.missing += (size_t)((gap_s + step_s - 1) / step_s);
    }
}

void grid_answer_deinit(struct grid_answer *answer)
{
    grid_series_deinit(&answer->actual);
    grid_series_deinit(&answer->published);
}
