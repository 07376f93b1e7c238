/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LIMIT_RACE_H
#define FLYBALL_POLICY_LIMIT_RACE_H

#include <stdint.h>

#include "policy/limit_arms.h"

/*
 * The search for the best limit: data in, next action out. It keeps nothing, so the same data gives
 * the same action on every rank and in every replay.
 *
 *     action = limit_race_next(&race);
 *     while (action.verb == LIMIT_RACE_MEASURE) {
 *         measure action.steps steps under arms[action.place], after a warm-up if another limit stood
 *         add what was measured to that arm, add its steps to race.spent_steps
 *         action = limit_race_next(&race);
 *     }
 *
 * The highest limit comes first: the bound refers to it, and it shows which limits cannot bind. Then
 * the race tries the limit that it expects to be the best, until no limit is left
 * that could be better than the best one by more than the indifference and could keep the bound, with
 * errors of 5 in 100. Limits that the shape rules out are not tried, but for those next to the best. Of two
 * that contend, the less certain one is measured for longer. Where a ratio to the highest limit is near the
 * bound, that limit is measured a second time. The race settles when its steps are used up, with the best
 * limit that surely keeps the bound.
 *
 * Where the times of single steps scatter by more than a fifth, all measurements are longer, and so is
 * the search. A few late steps do not count for that.
 *
 * After that, limit_race_look says what is worth another look within an allowance: first a limit that
 * still contends, then, once each, the limits that were left out because of the shape alone.
 *
 * Best arm with fixed confidence: Even-Dar, Mannor and Mansour, JMLR 7 (2006); the order by
 * optimistic scores as in Kalyanakrishnan et al., ICML 2012 (LUCB). Pure; thread-safe.
 */
struct limit_race {
    struct limit_arms arms;
    bool is_clock;
    uint32_t least_steps; /* of a measurement; 0: as many as its time needs */
    double
        scattering_s;   /* a measurement takes so long at most because steps scatter; 0: no longer for that */
    double spent_steps; /* so far, warm-up included */
    size_t standing;    /* the arm that stands and can be measured on without a warm-up; SIZE_MAX: none */
    size_t resting;     /* the arm that stands and gives no new figures now; SIZE_MAX: none */
};

enum limit_race_verb {
    LIMIT_RACE_MEASURE,
    LIMIT_RACE_SETTLED, /* the best arm is `place` */
    LIMIT_RACE_NOTHING, /* no arm can be chosen; nothing is worth a look now */
};

struct limit_race_action {
    enum limit_race_verb verb;
    size_t place;
    uint32_t steps; /* to measure */
};

struct limit_race_action limit_race_next(const struct limit_race *race);

/*
 * What to look at again while `chosen` stands. `allowance` is what looks may cost, in steps of the
 * chosen limit: time, energy or score beyond it, whichever is more.
 */
struct limit_race_action limit_race_look(const struct limit_race *race, size_t chosen, double allowance);

/* What so many steps under an arm cost beyond those under `chosen`, in steps of the latter; at least 0. */
double limit_race_cost(const struct limit_race *race, size_t place, size_t chosen, double steps);

/* How many steps a first measurement takes when a step takes so long; how many a warm-up. */
uint32_t limit_race_first_steps(const struct limit_race *race, double step_s);
uint32_t limit_race_warmup_steps(double step_s);

/*
 * What is known of a limit that was not measured, from those that were and from how GPUs behave:
 * a lower limit is never faster and never draws more; its power falls at most in proportion; where
 * limits bind, energy and cost bend upwards, or downwards by very little. An estimate says which
 * limit to try next; what may be left untried follows from the bounds alone. Pure; thread-safe.
 */
struct limit_shape {
    bool is_clock;   /* the limits are ceilings on the clock */
    double felt;     /* drawn, or the clock, without a limit; at most the highest limit */
    double binds_at; /* limits above this, a little more, are as good as none */
};

/* At least one arm must be known. */
struct limit_shape limit_shape_of(const struct limit_arms *arms, bool is_clock);

struct limit_estimate {
    double time_s, power_w, score;
};

/*
 * The least time and the least score that an unknown arm can have, given the known ones and their
 * errors; 0 where nothing is known.
 */
double limit_shape_least_time(const struct limit_arms *arms, size_t place);
double limit_shape_least_score(const struct limit_shape *shape, const struct limit_arms *arms, size_t place);

#endif
