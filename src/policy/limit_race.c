/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit_race.h"

#include <math.h>

enum { NOWHERE = -1 };

/*
 * The usual GPU: how its time and power depend on the limit, as a fraction r of the least limit that does
 * not bind. Time is 1 + share * (r^-exponent - 1), power r^power_exponent. Near the middle of what the
 * published profiles of V100 and A40 show; no choice depends on it, only the order of trying.
 */
static const struct usual {
    double time_share, time_exponent, power_exponent;
} usual_power = {0.06, 4.0, 1.0}, usual_clock = {0.7, 1.0, 2.0};

/* A limit is felt below this multiple of what is drawn without it. */
static const double felt_margin = 1.02;
/* Times or powers that differ by this much show that a limit binds. */
static const double telling = 0.01;
/*
 * How much downwards energy may bend, as a fraction, when a line is drawn on by one tenth of the limit over
 * two tenths: with dynamic power by the cube of the clock, energy goes with the limit's power of 2/3.
 */
static const double bend = 0.15;
/* Two limits nearer to each other than this show no slope: where the higher one begins to bind is not known.
 */
static const double least_lever = 0.06;

/* The next known place from `place` on in direction `by`; NOWHERE for none. */
static int known_from(const struct limit_arms *arms, int place, int by)
{
    for (int i = place; i >= 0 && i < (int)arms->count; i += by) {
        if (limit_arms_known(arms, (size_t)i))
            return i;
    }
    return NOWHERE;
}

/* Whether a known arm differs from the highest known one by more than chance. */
static bool differs(const struct limit_arm *one, const struct limit_arm *highest)
{
    double chance = limit_half_width * hypot(one->time_error, highest->time_error);

    return one->time_s > highest->time_s * (1.0 + fmax(telling, chance));
}

struct limit_shape limit_shape_of(const struct limit_arms *arms, bool is_clock)
{
    const struct limit_arm *highest = &arms->arms[known_from(arms, 0, 1)];
    struct limit_shape shape = {is_clock, highest->limit, highest->limit};

    if (!(highest->felt > 0.0) || highest->felt * felt_margin >= highest->limit)
        return shape;
    /* Power that comes in bursts meets limits above its mean. */
    for (size_t i = 0; i < arms->count; i++) {
        if (limit_arms_known(arms, i) && arms->arms[i].limit >= highest->felt * felt_margin &&
            differs(&arms->arms[i], highest))
            return shape;
    }
    shape.felt = highest->felt;
    shape.binds_at = highest->felt * felt_margin;
    return shape;
}

static double position(const struct limit_shape *shape, double limit)
{
    return fmin(limit, shape->felt);
}

/* What an arm's figures would be, relative to the highest limit's, before any is measured. */
static void guess(const struct limit_shape *shape, const struct limit_arm *arm, double *out_time,
                  double *out_power)
{
    const struct usual *usual = shape->is_clock ? &usual_clock : &usual_power;
    double r = position(shape, arm->limit) / shape->felt;

    *out_time = 1.0 + usual->time_share * (pow(r, -usual->time_exponent) - 1.0);
    *out_power = pow(r, usual->power_exponent);
}

/* By how much a known arm is off the guess, as logarithms. */
static void correction(const struct limit_shape *shape, const struct limit_arm *arm, double *out_time,
                       double *out_power)
{
    double time, power;

    guess(shape, arm, &time, &power);
    *out_time = log(arm->time_s / time);
    *out_power = log(arm->power_w / power);
}

/*
 * The figures to expect of an arm. Between known arms they follow these; elsewhere the shape
 * of a usual GPU.
 */
static struct limit_estimate limit_shape_estimate(const struct limit_shape *shape,
                                                  const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place], *one, *other;
    int above = known_from(arms, (int)place, -1), below = known_from(arms, (int)place, 1);
    double time, power, time_one, power_one, time_other, power_other, far = 0.0, apart;
    struct limit_estimate estimate;

    /* Beyond the known arms the two nearest are extended. */
    if (above == NOWHERE)
        above = known_from(arms, below + 1, 1);
    if (below == NOWHERE)
        below = known_from(arms, above - 1, -1);
    one = &arms->arms[above != NOWHERE ? above : below];
    other = &arms->arms[below != NOWHERE ? below : above];
    correction(shape, one, &time_one, &power_one);
    correction(shape, other, &time_other, &power_other);
    apart = log(position(shape, other->limit) / position(shape, one->limit));
    if (fabs(apart) > 0.0)
        far = log(position(shape, arm->limit) / position(shape, one->limit)) / apart;
    guess(shape, arm, &time, &power);
    estimate.time_s = time * exp(time_one + far * (time_other - time_one));
    estimate.power_w = power * exp(power_one + far * (power_other - power_one));
    estimate.score = limit_arms_score_of(arms, arm->limit, estimate.power_w, estimate.time_s);
    return estimate;
}

double limit_shape_least_time(const struct limit_arms *arms, size_t place)
{
    double least = 0.0;

    for (size_t i = 0; i < place; i++) {
        const struct limit_arm *arm = &arms->arms[i];

        if (limit_arms_known(arms, i))
            least = fmax(least, arm->time_s * (1.0 - limit_half_width * arm->time_error));
    }
    return least;
}

/* The least power: as that of the next lower limit, or in proportion to the limit. */
static double least_power(const struct limit_shape *shape, const struct limit_arms *arms, int above,
                          int below, double limit)
{
    double least = 0.0;

    if (above != NOWHERE)
        least = arms->arms[above].power_w * (1.0 - limit_half_width * arms->arms[above].power_error) *
                pow(position(shape, limit) / position(shape, arms->arms[above].limit),
                    shape->is_clock ? 3.0 : 1.0);
    if (below != NOWHERE)
        least =
            fmax(least, arms->arms[below].power_w * (1.0 - limit_half_width * arms->arms[below].power_error));
    return least > 0.0 ? least : 0.0;
}

/* The line through a far and a near known arm, drawn on to the limit, less its error and the bend. */
static double line(const struct limit_shape *shape, const struct limit_arms *arms, int far, int near,
                   double limit)
{
    double x = position(shape, limit), x_near, lever, reach, near_score, far_score, error;

    if (far == NOWHERE || near == NOWHERE)
        return 0.0;
    x_near = position(shape, arms->arms[near].limit);
    lever = fabs(x_near - position(shape, arms->arms[far].limit));
    if (lever < least_lever * x_near)
        return 0.0;
    reach = fabs(x - x_near) / lever;
    near_score = limit_arms_score(arms, (size_t)near);
    far_score = limit_arms_score(arms, (size_t)far);
    error = hypot((1.0 + reach) * near_score * limit_arms_deviation(arms, (size_t)near),
                  reach * far_score * limit_arms_deviation(arms, (size_t)far));
    return near_score + reach * (near_score - far_score) - limit_half_width * error -
           bend * near_score * reach * (1.0 + reach) * pow(lever / fmin(x, x_near), 2.0);
}

double limit_shape_least_score(const struct limit_shape *shape, const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place];
    int above = known_from(arms, (int)place - 1, -1), below = known_from(arms, (int)place + 1, 1);
    double least = limit_arms_score_of(arms, arm->limit, least_power(shape, arms, above, below, arm->limit),
                                       limit_shape_least_time(arms, place));

    if (arms->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return arm->limit;
    if (above != NOWHERE)
        least = fmax(least, line(shape, arms, known_from(arms, above - 1, -1), above, arm->limit));
    if (below != NOWHERE)
        least = fmax(least, line(shape, arms, known_from(arms, below + 1, 1), below, arm->limit));
    return least;
}

/* A first measurement takes this long, within so many steps; but more than those in so short a time. */
static const double first_s = 1.0, first_steps_least = 15.0, first_steps_most = 30.0, first_least_s = 0.3;
/*
 * A limit settles within some tens of milliseconds. One step is lost besides: it may have begun before.
 */
static const double warmup_s = 0.1;
enum { WARMUP_STEPS_MOST = 10 };
/*
 * What the search may spend for each limit: a second, within so many steps, but as many as take so short a
 * time. More where a limit may or may not keep the bound: later, looks at the highest limit are dear, and
 * those at limits of nearly the same score cost next to nothing. Short steps are so many anyway that all of
 * them together, with the check, are to be no more than fifty for each limit; and where steps scatter,
 * windows are longer already.
 */
static const double spent_s = 1.0, spent_steps_least = 22.0, spent_steps_most = 45.0, spent_least_s = 0.45,
                    spent_steps_bound = 90.0, spent_steps_bound_short = 45.0, short_step_s = 0.02;
/* So many times its error off the bound, an arm is clear of it. */
static const double clear_errors = 3.0;
/*
 * Where the times of single steps scatter by more than this share of their mean, measurements are longer:
 * until the mean is known so well, or for `scattering_s`. Every ratio hangs on the highest limit, so that
 * one is measured for as long before any other.
 */
static const double scatter_least = 0.2, mean_error = 0.02;
/* One step is lost when a limit is set. */
static const double look_overhead = 0.5;
enum { LOOKS_MOST = 100, LOOK_LONGER = 4 };

static double within(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

/* The first arm of which figures can be had. */
static size_t reference(const struct limit_arms *arms)
{
    size_t place = 0;

    while (place < arms->count && arms->arms[place].left_out)
        place++;
    return place;
}

/* How many steps the scatter of the highest limit's steps asks for; 0: it is not known, or usual. */
static double scatter_steps(const struct limit_race *race, double step_s)
{
    const struct limit_arms *arms = &race->arms;
    size_t top = reference(arms);
    const struct limit_arm *arm = &arms->arms[top];
    double scatter;

    if (top == arms->count || !limit_arms_known(arms, top))
        return 0.0;
    scatter = arm->scatter > 0.0 ? arm->scatter : arm->time_error * sqrt(arm->steps);
    return scatter > scatter_least ? fmin(pow(scatter / mean_error, 2.0), race->scattering_s / step_s) : 0.0;
}

/* The same of steps that do not scatter. */
static double usual_first_steps(double step_s)
{
    return ceil(within(first_s / step_s, first_steps_least, fmax(first_steps_most, first_least_s / step_s)));
}

uint32_t limit_race_first_steps(const struct limit_race *race, double step_s)
{
    double steps = fmax(usual_first_steps(step_s), ceil(scatter_steps(race, step_s)));

    return race->least_steps > 0 ? race->least_steps : (uint32_t)steps;
}

uint32_t limit_race_warmup_steps(double step_s)
{
    return (uint32_t)within(ceil(warmup_s / step_s) + 1.0, 2.0, WARMUP_STEPS_MOST);
}

static struct limit_race_action measure(size_t place, double steps)
{
    return (struct limit_race_action){LIMIT_RACE_MEASURE, place, (uint32_t)fmax(steps, 1.0)};
}

/* How many steps the search may still take, with a warm-up and a check to come. */
static double left_steps(const struct limit_race *race, double step_s, double least)
{
    double first = limit_race_first_steps(race, step_s), warmup = limit_race_warmup_steps(step_s);
    double each =
        within(spent_s / step_s, least, fmax(fmax(least, spent_steps_most), spent_least_s / step_s));

    if (race->least_steps > 0)
        each = fmax(each, 0.5 * (first + warmup));
    else
        each *= first / usual_first_steps(step_s);
    return each * (double)race->arms.count - race->spent_steps - first - 2.0 * warmup;
}

/* The lowest score that a known arm may have beside that of the chosen one; NAN: not known. */
static double optimistic(const struct limit_arms *arms, size_t place, size_t chosen)
{
    double error = hypot(limit_arms_deviation(arms, place), limit_arms_deviation(arms, chosen));

    return limit_arms_score(arms, place) * (1.0 - limit_half_width * error);
}

/* Whether an arm could still be better than the chosen one, and keep the bound. */
static bool contends(const struct limit_race *race, const struct limit_shape *shape, size_t place,
                     size_t chosen)
{
    const struct limit_arms *arms = &race->arms;
    double enough = (1.0 - arms->indifference) * limit_arms_score(arms, chosen), allowed_s;

    if (place == chosen || place >= arms->open || arms->arms[place].left_out)
        return false;
    if (limit_arms_known(arms, place))
        return limit_arms_may_keep_bound(arms, place) && !(optimistic(arms, place, chosen) >= enough);
    if (arms->arms[place].limit > shape->binds_at)
        return false;
    allowed_s = arms->objective.max_slowdown * arms->arms[0].time_s *
                (1.0 + limit_half_width * arms->arms[0].time_error);
    return !(limit_shape_least_time(arms, place) > allowed_s) &&
           !(limit_shape_least_score(shape, arms, place) >= enough);
}

/*
 * The unknown contender to try next: the one with the least expected score among those that are expected to
 * keep the bound, else the one that is expected to miss it by the least.
 */
static bool find_unknown(const struct limit_race *race, const struct limit_shape *shape, size_t chosen,
                         size_t *out_place)
{
    const struct limit_arms *arms = &race->arms;
    double allowed_s = arms->objective.max_slowdown * arms->arms[0].time_s, least = INFINITY;
    bool found = false, within_bound = false;

    for (size_t i = 0; i < arms->count; i++) {
        struct limit_estimate estimate;
        double rank;
        bool keeps;

        if (limit_arms_known(arms, i) || !contends(race, shape, i, chosen))
            continue;
        estimate = limit_shape_estimate(shape, arms, i);
        keeps = !(estimate.time_s > allowed_s);
        rank = keeps ? estimate.score : estimate.time_s;
        if (found && (keeps < within_bound || (keeps == within_bound && rank >= least)))
            continue;
        found = true;
        within_bound = keeps;
        least = rank;
        *out_place = i;
    }
    return found;
}

/* Whether a limit next to the chosen one is unknown: there the shape is held against what is measured. */
static bool find_neighbour(const struct limit_race *race, const struct limit_shape *shape, size_t chosen,
                           size_t *out_place)
{
    const struct limit_arms *arms = &race->arms;
    const size_t places[] = {chosen + 1, chosen - 1}; /* one above place 0 is none */

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i] >= arms->count || places[i] >= arms->open || limit_arms_known(arms, places[i]) ||
            arms->arms[places[i]].left_out || arms->arms[places[i]].limit > shape->binds_at)
            continue;
        *out_place = places[i];
        return true;
    }
    return false;
}

/* Whether a contender is better, and may or may not keep the bound. */
static bool is_at_bound(const struct limit_arms *arms, size_t contender, size_t chosen)
{
    return !limit_arms_keeps_bound(arms, contender) &&
           limit_arms_score(arms, contender) < limit_arms_score(arms, chosen);
}

/* By how much an arm's time is off the bound, up or down, as a fraction; and how far that may be off. */
static double off_bound(const struct limit_arms *arms, size_t place)
{
    return fabs(arms->arms[place].time_s / (arms->objective.max_slowdown * arms->arms[0].time_s) - 1.0);
}

static double bound_error(const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place];

    return limit_arms_ratio_error(arms, arm->time_error, arm->steps, arm->visits);
}

static bool find_known(const struct limit_race *race, const struct limit_shape *shape, size_t chosen,
                       size_t *out_place)
{
    double least = INFINITY;
    bool found = false;

    for (size_t i = 0; i < race->arms.count; i++) {
        double score;

        if (!limit_arms_known(&race->arms, i) || !contends(race, shape, i, chosen))
            continue;
        score = optimistic(&race->arms, i, chosen);
        if (found && !(score < least))
            continue;
        found = true;
        least = score;
        *out_place = i;
    }
    return found;
}

double limit_race_cost(const struct limit_race *race, size_t place, size_t chosen, double steps)
{
    const struct limit_arms *arms = &race->arms;
    struct limit_shape shape = limit_shape_of(arms, race->is_clock);
    struct limit_estimate here = limit_shape_estimate(&shape, arms, place);
    double score = here.score / limit_arms_score(arms, chosen) - 1.0;
    double time = here.time_s / (arms->objective.max_slowdown * arms->arms[0].time_s) - 1.0;

    return steps * fmax(fmax(score, time), 0.0);
}

/* The part of an arm's time error that measuring it again makes smaller. */
static double time_error(const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place];

    return hypot(arm->time_error, arms->visit_time_noise / sqrt(arm->visits > 1 ? arm->visits : 1.0));
}

/* What a step under an arm costs in a look, in steps of the chosen limit. */
static double step_cost(const struct limit_race *race, size_t place, size_t chosen)
{
    double steps = limit_race_first_steps(race, race->arms.arms[chosen].time_s);

    return limit_race_cost(race, place, chosen, 1.0) + look_overhead / steps;
}

/*
 * Of two arms the one whose error is larger for what it costs to make it smaller; the one that stands need
 * not be much more certain.
 */
static size_t less_certain(const struct limit_race *race, size_t chosen, size_t one, double one_error,
                           size_t other, double other_error)
{
    /* A longer visit does not show what visits differ by. */
    const double rather = race->arms.visit_time_noise > 0.0 ? 1.0 : 2.0;

    if (race->resting == one || race->resting == other)
        return race->resting == one ? other : one;
    /* A step makes the variance smaller by its square over what was paid for it. */
    one_error /= pow(step_cost(race, one, chosen), 0.25);
    other_error /= pow(step_cost(race, other, chosen), 0.25);
    if (race->standing == one)
        one_error *= rather;
    if (race->standing == other)
        other_error *= rather;
    return one_error >= other_error ? one : other;
}

/* Which arm decides between a contender and the chosen one. */
static size_t decisive(const struct limit_race *race, size_t contender, size_t chosen)
{
    const struct limit_arms *arms = &race->arms;

    if (is_at_bound(arms, contender, chosen))
        return less_certain(race, chosen, contender, time_error(arms, contender), 0, time_error(arms, 0));
    return less_certain(race, chosen, contender, limit_arms_deviation(arms, contender), chosen,
                        limit_arms_deviation(arms, chosen));
}

/* As many steps again as were measured, within reason. */
static double more_steps(const struct limit_race *race, size_t place)
{
    const struct limit_arm *arm = &race->arms.arms[place];
    double first = limit_race_first_steps(race, arm->time_s);

    return within(arm->steps, first, 4.0 * first);
}

/* Whether an arm that is as good as the chosen one is so near to the bound that its side may be chance. */
static bool is_unclear(const struct limit_arms *arms, size_t chosen)
{
    for (size_t i = 0; i < arms->count; i++) {
        if (limit_arms_known(arms, i) && limit_arms_score(arms, i) <= limit_arms_score(arms, chosen) &&
            off_bound(arms, i) < clear_errors * bound_error(arms, i))
            return true;
    }
    return false;
}

/*
 * Whether the highest limit is to be measured a second time before the race settles: every ratio hangs on it,
 * and one visit does not show what visits differ by.
 */
static bool wants_second(const struct limit_race *race, size_t chosen)
{
    return race->resting != 0 && isfinite(race->arms.objective.max_slowdown) && chosen != 0 &&
           race->arms.arms[0].visits == 1 && is_unclear(&race->arms, chosen);
}

/* How many steps the limit against which all are held is to be measured for before any other; 0: none. */
static double reference_steps(const struct limit_race *race, size_t top)
{
    const struct limit_arm *arm = &race->arms.arms[top];

    if (race->least_steps > 0 || race->resting == top)
        return 0.0;
    return fmax(ceil(scatter_steps(race, arm->time_s)) - arm->steps, 0.0);
}

/*
 * The arm around which to look: the best one, had what visits differ by been known from many of them. Known
 * from two or three, it may leave no arm that surely keeps the bound but the highest.
 */
static size_t likely(const struct limit_arms *arms, size_t chosen)
{
    struct limit_arms lenient = *arms;

    lenient.visit_factor = 0.0;
    (void)limit_arms_choose(&lenient, &chosen);
    return chosen;
}

/* The arm that decides on a known contender, and for how many steps; SETTLED when none does. */
static struct limit_race_action decide(const struct limit_race *race, const struct limit_shape *shape,
                                       size_t chosen, size_t best, double reserved)
{
    const struct limit_arms *arms = &race->arms;
    double step_s = arms->arms[reference(arms)].time_s;
    double left = left_steps(race, step_s, spent_steps_least) - reserved;
    bool is_short = step_s < short_step_s || scatter_steps(race, step_s) > 0.0;
    double bound_left =
        left_steps(race, step_s, is_short ? spent_steps_bound_short : spent_steps_bound) - reserved;
    size_t place = best;

    if (best == chosen && !find_known(race, shape, chosen, &place))
        return (struct limit_race_action){LIMIT_RACE_SETTLED, chosen, 0};
    if (is_at_bound(arms, place, chosen))
        left = bound_left;
    place = decisive(race, place, chosen);
    if (left > 0.0)
        return measure(place, fmin(more_steps(race, place), left));
    return (struct limit_race_action){LIMIT_RACE_SETTLED, chosen, 0};
}

struct limit_race_action limit_race_next(const struct limit_race *race)
{
    const struct limit_arms *arms = &race->arms;
    size_t top = reference(arms), chosen, best, place;
    struct limit_race_action action;
    struct limit_shape shape;
    double first, left, missing, reserved = 0.0;

    if (top == arms->count || (top > 0 && isfinite(arms->objective.max_slowdown)))
        return (struct limit_race_action){.verb = LIMIT_RACE_NOTHING};
    if (!limit_arms_known(arms, top))
        return measure(top, limit_race_first_steps(race, 1.0));
    missing = reference_steps(race, top);
    if (missing > 0.0)
        return measure(top, missing);
    if (!limit_arms_choose(arms, &chosen))
        return (struct limit_race_action){.verb = LIMIT_RACE_NOTHING};
    shape = limit_shape_of(arms, race->is_clock);
    best = likely(arms, chosen);
    first = limit_race_first_steps(race, arms->arms[top].time_s);
    if (wants_second(race, chosen))
        reserved = first + limit_race_warmup_steps(arms->arms[top].time_s);
    left = left_steps(race, arms->arms[top].time_s, spent_steps_least) - reserved;
    if (left > 0.0 &&
        (find_unknown(race, &shape, best, &place) || find_neighbour(race, &shape, best, &place)))
        return measure(place, race->least_steps > 0 ? first : within(left, first_steps_least, first));
    action = decide(race, &shape, chosen, best, reserved);
    return action.verb == LIMIT_RACE_SETTLED && reserved > 0.0 ? measure(0, first) : action;
}

/* The arm that the shape alone ruled out and that would cost the least to try; false for none. */
static bool find_untried(const struct limit_race *race, size_t chosen, size_t *out_place)
{
    double least = INFINITY;
    bool found = false;

    for (size_t i = 0; i < race->arms.count && i < race->arms.open; i++) {
        double cost;

        if (limit_arms_known(&race->arms, i) || race->arms.arms[i].left_out)
            continue;
        cost = limit_race_cost(race, i, chosen, 1.0);
        if (found && cost >= least)
            continue;
        found = true;
        least = cost;
        *out_place = i;
    }
    return found;
}

struct limit_race_action limit_race_look(const struct limit_race *race, size_t chosen, double allowance)
{
    const struct limit_arms *arms = &race->arms;
    double step_s = arms->arms[chosen].time_s;
    double warmup = limit_race_warmup_steps(step_s);
    double steps = fmax(limit_race_first_steps(race, step_s), ceil(first_s / step_s));
    struct limit_shape shape = limit_shape_of(arms, race->is_clock);
    double each, spare;
    size_t place;

    if (find_known(race, &shape, chosen, &place) && arms->arms[place].visits < LOOKS_MOST)
        place = decisive(race, place, chosen);
    else if (!find_unknown(race, &shape, chosen, &place) && !find_untried(race, chosen, &place))
        return (struct limit_race_action){.verb = LIMIT_RACE_NOTHING};
    each = limit_race_cost(race, place, chosen, 1.0);
    spare = allowance - look_overhead - each * (steps + warmup);
    if (spare < 0.0)
        return (struct limit_race_action){.verb = LIMIT_RACE_NOTHING};
    return measure(place, steps + fmin(spare / fmax(each, 1e-3), LOOK_LONGER * steps));
}
