/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a run at the borders of the grid's periods, as tables and pictures show it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "model/units.h"
#include "train/account/statement_private.h"

enum { HOUR_S = 3600 };

/* The period between two borders that contains a moment. */
static struct statement_period period_at(const struct statement_maker *maker, double time_s)
{
    const struct statement_figures *run = &maker->statement->ways[STATEMENT_AS_RUN];
    int64_t at_s = (int64_t)floor(time_s);
    struct statement_period made = {.start_s = INT64_MIN, .end_s = INT64_MAX, .limit_w = NAN};
    bool any = false;

    made.first_limit_w = made.last_limit_w = NAN;
    for (int part = 0; part < STATEMENT_PARTS; part++)
        made.energy_j[part] = NAN;
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        const struct grid_period *period =
            maker->filled[signal] ? grid_series_at(&maker->fillers[signal].filled, at_s) : NULL;

        made.value[signal] = made.amount[signal] = NAN;
        made.quality[signal] = GRID_UNKNOWN;
        if (period == NULL)
            continue;
        any = true;
        made.value[signal] = period->value;
        made.quality[signal] = period->quality;
        if (period->start_s > made.start_s)
            made.start_s = period->start_s;
        if (period->end_s < made.end_s)
            made.end_s = period->end_s;
    }
    if (!any) {
        made.start_s = at_s - (at_s % HOUR_S + HOUR_S) % HOUR_S;
        made.end_s = made.start_s + HOUR_S;
    }
    /* The grid's figures reach further than the run, as the other ways to run do. */
    if ((double)made.start_s < run->start_s)
        made.start_s = (int64_t)floor(run->start_s);
    if ((double)made.end_s > run->end_s)
        made.end_s = (int64_t)ceil(run->end_s);
    return made;
}

/* Ordered rows that do not overlap. */
struct rows {
    struct statement_period *list;
    size_t count, capacity;
};

/* The first row that ends after a moment. */
static size_t find_place(const struct rows *rows, double time_s)
{
    size_t low = 0, high = rows->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((double)rows->list[middle].end_s <= time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The row that contains a moment, made if there is none; NULL without memory. */
static struct statement_period *find_row(struct rows *rows, const struct statement_maker *maker,
                                         double time_s)
{
    size_t place = find_place(rows, time_s);
    struct statement_period *grown;

    if (place < rows->count && (double)rows->list[place].start_s <= time_s)
        return &rows->list[place];
    grown = array_grow(rows->list, rows->count, &rows->capacity, sizeof grown[0]);
    if (grown == NULL)
        return NULL;
    rows->list = grown;
    memmove(&rows->list[place + 1], &rows->list[place], (rows->count - place) * sizeof rows->list[0]);
    rows->list[place] = period_at(maker, time_s);
    rows->count++;
    return &rows->list[place];
}

static void add_known(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

/* Adds a slice's part to one row; `share` of the slice lies there. Known parts make up the sums. */
static void add_piece(struct statement_period *row, const struct statement_stretch *stretch, double share,
                      double length_s, bool sums)
{
    double all_j = NAN;

    for (int part = 0; part < STATEMENT_ALL; part++) {
        double part_j = stretch->energy_j[part] * share;

        add_known(&row->energy_j[part], part_j);
        add_known(&all_j, part_j);
    }
    row->time_s += length_s;
    /* As in the totals: when the GPUs' energy is not known anywhere there is no sum. */
    if (isnan(all_j) || !sums)
        return;
    add_known(&row->energy_j[STATEMENT_ALL], all_j);
    for (int signal = 0; signal < CARBON_SIGNALS; signal++)
        add_known(&row->amount[signal], units_kwh_from_j(all_j) * row->value[signal]);
}

static void add_limit(struct statement_period *row, double limit_w, double length_s)
{
    if (isnan(limit_w))
        return;
    if (isnan(row->limit_w))
        row->first_limit_w = row->limit_w = limit_w;
    row->limit_s += length_s;
    row->limit_w += (limit_w - row->limit_w) * length_s / row->limit_s;
    row->last_limit_w = limit_w;
}

/* Adds one slice; limits are those of the first rank alone. */
static int add_slice(struct rows *rows, const struct statement_maker *maker, size_t index,
                     const struct energy_slice *slice, bool first_rank)
{
    const struct statement_stretch *stretch = &maker->stretches[STATEMENT_AS_RUN][index];
    double length_s = stretch->end_s - stretch->start_s, at_s = stretch->start_s;
    bool sums = !isnan(maker->statement->ways[STATEMENT_AS_RUN].energy_j[STATEMENT_GPUS]);

    while (at_s < stretch->end_s) {
        struct statement_period *row = find_row(rows, maker, at_s);
        double until_s, share;

        if (row == NULL)
            return FLY_ENOMEM;
        until_s = fmin(stretch->end_s, (double)row->end_s);
        share = (until_s - at_s) / length_s;
        if (first_rank) {
            add_limit(row, slice->limit_w, until_s - at_s);
            row->steps += slice->steps * share;
        }
        add_piece(row, stretch, share, first_rank ? until_s - at_s : 0.0, sums);
        at_s = until_s;
    }
    return 0;
}

int statement_periods_make(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    struct rows rows = {.list = NULL};
    struct statement_period *kept = NULL;
    size_t index = 0;
    int code = 0;

    for (size_t i = 0; i < request->ledger_count && code == 0; i++) {
        for (size_t j = 0; j < request->ledgers[i].slice_count && code == 0; j++)
            code = add_slice(&rows, maker, index++, &request->ledgers[i].slices[j], i == 0);
    }
    if (code == 0) {
        kept = arena_alloc(maker->arena, rows.count + 1, sizeof kept[0]);
        code = kept == NULL ? FLY_ENOMEM : 0;
    }
    for (size_t i = 0; i < rows.count && code == 0; i++)
        kept[i] = rows.list[i];
    free(rows.list);
    if (code < 0)
        return error_no_memory(out_error);
    maker->statement->periods = kept;
    maker->statement->period_count = rows.count;
    return 0;
}
