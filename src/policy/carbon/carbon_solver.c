/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_solver.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/units.h"
#include "policy/radix_order.h"

/* Which of a solution's hulls a span uses. */
enum { HULL_POSITIVE, HULL_NEGATIVE, HULL_LAST };

/*
 * Sides with even numbers hold weights from 0 on, those with odd numbers negative weights. The
 * first two hold the spans before every possible end, if those are many.
 */
enum { SIDE_CORE, SIDE_REST = 2, SIDE_COUNT = 4, CORE_LEAST = 4096 };

/* Rounding may keep the last bit of work out of reach. */
static const double work_slack = 1e-12;

/* The spans before the end whose weights have one sign, by ascending size of their weights. */
struct carbon_side {
    size_t count;
    double *weights;    /* sizes of the weights */
    double *duration_s; /* sum of the first i of them */
    double *weighted_s; /* sum of weight * duration, with its sign */
};

/* The problem for one given span of the end. */
struct end_problem {
    const struct carbon_hull *hulls;
    const struct carbon_side *sides;
    double last_s;
    double last_weight;
};

struct amount {
    double work_s;
    double cost; /* in weight * W * s, until it is returned */
};

int carbon_workspace_init(struct carbon_workspace *workspace, size_t capacity, struct fly_error *out_error)
{
    struct carbon_workspace made = {.capacity = capacity};
    size_t sums = capacity + 1;
    double *doubles;

    made.sides = calloc(SIDE_COUNT, sizeof made.sides[0]);
    made.keys = malloc(2 * (capacity + 1) * sizeof made.keys[0]);
    made.order = malloc((capacity + 1) * sizeof made.order[0]);
    made.by_size = malloc((capacity + 1) * sizeof made.by_size[0]);
    made.sorted = malloc((capacity + 1) * sizeof made.sorted[0]);
    made.memory = doubles = malloc(3 * SIDE_COUNT * sums * sizeof doubles[0]);
    if (made.sides == NULL || made.keys == NULL || made.order == NULL || made.by_size == NULL ||
        made.sorted == NULL || doubles == NULL) {
        carbon_workspace_deinit(&made);
        return error_no_memory(out_error);
    }
    for (int i = 0; i < SIDE_COUNT; i++) {
        made.sides[i].weights = doubles + (size_t)(3 * i) * sums;
        made.sides[i].duration_s = doubles + (size_t)(3 * i + 1) * sums;
        made.sides[i].weighted_s = doubles + (size_t)(3 * i + 2) * sums;
    }
    *workspace = made;
    return 0;
}

void carbon_workspace_deinit(struct carbon_workspace *workspace)
{
    free(workspace->sides);
    free(workspace->keys);
    free(workspace->order);
    free(workspace->by_size);
    free(workspace->sorted);
    free(workspace->memory);
    *workspace = (struct carbon_workspace){0};
}

/* Returns the size of an item's price; every comparison uses this same product. */
static double key_size(double weight_size, double slope)
{
    return weight_size * fabs(slope);
}

static double item_price(double weight, double slope)
{
    return (weight < 0.0) == (slope < 0.0) ? key_size(fabs(weight), slope) : -key_size(fabs(weight), slope);
}

/* Counts a side's weights whose items have a size below `size` or, if `with` is set, up to it. */
static size_t count_below(const struct carbon_side *side, double slope, double size, bool with)
{
    size_t low = 0, high = side->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        double key = key_size(side->weights[middle], slope);

        if (with ? key <= size : key < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_segment(const struct carbon_hull *hull, size_t segment, double duration_s, double weighted_s,
                        struct amount *amount)
{
    const struct carbon_point *point = &hull->points[segment];

    amount->work_s += (point[1].rate - point[0].rate) * duration_s;
    amount->cost += (point[1].power_w - point[0].power_w) * weighted_s;
}

/*
 * Adds the items of one segment up to a price: those with the smallest weights or, if a greater
 * weight makes them cheaper, with the largest.
 */
static void add_side_segment(const struct carbon_side *side, const struct carbon_hull *hull, size_t segment,
                             bool negative, double price, struct amount *amount)
{
    double slope = carbon_hull_slope(hull, segment), all_s = side->duration_s[side->count];
    double all_weighted_s = side->weighted_s[side->count];
    size_t count;

    if ((slope < 0.0) == negative) {
        count = count_below(side, slope, price, true);
        add_segment(hull, segment, side->duration_s[count], side->weighted_s[count], amount);
    } else {
        count = count_below(side, slope, -price, false);
        add_segment(hull, segment, all_s - side->duration_s[count], all_weighted_s - side->weighted_s[count],
                    amount);
    }
}

/* Returns work and cost with all items up to a price. */
static struct amount taken_at(const struct end_problem *problem, double price)
{
    const struct carbon_hull *last = &problem->hulls[HULL_LAST];
    double last_weighted_s = problem->last_s * problem->last_weight;
    struct amount amount = {last->points[0].rate * problem->last_s,
                            last->points[0].power_w * last_weighted_s};

    for (int i = 0; i < SIDE_COUNT; i++) {
        const struct carbon_side *side = &problem->sides[i];
        const struct carbon_hull *hull = &problem->hulls[i % 2];

        if (side->count == 0)
            continue;
        amount.work_s += hull->points[0].rate * side->duration_s[side->count];
        amount.cost += hull->points[0].power_w * side->weighted_s[side->count];
        for (size_t s = 0; s + 1 < hull->count; s++)
            add_side_segment(side, hull, s, i % 2 != 0, price, &amount);
    }
    for (size_t s = 0; s + 1 < last->count; s++) {
        if (item_price(problem->last_weight, carbon_hull_slope(last, s)) <= price)
            add_segment(last, s, problem->last_s, last_weighted_s, &amount);
    }
    return amount;
}

/* Maps ranks to doubles in order: the smallest double has the smallest rank. */
static double price_of(uint64_t rank)
{
    uint64_t top = UINT64_C(1) << 63, bits = rank & top ? rank ^ top : ~rank;
    double price;

    memcpy(&price, &bits, sizeof price);
    return price;
}

static uint64_t rank_of(double price)
{
    uint64_t top = UINT64_C(1) << 63, bits;

    memcpy(&bits, &price, sizeof bits);
    return bits & top ? ~bits : bits | top;
}

/* Returns the rank of the least price at which enough work is done; the caller knows that there is one. */
static uint64_t find_price(const struct end_problem *problem, double work_s)
{
    uint64_t low = rank_of(-DBL_MAX), high = rank_of(DBL_MAX);

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (taken_at(problem, price_of(middle)).work_s >= work_s)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

/* Computes the sums over some of the sorted spans: those of one sign that lie before `last`. */
static void fill_side(struct carbon_workspace *workspace, int number, size_t from, size_t to, size_t last)
{
    struct carbon_side *side = &workspace->sides[number];
    bool negative = number % 2 != 0;
    double sum_s = 0.0, sum_weighted_s = 0.0;
    size_t n = 0;

    side->duration_s[0] = side->weighted_s[0] = 0.0;
    for (size_t i = from; i < to && (!negative || workspace->has_negative); i++) {
        const struct carbon_span *span = &workspace->sorted[i];

        if (workspace->order[i] >= last || (span->weight < 0.0) != negative)
            continue;
        sum_s += span->duration_s;
        sum_weighted_s += span->weight * span->duration_s;
        side->weights[n++] = fabs(span->weight);
        side->duration_s[n] = sum_s;
        side->weighted_s[n] = sum_weighted_s;
    }
    side->count = n;
}

/* Returns the part of the last span in which the job still runs. */
static double running_share(const struct carbon_problem *problem, const struct carbon_solution *solution)
{
    struct carbon_mix mix = carbon_solution_mix(problem, solution, solution->last);

    if (mix.low.rate > 0.0)
        return 1.0;
    return mix.high.rate > 0.0 ? mix.high_share : 0.0;
}

static void solve_end(struct carbon_workspace *workspace, const struct carbon_problem *problem, size_t last,
                      double before_s, struct carbon_solution *solution)
{
    const struct carbon_span *span = &problem->spans[last];
    struct end_problem end = {solution->hulls, workspace->sides, span->duration_s, span->weight};
    struct amount below, at;
    uint64_t rank;

    for (int i = SIDE_REST; i < SIDE_COUNT; i++)
        fill_side(workspace, i, workspace->core_count, problem->span_count, last);
    carbon_hull_from(problem->profile, span->weight < 0.0, 0.0, &solution->hulls[HULL_LAST]);
    rank = find_price(&end, problem->work_s * (1.0 - work_slack));
    at = taken_at(&end, price_of(rank));
    below = taken_at(&end, price_of(rank - 1));
    solution->last = last;
    solution->price = price_of(rank);
    solution->share = 1.0;
    if (at.work_s > below.work_s)
        solution->share = fmin(fmax((problem->work_s - below.work_s) / (at.work_s - below.work_s), 0.0), 1.0);
    solution->cost = (below.cost + solution->share * (at.cost - below.cost)) / JOULES_PER_KWH;
    solution->finish_s = before_s + span->duration_s * running_share(problem, solution);
}

/*
 * Finds the spans in which the end may be, first and last, and the time before each. False if
 * there are none.
 */
static bool find_ends(const struct carbon_problem *problem, const struct carbon_hull *hulls,
                      size_t *out_first, size_t *out_last)
{
    double most_s = 0.0, least_s = 0.0;
    bool found = false;

    for (size_t i = 0; i < problem->span_count; i++) {
        const struct carbon_span *span = &problem->spans[i];

        if (least_s > problem->work_s)
            break;
        most_s += span->duration_s;
        if (most_s < problem->work_s * (1.0 - work_slack)) {
            least_s += hulls[span->weight < 0.0].points[0].rate * span->duration_s;
            continue;
        }
        if (!found)
            *out_first = i;
        found = true;
        *out_last = i;
        least_s += hulls[span->weight < 0.0].points[0].rate * span->duration_s;
    }
    return found;
}

/* Sorts the spans by the size of their weights; the core comes first. */
static void sort_spans(struct carbon_workspace *workspace, const struct carbon_problem *problem,
                       size_t first_end)
{
    double *sizes = workspace->sides[SIDE_REST].weights; /* unused until the sums are computed */
    size_t core = 0, rest;

    workspace->core_count = rest = first_end >= CORE_LEAST ? first_end : 0;
    workspace->has_negative = false;
    for (size_t i = 0; i < problem->span_count; i++) {
        sizes[i] = fabs(problem->spans[i].weight);
        workspace->has_negative |= problem->spans[i].weight < 0.0;
    }
    radix_order(sizes, problem->span_count, workspace->by_size, workspace->keys);
    for (size_t i = 0; i < problem->span_count; i++) {
        uint32_t span = workspace->by_size[i];
        size_t place = span < workspace->core_count ? core++ : rest++;

        workspace->order[place] = span;
        workspace->sorted[place] = problem->spans[span];
    }
    for (int i = SIDE_CORE; i < SIDE_REST; i++)
        fill_side(workspace, i, 0, workspace->core_count, SIZE_MAX);
}

int carbon_solve(struct carbon_workspace *workspace, const struct carbon_problem *problem,
                 struct carbon_solution *out_solution, struct fly_error *out_error)
{
    struct carbon_solution best = {.cost = INFINITY}, tried = {0};
    size_t first = 0, last = 0, span = 0, ends, tries;
    double before_s = 0.0;

    if (problem->span_count > workspace->capacity)
        return error_set(out_error, FLY_ELIMIT, "carbon plan: %zu spans of time; expected at most %zu",
                         problem->span_count, workspace->capacity);
    for (int i = HULL_POSITIVE; i <= HULL_NEGATIVE; i++) {
        tried.hulls[i] = i == HULL_NEGATIVE ? problem->profile->upper : problem->profile->lower;
        if (!isnan(problem->idle_w))
            carbon_hull_from(problem->profile, i == HULL_NEGATIVE, problem->idle_w, &tried.hulls[i]);
    }
    if (!find_ends(problem, tried.hulls, &first, &last))
        return error_set(out_error, FLY_EEXHAUSTED,
                         "carbon plan: %g s of work do not fit into the time given even at the fastest limit",
                         problem->work_s);
    sort_spans(workspace, problem, first);
    ends = last - first + 1;
    tries = CARBON_EFFORT_MAX / problem->span_count;
    tries = tries < CARBON_ENDS_MIN ? CARBON_ENDS_MIN : tries;
    if (problem->ends_most > 0 && tries > problem->ends_most)
        tries = problem->ends_most;
    tries = tries < ends ? tries : ends;
    for (size_t i = 0; i < tries; i++) {
        size_t end = tries == 1 ? last : first + (ends - 1) * i / (tries - 1);

        for (; span < end; span++)
            before_s += problem->spans[span].duration_s;
        solve_end(workspace, problem, end, before_s, &tried);
        tried.cost += problem->fixed != NULL ? problem->fixed[end] : 0.0;
        /* Among equals the one that ends first is kept. */
        if (tried.cost < best.cost)
            best = tried;
    }
    *out_solution = best;
    return 0;
}

struct carbon_mix carbon_solution_mix(const struct carbon_problem *problem,
                                      const struct carbon_solution *solution, size_t span)
{
    double weight = problem->spans[span].weight;
    const struct carbon_hull *hull = &solution->hulls[span == solution->last ? HULL_LAST
                                                      : weight < 0.0         ? HULL_NEGATIVE
                                                                             : HULL_POSITIVE];
    size_t below = 0, at;

    if (span > solution->last)
        return (struct carbon_mix){.high_share = 1.0};
    while (below + 1 < hull->count && item_price(weight, carbon_hull_slope(hull, below)) < solution->price)
        below++;
    at = below;
    while (at + 1 < hull->count && item_price(weight, carbon_hull_slope(hull, at)) <= solution->price)
        at++;
    return (struct carbon_mix){hull->points[below], hull->points[at], at > below ? solution->share : 1.0};
}
