/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_statement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "model/units.h"

/* ---- the run at another limit ---- */

/*
 * Estimates a run's slices as they would have been at one power limit throughout, from the measured profile,
 * as carbon_statement.h explains. Value types; pure.
 */
struct carbon_replay {
    struct carbon_profile bare;  /* power of the GPUs alone */
    struct carbon_profile whole; /* power with the rest of the machine: chooses the best single limit */
    double step_s;               /* at the fastest limit */
};

/* One slice in one of the ways to run. */
struct statement_stretch {
    double start_s, end_s; /* since 1970; equal for a pause that is left out */
    double time_share;     /* its time over that of the run's slice; the host's energy grows with it */
    double energy_j[STATEMENT_ALL]; /* of each part but the sum; NAN: not known */
};

/* The limit that was set may differ this much from the one asked for. */
static const double limit_near_w = 0.5;

/* Steps are counted in lots of some seconds. */
static const double told_within_s = 30.0;

/*
 * Takes the ledger's profile. Returns FLY_EUSAGE when it has no points or is malformed, FLY_ELIMIT when it
 * has too many.
 */
static int carbon_replay_init(struct carbon_replay *replay, const struct ledger_content *ledger,
                              struct fly_error *out_error)
{
    const struct carbon_surroundings none = {0.0, 1.0};
    struct carbon_surroundings stated = ledger->head.surroundings;
    int code = carbon_profile_init(&replay->bare, ledger->points, ledger->point_count, &none, out_error);

    if (!(stated.pue >= 1.0))
        stated.pue = 1.0;
    if (code == 0)
        code = carbon_profile_init(&replay->whole, ledger->points, ledger->point_count, &stated, out_error);
    replay->step_s = INFINITY;
    for (size_t i = 0; i < ledger->point_count; i++)
        replay->step_s = fmin(replay->step_s, ledger->points[i].time_s);
    return code;
}

/*
 * The profile's point at a limit, or on the line between two points; false when the profile does not cover
 * it.
 */
static bool carbon_replay_point(const struct carbon_replay *replay, double limit_w,
                                struct carbon_point *out_point)
{
    const struct carbon_point *points = replay->bare.points;
    size_t count = replay->bare.count;

    for (size_t i = 0; i < count; i++) {
        if (fabs(points[i].limit_w - limit_w) <= limit_near_w) {
            *out_point = points[i];
            return true;
        }
    }
    for (size_t i = 1; i < count; i++) {
        const struct carbon_point *low = &points[i - 1], *high = &points[i];
        double share = (limit_w - low->limit_w) / (high->limit_w - low->limit_w);

        if (!(share > 0.0 && share < 1.0))
            continue;
        *out_point = (struct carbon_point){
            .limit_w = limit_w,
            .power_w = low->power_w + share * (high->power_w - low->power_w),
            .rate = low->rate + share * (high->rate - low->rate),
        };
        return true;
    }
    return false;
}

/* Whether the slice is work at a limit of the profile; `counted`: steps were counted. */
static bool carbon_replay_covers(const struct carbon_replay *replay, const struct energy_slice *slice,
                                 bool counted, struct carbon_point *out_point)
{
    if (!carbon_replay_point(replay, slice->limit_w, out_point))
        return false;
    /*
     * No step began in a slice that has room for two and in which they would have been told: evaluating or
     * waiting.
     */
    return !counted || slice->steps > 0.0 ||
           slice->end_s - slice->start_s < fmax(told_within_s, 2.0 * replay->step_s / out_point->rate);
}

/*
 * The slice as it would have been at that point, whose power is that of the GPUs alone. `shift_s` is how much
 * later the slice starts; the extra time that it takes is added.
 */
static struct statement_stretch carbon_replay_slice(const struct carbon_replay *replay,
                                                    const struct energy_slice *slice, bool counted,
                                                    const struct carbon_point *to, double *shift_s)
{
    double time_s = slice->end_s - slice->start_s;
    struct statement_stretch made = {.start_s = slice->start_s + *shift_s, .time_share = 1.0};
    struct carbon_point from;

    if (slice->limit_w == 0.0) {
        made.end_s = made.start_s;
        made.energy_j[STATEMENT_GPUS] = 0.0;
        made.time_share = 0.0;
        *shift_s -= time_s;
        return made;
    }
    made.end_s = slice->end_s + *shift_s;
    made.energy_j[STATEMENT_GPUS] = slice->gpu_j;
    if (carbon_replay_covers(replay, slice, counted, &from)) {
        double ratio = from.rate / to->rate;

        made.energy_j[STATEMENT_GPUS] *= ratio * to->power_w / from.power_w;
        made.time_share = ratio;
        *shift_s += time_s * (ratio - 1.0);
        made.end_s = made.start_s + time_s * ratio;
    }
    return made;
}

/*
 * Finds the best single limit under the bound that the ledger states, as an index into `bare.points`, and
 * that bound.
 */
static size_t carbon_replay_static(const struct carbon_replay *replay, const struct ledger_content *ledger,
                                   bool counted, double *out_bound)
{
    const struct ledger_head *head = &ledger->head;
    double work_s = 0.0, other_s = 0.0, steps = 0.0, given_s;
    struct carbon_point at;

    *out_bound = isfinite(head->max_slowdown) && head->max_slowdown >= 1.0 ? head->max_slowdown
                                                                           : carbon_usual_slowdown;
    for (size_t i = 0; i < ledger->slice_count; i++) {
        const struct energy_slice *slice = &ledger->slices[i];
        double time_s = slice->end_s - slice->start_s;

        if (slice->limit_w > 0.0 && carbon_replay_covers(replay, slice, counted, &at))
            work_s += time_s * at.rate;
        else if (slice->limit_w != 0.0)
            other_s += time_s;
        steps += slice->steps;
    }
    if (head->finish_by_s > 0 && ledger->slice_count > 0 && work_s > 0.0) {
        /* All of the training must be done by then, not only what is done so far. */
        double whole = steps > 0.0 && (double)head->steps > steps ? (double)head->steps / steps : 1.0;

        given_s = (double)head->finish_by_s - ledger->slices[0].start_s - other_s * whole;
        *out_bound = given_s > 0.0 ? given_s / (work_s * whole) : 0.0;
    }
    return carbon_profile_static(&replay->whole, 1.0, *out_bound);
}

/* The best constant speed within a bound: a mixture of two limits, and what the GPUs alone draw in it. */
static struct carbon_mix carbon_replay_mix(const struct carbon_replay *replay, double bound)
{
    struct carbon_mix mix = carbon_profile_mix(&replay->whole, 1.0, bound);

    (void)carbon_replay_point(replay, mix.low.limit_w, &mix.low);
    (void)carbon_replay_point(replay, mix.high.limit_w, &mix.high);
    return mix;
}

/* ---- sums ---- */

/* The parts of carbon_statement.c. */

struct statement_maker {
    const struct statement_request *request;
    struct arena *arena;
    struct carbon_statement *statement;
    struct carbon_replay *replay;                        /* NULL: nothing to compare with */
    struct carbon_point targets[STATEMENT_WAYS];         /* of the GPUs alone */
    bool *counted;                                       /* by ledger: whether steps were counted */
    size_t count;                                        /* of the slices in all ledgers */
    struct statement_stretch *stretches[STATEMENT_WAYS]; /* `count` each; NULL: not known */
    struct grid_filler fillers[CARBON_SIGNALS];
    bool filled[CARBON_SIGNALS];
    int64_t from_s, to_s; /* the time for which the grid's figures are needed */
};

/* Sums energy, grams and money of one way to run. */

/* Sums one part of a way; a host that is not counted is left out. */
static void sum_part(const struct statement_maker *maker, enum statement_way way, enum statement_part part,
                     struct grid_account accounts[CARBON_SIGNALS])
{
    struct statement_figures *figures = &maker->statement->ways[way];
    struct grid_account_sum sums[CARBON_SIGNALS];
    double energy_j = 0.0;
    bool any = false;

    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < maker->count; i++) {
        const struct statement_stretch *stretch = &maker->stretches[way][i];
        double part_j = stretch->energy_j[part];

        if (isnan(part_j) || stretch->end_s <= stretch->start_s)
            continue;
        any = true;
        energy_j += part_j;
        for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
            if (maker->filled[signal])
                grid_account_add(&sums[signal], &maker->fillers[signal], stretch->start_s, stretch->end_s,
                                 part_j);
        }
    }
    figures->energy_j[part] = any ? energy_j : NAN;
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        accounts[signal] = grid_account_read(&sums[signal]);
        figures->amount[signal][part] = !maker->filled[signal] ? NAN : accounts[signal].amount;
        if (maker->filled[signal] && any && energy_j == 0.0)
            figures->amount[signal][part] = 0.0;
    }
}

/* Parts that are not counted add nothing; the GPUs are always in the sum. */
static double sum_of_parts(const double parts[STATEMENT_PARTS])
{
    double sum = parts[STATEMENT_GPUS];

    for (int part = STATEMENT_HOST; part < STATEMENT_ALL; part++)
        sum += isnan(parts[part]) ? 0.0 : parts[part];
    return sum;
}

/* Sums the figures of one way, whose stretches are known. */
static void statement_sum(const struct statement_maker *maker, enum statement_way way)
{
    struct statement_figures *figures = &maker->statement->ways[way];
    struct grid_account accounts[STATEMENT_ALL][CARBON_SIGNALS];

    for (int part = 0; part < STATEMENT_ALL; part++)
        sum_part(maker, way, (enum statement_part)part, accounts[part]);
    figures->energy_j[STATEMENT_ALL] = sum_of_parts(figures->energy_j);
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        double all_j = 0.0;

        figures->amount[signal][STATEMENT_ALL] = sum_of_parts(figures->amount[signal]);
        for (int part = 0; part < STATEMENT_ALL; part++)
            all_j += accounts[part][signal].all_j;
        for (int quality = 0; quality < GRID_QUALITY_COUNT && all_j > 0.0; quality++) {
            for (int part = 0; part < STATEMENT_ALL; part++)
                figures->share[signal][quality] += accounts[part][signal].energy_j[quality] / all_j;
        }
        if (all_j > 0.0 || maker->filled[signal])
            continue;
        figures->share[signal][GRID_UNKNOWN] = 1.0;
    }
}

/* ---- periods ---- */

/* Cuts a run at the borders of the grid's periods, as tables and pictures show it. */

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

/* Cuts the run at the borders of the grid's periods. */
static int statement_periods_make(struct statement_maker *maker, struct fly_error *out_error)
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

/* ---- the statement ---- */

enum { MEMORY_MAX = 1 << 30 };

/* Earlier dates mean that the machine's clock was not set yet. */
static const double clock_from_s = 946684800.0; /* 2000-01-01 */
static const double span_most_s = 10.0 * 366 * 86400;
static const double share_slack = 1e-9;

const char *statement_way_name(enum statement_way way)
{
    static const char *const names[] = {"as run", "highest limit", "best single limit", "best mixture"};

    return names[way];
}

const char *statement_part_name(enum statement_part part)
{
    static const char *const names[] = {"GPUs", "host", "PUE", "all"};

    return names[part];
}

/* The energy of the ledger's host within a slice, as run. */
static double host_of(const struct ledger_head *head, const struct energy_slice *slice)
{
    if (head->surroundings.host_w > 0.0)
        return slice->limit_w == 0.0 ? 0.0 : head->surroundings.host_w * (slice->end_s - slice->start_s);
    return slice->host_j;
}

static double pue_of(const struct ledger_head *head)
{
    return head->surroundings.pue > 1.0 ? head->surroundings.pue : 1.0;
}

/* The value as part of a sum. */
static double known(double energy_j)
{
    return isnan(energy_j) ? 0.0 : energy_j;
}

/* Adds what the GPUs' energy brings with it: that of the host, and of the site. */
static void add_parts(const struct ledger_head *head, const struct energy_slice *slice,
                      struct statement_stretch *stretch)
{
    double gpu_j = stretch->energy_j[STATEMENT_GPUS], host_j = host_of(head, slice) * stretch->time_share;

    stretch->energy_j[STATEMENT_HOST] = host_j;
    stretch->energy_j[STATEMENT_PUE] =
        isnan(gpu_j) && isnan(host_j) ? NAN : (known(gpu_j) + known(host_j)) * (pue_of(head) - 1.0);
}

/* Finds the first profile that a ledger has. */
static int find_profile(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    const struct ledger_content *ledger = NULL;
    const struct carbon_profile *bare;
    int code;

    for (size_t i = 0; i < request->ledger_count && ledger == NULL; i++) {
        if (request->ledgers[i].point_count > 0)
            ledger = &request->ledgers[i];
    }
    if (ledger == NULL) {
        snprintf(maker->statement->missing, STATEMENT_TEXT_MAX, "no power profile was measured");
        return 0;
    }
    maker->replay = arena_alloc(maker->arena, 1, sizeof *maker->replay);
    if (maker->replay == NULL)
        return error_no_memory(out_error);
    code = carbon_replay_init(maker->replay, ledger, out_error);
    if (code < 0)
        return code;
    bare = &maker->replay->bare;
    maker->targets[STATEMENT_HIGHEST] = bare->points[bare->count - 1];
    maker->targets[STATEMENT_STATIC] = bare->points[carbon_replay_static(
        maker->replay, ledger, maker->counted[ledger - request->ledgers], &maker->statement->bound)];
    maker->statement->mix = carbon_replay_mix(maker->replay, maker->statement->bound);
    maker->targets[STATEMENT_MIX] = carbon_mix_point(&maker->statement->mix);
    return 0;
}

/* Runs one way, slice by slice. */
static int run_way(struct statement_maker *maker, enum statement_way way, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    struct statement_stretch *stretches = arena_alloc(maker->arena, maker->count, sizeof stretches[0]);
    struct statement_figures *figures = &maker->statement->ways[way];
    size_t count = 0;

    if (stretches == NULL)
        return error_no_memory(out_error);
    figures->start_s = INFINITY;
    figures->end_s = -INFINITY;
    for (size_t i = 0; i < request->ledger_count; i++) {
        const struct ledger_content *ledger = &request->ledgers[i];
        double shift_s = 0.0, time_s = 0.0;

        for (size_t j = 0; j < ledger->slice_count; j++) {
            const struct energy_slice *slice = &ledger->slices[j];
            struct statement_stretch at = {slice->start_s, slice->end_s, 1.0, {slice->gpu_j}};
            double length_s;

            if (way != STATEMENT_AS_RUN)
                at = carbon_replay_slice(maker->replay, slice, maker->counted[i], &maker->targets[way],
                                         &shift_s);
            length_s = (slice->end_s - slice->start_s) * at.time_share;
            add_parts(&ledger->head, slice, &at);
            stretches[count++] = at;
            time_s += length_s;
            figures->unmeasured_s += isnan(at.energy_j[STATEMENT_GPUS]) ? length_s : 0.0;
            figures->start_s = fmin(figures->start_s, at.start_s);
            figures->end_s = fmax(figures->end_s, at.end_s);
        }
        figures->time_s = fmax(figures->time_s, time_s);
    }
    figures->known = true;
    figures->limit_w = way == STATEMENT_AS_RUN ? NAN : maker->targets[way].limit_w;
    maker->stretches[way] = stretches;
    return 0;
}

/* Finds the share that the profile covers, and how much the run differed from it. */
static void find_share(struct statement_maker *maker)
{
    const struct statement_request *request = maker->request;
    double all_j = 0.0, covered_j = 0.0, modelled_j = 0.0;
    struct carbon_point at;

    for (size_t i = 0; i < request->ledger_count; i++) {
        for (size_t j = 0; j < request->ledgers[i].slice_count; j++) {
            const struct energy_slice *slice = &request->ledgers[i].slices[j];

            if (isnan(slice->gpu_j))
                continue;
            all_j += slice->gpu_j;
            if (maker->replay == NULL || !carbon_replay_covers(maker->replay, slice, maker->counted[i], &at))
                continue;
            covered_j += slice->gpu_j;
            /* A profile's power is that of all ranks together. */
            modelled_j += at.power_w * (slice->end_s - slice->start_s) / (double)request->ledger_count;
        }
    }
    maker->statement->modelled_share = all_j > 0.0 ? covered_j / all_j : 0.0;
    maker->statement->measured_per_modelled = modelled_j > 0.0 ? covered_j / modelled_j : NAN;
    if (maker->replay == NULL || covered_j > 0.0)
        return;
    snprintf(maker->statement->missing, STATEMENT_TEXT_MAX,
             "none of the energy was used under a limit of the power profile");
    maker->replay = NULL;
}

static int find_facts(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    struct carbon_statement *statement = maker->statement;
    double last_w = NAN;

    maker->counted = arena_alloc(maker->arena, request->ledger_count + 1, sizeof maker->counted[0]);
    if (maker->counted == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < request->ledger_count; i++) {
        const struct ledger_content *ledger = &request->ledgers[i];

        maker->count += ledger->slice_count;
        statement->gpus += ledger->head.gpus;
        statement->torn |= ledger->torn;
        statement->pue = fmax(statement->pue, pue_of(&ledger->head));
        if (ledger->head.surroundings.host_w > 0.0)
            statement->host = STATEMENT_HOST_STATED;
        for (size_t j = 0; j < ledger->slice_count; j++) {
            const struct energy_slice *slice = &ledger->slices[j];

            maker->counted[i] |= slice->steps > 0.0;
            if (statement->host == STATEMENT_HOST_LEFT_OUT && !isnan(slice->host_j))
                statement->host = STATEMENT_HOST_MEASURED;
            if (i == 0 && !isnan(slice->limit_w)) {
                statement->changes += !isnan(last_w) && last_w != slice->limit_w;
                last_w = slice->limit_w;
            }
        }
    }
    if (maker->count == 0)
        return error_set(out_error, FLY_EDATA,
                         "the account of the run holds no energy yet; expected at least one slice, which is "
                         "written at the latest after five minutes");
    return 0;
}

static void find_span(struct statement_maker *maker)
{
    double from_s = INFINITY, to_s = -INFINITY;

    for (int way = 0; way < STATEMENT_WAYS; way++) {
        for (size_t i = 0; maker->stretches[way] != NULL && i < maker->count; i++) {
            const struct statement_stretch *stretch = &maker->stretches[way][i];

            if (stretch->start_s >= clock_from_s) {
                from_s = fmin(from_s, stretch->start_s);
                to_s = fmax(to_s, stretch->end_s);
            }
        }
    }
    maker->from_s = isfinite(from_s) ? (int64_t)floor(from_s) : 0;
    maker->to_s = isfinite(from_s) ? (int64_t)ceil(to_s) : 0;
}

/* Prepares all that needs no figures of the grid. */
static int prepare(struct statement_maker *maker, struct fly_error *out_error)
{
    int code;

    *maker->statement = (struct carbon_statement){.pue = 1.0, .bound = NAN};
    code = find_facts(maker, out_error);
    if (code < 0)
        return code;
    code = find_profile(maker, out_error);
    if (code == 0)
        find_share(maker);
    for (int way = 0; way < STATEMENT_WAYS && code == 0; way++) {
        if (way == STATEMENT_AS_RUN || maker->replay != NULL)
            code = run_way(maker, (enum statement_way)way, out_error);
    }
    find_span(maker);
    return code;
}

bool carbon_statement_span(const struct statement_request *request, int64_t *out_from_s, int64_t *out_to_s)
{
    struct carbon_statement statement;
    struct arena arena;
    struct statement_maker maker = {.request = request, .arena = &arena, .statement = &statement};
    bool known;

    arena_init(&arena, MEMORY_MAX);
    known = prepare(&maker, NULL) == 0 && maker.to_s > maker.from_s;
    arena_deinit(&arena);
    if (known) {
        *out_from_s = maker.from_s;
        *out_to_s = maker.to_s;
    }
    return known;
}

static void set_unknown(struct statement_figures *figures)
{
    *figures = (struct statement_figures){
        .limit_w = NAN, .start_s = NAN, .end_s = NAN, .time_s = NAN, .unmeasured_s = 0.0};
    for (int part = 0; part < STATEMENT_PARTS; part++) {
        figures->energy_j[part] = NAN;
        for (int signal = 0; signal < CARBON_SIGNALS; signal++)
            figures->amount[signal][part] = NAN;
    }
}

static struct statement_saving saving_of(const struct statement_figures *dearer,
                                         const struct statement_figures *cheaper)
{
    struct statement_saving saving = {NAN, NAN, {NAN, NAN}};

    if (!dearer->known || !cheaper->known)
        return saving;
    saving.energy_j = dearer->energy_j[STATEMENT_ALL] - cheaper->energy_j[STATEMENT_ALL];
    saving.time_s = dearer->time_s - cheaper->time_s;
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (dearer->share[signal][GRID_UNKNOWN] < share_slack &&
            cheaper->share[signal][GRID_UNKNOWN] < share_slack)
            saving.amount[signal] =
                dearer->amount[signal][STATEMENT_ALL] - cheaper->amount[signal][STATEMENT_ALL];
    }
    return saving;
}

static int fill(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    int code = 0;

    if ((double)maker->to_s - (double)maker->from_s > span_most_s)
        return error_set(out_error, FLY_EDATA,
                         "the account's times lie more than ten years apart; the machine's clock was wrong");
    for (int signal = 0; signal < CARBON_SIGNALS && code == 0; signal++) {
        const struct grid_answer *answer = request->answers[signal];

        if ((answer == NULL && isnan(request->yearly_means[signal])) || maker->to_s <= maker->from_s)
            continue;
        maker->statement->kinds[signal] = answer != NULL ? &answer->actual.kind : NULL;
        code = grid_filler_init(&maker->fillers[signal], answer, request->yearly_means[signal], maker->from_s,
                                maker->to_s, out_error);
        maker->filled[signal] = code == 0;
    }
    return code;
}

int carbon_statement_make(const struct statement_request *request, struct arena *arena,
                          struct carbon_statement *out_statement, struct fly_error *out_error)
{
    struct statement_maker maker = {.request = request, .arena = arena, .statement = out_statement};
    struct statement_figures *ways = out_statement->ways;
    int code = prepare(&maker, out_error);

    if (code == 0)
        code = fill(&maker, out_error);
    for (int way = 0; way < STATEMENT_WAYS && code == 0; way++) {
        if (maker.stretches[way] != NULL)
            statement_sum(&maker, (enum statement_way)way);
        else
            set_unknown(&ways[way]);
    }
    if (code == 0) {
        out_statement->saved = saving_of(&ways[STATEMENT_HIGHEST], &ways[STATEMENT_AS_RUN]);
        out_statement->by_limit = saving_of(&ways[STATEMENT_HIGHEST], &ways[STATEMENT_MIX]);
        out_statement->by_grid = saving_of(&ways[STATEMENT_MIX], &ways[STATEMENT_AS_RUN]);
        code = statement_periods_make(&maker, out_error);
    }
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (maker.filled[signal])
            grid_filler_deinit(&maker.fillers[signal]);
    }
    return code;
}
