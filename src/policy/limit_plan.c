/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit_plan.h"

#include <math.h>

#include "base/math/portable_math.h"
#include "policy/limit_belief.h"

/* The chance that one of the limits left is better, below which no more are measured. */
static const double small_chance = 0.0003;
/* Limits that differ by less, in W, are the same. */
static const double same_limit = 0.5;

static bool is_open(const struct limit_arms *arms, size_t place)
{
    return !arms->arms[place].left_out && !limit_arms_known(arms, place);
}

static size_t take_open(const struct limit_arms *arms, size_t *out_places)
{
    size_t count = 0;

    for (size_t i = 0; i < arms->count; i++) {
        if (is_open(arms, i))
            out_places[count++] = i;
    }
    return count;
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

/* ---- evidence ---- */

static void add(struct limit_evidence *evidence, size_t place, size_t batch, double score, double reference)
{
    evidence->figures[evidence->figure_count++] =
        (struct limit_figure){place, batch, portable_log(score / reference)};
}

/* The place of a limit; the arms' count: none. */
static size_t find_place(const struct limit_arms *arms, double limit)
{
    size_t place = 0;

    while (place < arms->count && fabs(arms->arms[place].limit - limit) >= same_limit)
        place++;
    return place;
}

static double score_of(const struct limit_arms *arms, const struct fly_power_point *point)
{
    return limit_arms_score_of(arms, point->limit_w, point->power_w, point->time_s);
}

static void add_curve(struct limit_evidence *evidence, const struct limit_arms *arms,
                      const struct limit_curve *curve, size_t batch)
{
    evidence->octaves[batch] = curve->octaves;
    for (size_t i = 0; i < curve->count; i++) {
        size_t place = find_place(arms, curve->points[i].limit_w);

        if (place < arms->count)
            add(evidence, place, batch, score_of(arms, &curve->points[i]),
                score_of(arms, &curve->points[curve->count - 1]));
    }
}

/* The highest limit is known. Room is kept for all limits of the batch size itself. */
static void gather(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count,
                   struct limit_evidence *out_evidence)
{
    *out_evidence = (struct limit_evidence){.place_count = arms->count};
    for (size_t i = 0; i < arms->count; i++) {
        out_evidence->limits[i] = arms->arms[i].limit;
        if (limit_arms_known(arms, i))
            add(out_evidence, i, 0, limit_arms_score(arms, i), limit_arms_score(arms, 0));
    }
    for (size_t i = 0; i < curve_count && i < LIMIT_CURVES_MAX; i++) {
        if (out_evidence->figure_count + curves[i].count + arms->count <= LIMIT_BELIEF_FIGURES)
            add_curve(out_evidence, arms, &curves[i], i + 1);
    }
}

/* ---- the plan ---- */

/* Which of the open places comes next, if any has to. */
static bool choose(const struct limit_arms *arms, const size_t *open, const struct limit_belief *beliefs,
                   size_t count, size_t *out_place)
{
    size_t known, best = best_known(arms, &known);
    double most = -INFINITY, chance = 0.0;
    bool needed = known == 1;

    for (size_t i = 0; i < count; i++) {
        bool beside = is_beside(arms, open[i], best);
        double rank = known == 1 ? -beliefs[i].expected : beliefs[i].chance + (beside ? 1.0 : 0.0);

        needed |= beside;
        chance += beliefs[i].chance;
        if (rank <= most)
            continue;
        most = rank;
        *out_place = open[i];
    }
    return count > 0 && (needed || chance > small_chance);
}

bool limit_plan_next(const struct limit_arms *arms, const struct limit_curve *curves, size_t curve_count,
                     size_t *out_place)
{
    struct limit_evidence evidence;
    struct limit_belief beliefs[LIMIT_BELIEF_PLACES];
    size_t open[LIMIT_BELIEF_PLACES], count, known;
    double best;

    if (arms->count > LIMIT_BELIEF_PLACES || !limit_arms_known(arms, 0) || curve_count == 0)
        return first_open(arms, out_place);
    count = take_open(arms, open);
    if (count == 0)
        return false;
    best = limit_arms_score(arms, best_known(arms, &known));
    gather(arms, curves, curve_count, &evidence);
    limit_belief_of(&evidence, open, count,
                    portable_log(best * (1.0 - arms->indifference) / limit_arms_score(arms, 0)), beliefs);
    return choose(arms, open, beliefs, count, out_place);
}
