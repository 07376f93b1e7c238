/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit_plan.h"

#include <math.h>

enum { NOWHERE = -1 };

/* A score this much above the line between its neighbours, as a logarithm, is no part of a convex curve. */
static const double bump = 0.03;

/* Logarithms of the time and the power under a limit. */
struct logs {
    double time, power;
};

static struct logs logs_of(double time_s, double power_w)
{
    return (struct logs){log(time_s), log(power_w)};
}

static struct logs mix(struct logs one, struct logs other, double share)
{
    return (struct logs){one.time + share * (other.time - one.time),
                         one.power + share * (other.power - one.power)};
}

/* How far a limit is on the way from one to another, in the logarithm. */
static double way(double limit, double from, double to)
{
    return from == to ? 0.0 : log(limit / from) / log(to / from);
}

/* What a curve says of a limit: between its points a line, beyond them the last one drawn on. */
static struct logs curve_at(const struct limit_curve *curve, double limit)
{
    const struct fly_power_point *points = curve->points;
    size_t low = 0, high;

    while (low + 2 < curve->count && points[low + 1].limit_w <= limit)
        low++;
    high = low + 1 < curve->count ? low + 1 : low;
    return mix(logs_of(points[low].time_s, points[low].power_w),
               logs_of(points[high].time_s, points[high].power_w),
               way(limit, points[low].limit_w, points[high].limit_w));
}

/* The next known place from `place` on in direction `by`; NOWHERE for none. */
static int known_from(const struct limit_arms *arms, int place, int by)
{
    for (int i = place; i >= 0 && i < (int)arms->count; i += by) {
        if (limit_arms_known(arms, (size_t)i))
            return i;
    }
    return NOWHERE;
}

/* By how much what was measured under a limit is off the curve. */
static struct logs off(const struct limit_arm *arm, const struct limit_curve *curve)
{
    struct logs measured = logs_of(arm->time_s, arm->power_w), said = curve_at(curve, arm->limit);

    return (struct logs){measured.time - said.time, measured.power - said.power};
}

/* The score to expect by one curve. Some arm is known. */
static double expect(const struct limit_arms *arms, const struct limit_curve *curve, size_t place)
{
    int above = known_from(arms, (int)place, -1), below = known_from(arms, (int)place, 1);
    const struct limit_arm *one = &arms->arms[above != NOWHERE ? above : below];
    const struct limit_arm *other = &arms->arms[below != NOWHERE ? below : above];
    double limit = arms->arms[place].limit;
    struct logs error = mix(off(one, curve), off(other, curve), way(limit, one->limit, other->limit));
    struct logs said = curve_at(curve, limit);

    return limit_arms_score_of(arms, limit, exp(said.power + error.power), exp(said.time + error.time));
}

/* What all curves say: the mean, and the least. */
static void expect_all(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count,
                       size_t place, double *out_mean, double *out_least)
{
    *out_mean = 0.0;
    *out_least = INFINITY;
    for (size_t i = 0; i < curve_count; i++) {
        double score = expect(arms, &curves[i], place);

        *out_mean += score / (double)curve_count;
        *out_least = fmin(*out_least, score);
    }
}

/* ---- bumps ---- */

/* Scores along the limits, of which the newest three are kept. */
struct walk {
    double limit[3], score[3];
    size_t count;
    bool bumpy;
};

static void walk_on(struct walk *walk, double limit, double score)
{
    for (size_t i = 0; i + 1 < 3; i++) {
        walk->limit[i] = walk->limit[i + 1];
        walk->score[i] = walk->score[i + 1];
    }
    walk->limit[2] = limit;
    walk->score[2] = log(score);
    if (++walk->count < 3)
        return;
    walk->bumpy |= walk->score[1] > bump + walk->score[0] +
                                        way(walk->limit[1], walk->limit[0], walk->limit[2]) *
                                            (walk->score[2] - walk->score[0]);
}

static bool is_bumpy(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count)
{
    struct walk measured = {.count = 0};

    for (size_t i = 0; i < arms->count; i++) {
        if (limit_arms_known(arms, i))
            walk_on(&measured, arms->arms[i].limit, limit_arms_score(arms, i));
    }
    for (size_t i = 0; i < curve_count; i++) {
        struct walk said = {.count = 0};

        for (size_t k = 0; k < curves[i].count; k++) {
            const struct fly_power_point *point = &curves[i].points[k];

            walk_on(&said, point->limit_w,
                    limit_arms_score_of(arms, point->limit_w, point->power_w, point->time_s));
        }
        measured.bumpy |= said.bumpy;
    }
    return measured.bumpy;
}

/* ---- the plan ---- */

static bool is_open(const struct limit_arms *arms, size_t place)
{
    return place < arms->count && !arms->arms[place].left_out && !limit_arms_known(arms, place);
}

static bool first_open(const struct limit_arms *arms, size_t *out_place)
{
    for (size_t i = 0; i < arms->count; i++) {
        if (!is_open(arms, i))
            continue;
        *out_place = i;
        return true;
    }
    return false;
}

static size_t best_known(const struct limit_arms *arms, size_t *out_count)
{
    size_t best = arms->count;

    *out_count = 0;
    for (size_t i = 0; i < arms->count; i++) {
        if (!limit_arms_known(arms, i))
            continue;
        ++*out_count;
        if (best == arms->count || limit_arms_score(arms, i) < limit_arms_score(arms, best))
            best = i;
    }
    return best;
}

/* Whether a place is next to another, those between them left out. */
static bool is_beside(const struct limit_arms *arms, size_t place, size_t other)
{
    size_t from = place < other ? place : other, to = place < other ? other : place;

    for (size_t i = from + 1; i < to; i++) {
        if (!arms->arms[i].left_out)
            return false;
    }
    return true;
}

bool limit_plan_next(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count,
                     size_t *out_place)
{
    size_t known, best = best_known(arms, &known);
    double score, lowest = INFINITY;
    bool found = false;

    if (!limit_arms_known(arms, 0) || curve_count == 0 || is_bumpy(arms, curves, curve_count))
        return first_open(arms, out_place);
    score = limit_arms_score(arms, best);
    for (size_t i = 0; i < arms->count; i++) {
        double mean, least, rank;

        if (!is_open(arms, i))
            continue;
        expect_all(arms, curves, curve_count, i, &mean, &least);
        rank = known == 1 ? mean : least;
        if ((rank < score || is_beside(arms, i, best)) && rank < lowest) {
            lowest = rank;
            *out_place = i;
            found = true;
        }
    }
    return found;
}
