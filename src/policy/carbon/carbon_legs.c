/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_legs.h"

#include <math.h>

#include "model/units.h"

/* Rounding may change a work that fills the time exactly; legs shorter than this are left out. */
static const double slack = 1e-9, least_leg_s = 1e-6;

double carbon_legs_work(const struct carbon_legs *legs)
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

void carbon_legs_join(const struct carbon_legs *first, const struct carbon_legs *then, double work_s,
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
