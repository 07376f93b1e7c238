/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_LIMIT_ARMS_H
#define FLYBALL_POLICY_LIMIT_ARMS_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/objective.h>

/*
 * The limits among which a search chooses, each an arm, with what was measured under it and how
 * certain that is. From this follows which arm is the best, which ones keep the bound, and with
 * what confidence. A limit is a power limit in W or a ceiling on the clock in MHz. A place is an
 * index; the arm at place 0 has the highest limit, to which the bound refers. Errors are standard
 * deviations as fractions of the figure. Pure; thread-safe.
 */
struct limit_arm {
    double limit;
    double time_s, power_w; /* of a step, and of all GPUs; NAN: not measured */
    double time_error;      /* from the spread of the steps */
    double scatter;     /* of most single steps, as a fraction, the few late ones left out; 0: not known */
    double power_error; /* from the meter; NAN: not known */
    double steps;       /* that were measured; 0: not known */
    unsigned visits;    /* separate measurements; 0: the figures come from elsewhere */
    double felt;        /* mean W drawn or MHz, of the GPU with the most; NAN: not known */
    bool left_out;      /* no figure can be had */
};

struct limit_arms {
    const struct limit_arm *arms; /* highest limit first; borrowed */
    size_t count;
    size_t open; /* only the first so many may be chosen */
    struct fly_objective objective;
    double max_power_w; /* as in cost.h */
    /* By how much visits of one limit differ beyond what their own errors explain, and how many of these
       deviations a mean may be off. */
    double visit_time_noise, visit_power_noise, visit_factor;
    double indifference; /* an arm that is better by less than this fraction is not looked for */
};

/* How many standard deviations half of an interval is that holds the figure in 95 of 100. */
extern const double limit_half_width;

bool limit_arms_known(const struct limit_arms *arms, size_t place);

/* The objective's score of a limit with such figures; the least is the best. */
double limit_arms_score_of(const struct limit_arms *arms, double limit, double power_w, double time_s);
double limit_arms_score(const struct limit_arms *arms, size_t place);

/* The standard deviation of a known arm's score, as a fraction; NAN: not known. */
double limit_arms_deviation(const struct limit_arms *arms, size_t place);

/*
 * How far the ratio of a time to that of the highest limit may be off, as a fraction. The interval
 * is one for looking again and again: its factor grows each time that the number of steps doubles,
 * so that all its looks together err in 5 of 100 searches at most.
 */
double limit_arms_ratio_error(const struct limit_arms *arms, double time_error, double steps,
                              unsigned visits);

/* Whether a known arm may keep the bound, and whether it does with all errors to spare. */
bool limit_arms_may_keep_bound(const struct limit_arms *arms, size_t place);
bool limit_arms_keeps_bound(const struct limit_arms *arms, size_t place);

/*
 * The known arm with the least score of those that surely keep the bound; the higher of equal ones.
 * False for none, and when there is a bound and the highest limit is not known.
 */
bool limit_arms_choose(const struct limit_arms *arms, size_t *out_place);

#endif
