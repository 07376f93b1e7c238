/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/units.h"

/* Rounding may change a work that fills the time exactly; legs shorter than this are left out. */
static const double slack = 1e-9, least_leg_s = 1e-6;

/* Returns the work that the legs do, in seconds at the fastest limit. */
static double carbon_legs_work(const struct carbon_legs *legs)
{
    double work_s = 0.0;

    for (size_t i = 0; i < legs->count; i++)
        work_s += legs->legs[i].point.rate * legs->legs[i].duration_s;
    return work_s;
}

/* Adds a leg; if it has the limit of the last leg, makes that one longer. */
static void add_leg(struct carbon_legs *legs, const struct carbon_point *point, double duration_s)
{
    if (duration_s < least_leg_s)
        return;
    if (legs->count > 0 && legs->legs[legs->count - 1].point.limit_w == point->limit_w)
        legs->legs[legs->count - 1].duration_s += duration_s;
    else
        legs->legs[legs->count++] = (struct carbon_leg){*point, duration_s};
}

/* Walks two lists of the same length side by side, piece by piece. */
struct pair {
    const struct carbon_legs *first, *then;
    size_t a, b;
    double a_s, b_s; /* what is left of the current legs */
};

/* Removes a piece from both; returns false at the end of either. */
static bool advance(struct pair *pair, double piece_s)
{
    pair->a_s -= piece_s;
    pair->b_s -= piece_s;
    if (pair->a_s <= 0.0) {
        if (++pair->a == pair->first->count)
            return false;
        pair->a_s = pair->first->legs[pair->a].duration_s;
    }
    if (pair->b_s <= 0.0) {
        if (++pair->b == pair->then->count)
            return false;
        pair->b_s = pair->then->legs[pair->b].duration_s;
    }
    return true;
}

/* Returns the earliest moment for which `first` up to it and `then` after it do exactly the work. */
static double split_at(const struct carbon_legs *first, const struct carbon_legs *then, double work_s)
{
    struct pair pair = {first, then, 0, 0, first->legs[0].duration_s, then->legs[0].duration_s};
    double missing = work_s - carbon_legs_work(then), at_s = 0.0;

    for (;;) {
        double piece_s = fmin(pair.a_s, pair.b_s);
        double gain = first->legs[pair.a].point.rate - then->legs[pair.b].point.rate;
        double needed_s = gain != 0.0 ? missing / gain : INFINITY;

        if (needed_s >= 0.0 && needed_s <= piece_s)
            return at_s + needed_s;
        missing -= gain * piece_s;
        at_s += piece_s;
        if (!advance(&pair, piece_s))
            return at_s;
    }
}

/* Adds what lies between two moments. */
static void add_part(struct carbon_legs *to, const struct carbon_legs *from, double begin_s, double end_s)
{
    double at_s = 0.0;

    for (size_t i = 0; i < from->count; i++) {
        double until_s = at_s + from->legs[i].duration_s;

        add_leg(to, &from->legs[i].point, fmin(until_s, end_s) - fmax(at_s, begin_s));
        at_s = until_s;
    }
}

/*
 * Joins `first` up to a moment with `then` from there on. It picks the earliest moment for which
 * both together do exactly the work. The two have the same length, neither is empty, one does
 * less than the work and the other at least the work. `out_joined` needs room for the legs of
 * both.
 */
static void carbon_legs_join(const struct carbon_legs *first, const struct carbon_legs *then, double work_s,
                             struct carbon_legs *out_joined)
{
    double split_s = split_at(first, then, work_s);

    out_joined->count = 0;
    add_part(out_joined, first, 0.0, split_s);
    add_part(out_joined, then, split_s, INFINITY);
}

static double changes_cost(const struct carbon_schedule_request *request, const struct carbon_legs *legs,
                           size_t done)
{
    const struct carbon_standing *standing = &request->standing;
    bool stands = standing->point != NULL, same;
    double held_s = stands ? standing->held_s : INFINITY, cost = 0.0;

    for (size_t i = 0; i < done; i++) {
        same = i == 0 ? !stands || standing->point->limit_w == legs->legs[0].point.limit_w : false;
        if (!same)
            cost += standing->change_cost +
                    (held_s < standing->dwell_s * (1.0 - slack) ? standing->haste_cost : 0.0);
        held_s = (same && stands ? held_s : 0.0) + legs->legs[i].duration_s;
    }
    return cost;
}

struct carbon_legs_sum carbon_schedule_sum(const struct carbon_schedule_request *request,
                                           const struct carbon_legs *legs)
{
    const struct carbon_problem *problem = request->problem;
    struct carbon_legs_sum sum = {.feasible = false};
    double left_s = problem->work_s, leg_s = legs->legs[0].duration_s, span_s;
    size_t leg = 0, span = 0;

    if (legs->count == 1)
        leg_s = INFINITY;
    for (span_s = problem->spans[0].duration_s; !sum.feasible && span < problem->span_count;) {
        const struct carbon_point *point = &legs->legs[leg].point;
        double weight = problem->spans[span].weight, piece_s = fmin(leg_s, span_s), cost;
        double raw = request->raw_weights != NULL ? request->raw_weights[span] : weight;

        if (point->rate * piece_s >= left_s * (1.0 - slack)) {
            piece_s = left_s / point->rate;
            sum.feasible = true;
        }
        cost = units_kwh_from_j(point->power_w * piece_s);
        sum.own_cost += weight * cost;
        sum.raw_cost += raw * cost;
        sum.finish_s += piece_s;
        left_s -= point->rate * piece_s;
        leg_s -= piece_s;
        span_s -= piece_s;
        if (span_s <= 0.0 && ++span < problem->span_count)
            span_s = problem->spans[span].duration_s;
        if (leg_s <= 0.0 && leg + 1 < legs->count) {
            leg++;
            leg_s = leg + 1 == legs->count ? INFINITY : legs->legs[leg].duration_s;
        }
    }
    sum.cost = sum.own_cost + changes_cost(request, legs, leg + 1);
    return sum;
}

enum { PASSES = 40, POINTS_MAX = 2 * CARBON_POINTS_MAX + 2 };

/* Rounding may keep the last bit of work out of reach. */
static const double work_slack = 1e-12;
/* The price is close enough when it is known to this share. */
static const double price_near = 1e-6;

/*
 * A request in the form that the dynamic program needs: borders, and the points that are worth
 * considering.
 */
struct program {
    struct carbon_scheduler *scheduler;
    const struct carbon_schedule_request *request;
    struct carbon_point points[POINTS_MAX];
    size_t point_count, standing; /* `standing` is past the count if no limit is in force */
    size_t borders;               /* number of borders after the first */
    double change, haste;         /* in weight * W * s */
};

/* The best borders at which a leg at one point could have begun, less what it would have cost up to there. */
struct beginnings {
    double least, ripe; /* least of all, and of those that have lasted the dwell time */
    uint32_t from, ripe_from;
};

int carbon_scheduler_init(struct carbon_scheduler *scheduler, size_t capacity, struct fly_error *out_error)
{
    size_t room = 2 * capacity + 8;
    struct carbon_scheduler made = {.capacity = room};
    struct carbon_legs *lists[] = {&made.best, &made.fast, &made.slow, &made.joined};

    made.memory = malloc(4 * room * sizeof made.memory[0]);
    made.weighted_s = malloc(3 * room * sizeof made.weighted_s[0]);
    made.from = malloc(room * sizeof made.from[0]);
    made.by = malloc(room);
    if (made.memory == NULL || made.weighted_s == NULL || made.from == NULL || made.by == NULL) {
        carbon_scheduler_deinit(&made);
        return error_no_memory(out_error);
    }
    made.end_s = made.weighted_s + room;
    made.reached = made.end_s + room;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        lists[i]->legs = made.memory + i * room;
    *scheduler = made;
    return 0;
}

void carbon_scheduler_deinit(struct carbon_scheduler *scheduler)
{
    free(scheduler->memory);
    free(scheduler->weighted_s);
    free(scheduler->from);
    free(scheduler->by);
    *scheduler = (struct carbon_scheduler){0};
}

static size_t add_point(struct program *program, const struct carbon_point *point)
{
    size_t at = 0;

    while (at < program->point_count && program->points[at].limit_w != point->limit_w)
        at++;
    if (at == program->point_count)
        program->points[program->point_count++] = *point;
    return at;
}

static void add_hull(struct program *program, const struct carbon_hull *hull)
{
    for (size_t i = 0; i < hull->count; i++)
        (void)add_point(program, &hull->points[i]);
}

/* Adds the border at which the limit in force may be left without haste; it usually lies within a span. */
static void lay_borders(struct program *program)
{
    const struct carbon_schedule_request *request = program->request;
    const struct carbon_problem *problem = request->problem;
    double *end_s = program->scheduler->end_s, *weighted_s = program->scheduler->weighted_s;
    double at_s = 0.0, wait_s = request->standing.dwell_s - request->standing.held_s;
    size_t count = 0;

    end_s[0] = weighted_s[0] = 0.0;
    for (size_t i = 0; i < problem->span_count && at_s < request->finish_s; i++) {
        const struct carbon_span *span = &problem->spans[i];
        double to_s = fmin(at_s + span->duration_s, request->finish_s);

        if (request->standing.point != NULL && at_s < wait_s && wait_s < to_s) {
            end_s[count + 1] = wait_s;
            weighted_s[count + 1] = weighted_s[count] + span->weight * (wait_s - at_s);
            count++;
            at_s = wait_s;
        }
        end_s[count + 1] = to_s;
        weighted_s[count + 1] = weighted_s[count] + span->weight * (to_s - at_s);
        count++;
        at_s = to_s;
    }
    program->borders = count;
}

static void prepare(struct program *program)
{
    const struct carbon_problem *problem = program->request->problem;
    const struct carbon_standing *standing = &program->request->standing;
    const struct carbon_point idle = {.power_w = problem->idle_w};
    bool negative = false;

    for (size_t i = 0; i < problem->span_count; i++)
        negative |= problem->spans[i].weight < 0.0;
    add_hull(program, &problem->profile->lower);
    if (negative)
        add_hull(program, &problem->profile->upper);
    if (!isnan(problem->idle_w))
        (void)add_point(program, &idle);
    program->standing = standing->point != NULL ? add_point(program, standing->point) : SIZE_MAX;
    program->change = standing->change_cost * JOULES_PER_KWH;
    program->haste = standing->haste_cost * JOULES_PER_KWH;
    lay_borders(program);
}

/* Returns what a point costs from the start up to a border at a price of work. */
static double cost_until(const struct program *program, size_t point, double price, size_t border)
{
    const struct carbon_point *at = &program->points[point];

    return at->power_w * program->scheduler->weighted_s[border] -
           price * at->rate * program->scheduler->end_s[border];
}

static void begin_at(struct beginnings *beginnings, double least, uint32_t border)
{
    if (least < beginnings->least) {
        beginnings->least = least;
        beginnings->from = border;
    }
}

/* Legs that began at `border` have now lasted the dwell time. */
static void ripen(const struct program *program, double price, size_t border, struct beginnings *all)
{
    double begun = program->scheduler->reached[border] + program->change;

    for (size_t k = 0; k < program->point_count; k++) {
        double least = begun - cost_until(program, k, price, border);

        if (least < all[k].ripe) {
            all[k].ripe = least;
            all[k].ripe_from = (uint32_t)border;
        }
    }
}

static bool free_of_charge(const struct program *program, size_t point)
{
    return program->standing == SIZE_MAX || point == program->standing;
}

/*
 * Begins at the start: going on with the limit in force is free and any other limit is a change;
 * if no limit is in force, all are free.
 */
static void begin(const struct program *program, struct beginnings *all)
{
    const struct carbon_standing *standing = &program->request->standing;
    bool early = standing->point != NULL && standing->held_s < standing->dwell_s;

    program->scheduler->reached[0] = early ? program->haste : 0.0;
    for (size_t k = 0; k < program->point_count; k++) {
        all[k] = (struct beginnings){.ripe = INFINITY};
        all[k].least = free_of_charge(program, k) ? 0.0 : program->scheduler->reached[0] + program->change;
        if (k == program->standing && !early)
            all[k].ripe = 0.0;
    }
}

static void ripen_first(const struct program *program, double now_s, struct beginnings *all)
{
    const struct carbon_standing *standing = &program->request->standing;

    for (size_t k = 0; k < program->point_count; k++) {
        double held_s = k == program->standing ? standing->held_s : 0.0, least;

        if (now_s + held_s < standing->dwell_s * (1.0 - slack))
            continue;
        least = free_of_charge(program, k) ? 0.0 : program->scheduler->reached[0] + program->change;
        if (least < all[k].ripe)
            all[k].ripe = least;
        if (least <= all[k].ripe)
            all[k].ripe_from = 0;
    }
}

/* Finds how to reach a border at the least cost and be free to change there. */
static void reach(const struct program *program, double price, size_t border, const struct beginnings *all)
{
    struct carbon_scheduler *scheduler = program->scheduler;
    double least = INFINITY;

    for (size_t k = 0; k < program->point_count; k++) {
        double cost = cost_until(program, k, price, border);
        bool ripe = all[k].ripe <= all[k].least + program->haste;
        double with = cost + (ripe ? all[k].ripe : all[k].least + program->haste);

        if (with < least) {
            least = with;
            scheduler->by[border] = (uint8_t)k;
            scheduler->from[border] = ripe ? all[k].ripe_from : all[k].from;
        }
    }
    scheduler->reached[border] = least;
}

/* Follows the legs from the last border back to the first. */
static void trace_back(const struct program *program, size_t point, uint32_t from, struct carbon_legs *legs)
{
    const struct carbon_scheduler *scheduler = program->scheduler;
    size_t border = program->borders, count = 0;

    for (;;) {
        legs->legs[count++] =
            (struct carbon_leg){program->points[point], scheduler->end_s[border] - scheduler->end_s[from]};
        if (from == 0)
            break;
        border = from;
        point = scheduler->by[border];
        from = scheduler->from[border];
    }
    legs->count = count;
    for (size_t i = 0; i < count / 2; i++) {
        struct carbon_leg swapped = legs->legs[i];

        legs->legs[i] = legs->legs[count - 1 - i];
        legs->legs[count - 1 - i] = swapped;
    }
}

/* Makes the legs of least cost at a price; returns the work that they do. */
static double solve_at(const struct program *program, double price, struct carbon_legs *legs)
{
    struct beginnings all[POINTS_MAX] = {{0}};
    const double *end_s = program->scheduler->end_s;
    double least = INFINITY, dwell_s = program->request->standing.dwell_s;
    size_t best = 0, next = 1;

    begin(program, all);
    for (size_t border = 1; border <= program->borders; border++) {
        ripen_first(program, end_s[border], all);
        for (; next < border && end_s[border] - end_s[next] >= dwell_s * (1.0 - slack); next++)
            ripen(program, price, next, all);
        reach(program, price, border, all);
        if (border == program->borders)
            break;
        for (size_t k = 0; k < program->point_count; k++)
            begin_at(&all[k],
                     program->scheduler->reached[border] + program->change -
                         cost_until(program, k, price, border),
                     (uint32_t)border);
    }
    for (size_t k = 0; k < program->point_count; k++) {
        double cost = all[k].least + cost_until(program, k, price, program->borders);

        if (cost < least) {
            least = cost;
            best = k;
        }
    }
    trace_back(program, best, all[best].from, legs);
    return carbon_legs_work(legs);
}

static void swap_legs(struct carbon_legs *a, struct carbon_legs *b)
{
    struct carbon_legs kept = *a;

    *a = *b;
    *b = kept;
}

/* Finds two prices close together: at one too little work is done (`slow`), at the other enough (`fast`). */
static void close_in(const struct program *program)
{
    struct carbon_scheduler *scheduler = program->scheduler;
    double work_s = program->request->problem->work_s * (1.0 - work_slack), price = program->request->price;
    double step = fmax(fabs(price), 1e-3) * 1e-3, low = NAN, high = NAN;

    scheduler->slow.count = scheduler->fast.count = 0;
    for (int pass = 0; pass < 2 * PASSES; pass++) {
        bool enough = solve_at(program, price, &scheduler->joined) >= work_s;

        swap_legs(&scheduler->joined, enough ? &scheduler->fast : &scheduler->slow);
        *(enough ? &high : &low) = price;
        if (isnan(low) || isnan(high)) {
            price += enough ? -step : step;
            step *= 4.0;
        } else if (high - low <= price_near * fmax(fabs(low), fabs(high))) {
            break;
        } else {
            price = low + (high - low) / 2.0;
        }
    }
}

static void keep_better(struct carbon_scheduler *scheduler, const struct carbon_schedule_request *request,
                        struct carbon_legs *legs, struct carbon_legs_sum *best)
{
    struct carbon_legs_sum sum = carbon_schedule_sum(request, legs);

    if (!sum.feasible || (best->feasible && sum.cost >= best->cost - fabs(best->cost) * slack))
        return;
    *best = sum;
    memcpy(scheduler->best.legs, legs->legs, legs->count * sizeof legs->legs[0]);
    scheduler->best.count = legs->count;
}

struct carbon_legs_sum carbon_schedule_make(struct carbon_scheduler *scheduler,
                                            const struct carbon_schedule_request *request)
{
    struct program program = {.scheduler = scheduler, .request = request};
    struct carbon_legs_sum best = {.feasible = false};
    double work_s = request->problem->work_s;

    prepare(&program);
    close_in(&program);
    if (scheduler->fast.count == 0)
        return best;
    if (scheduler->slow.count > 0) {
        /* Among equals the faster legs come first, since that makes the deadline safer. */
        carbon_legs_join(&scheduler->fast, &scheduler->slow, work_s, &scheduler->joined);
        keep_better(scheduler, request, &scheduler->joined, &best);
        carbon_legs_join(&scheduler->slow, &scheduler->fast, work_s, &scheduler->joined);
        keep_better(scheduler, request, &scheduler->joined, &best);
    }
    keep_better(scheduler, request, &scheduler->fast, &best);
    return best;
}
