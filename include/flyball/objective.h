/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_OBJECTIVE_H
#define FLYBALL_OBJECTIVE_H

#include <flyball/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the user wants: something to make small, within a bound on the slowdown.
 *
 *     energy              least energy
 *     time                least time
 *     cost:0.5            least eta * energy + (1 - eta) * max_power * time
 *     lowest-limit        the lowest power limit that keeps the bound
 *     carbon              least grams of CO2
 *     money               least money
 *
 * Carbon and money are least with least energy, and are chosen as that, if nothing is known of
 * the grid, and wherever everything that is compared runs on the same grid at once.
 *
 * A bound of "3%" or "1.03x" allows 1.03 times the time of the reference. That is
 * the highest power limit if only the limit is chosen, and the default batch size
 * at the highest limit if the batch size is chosen too. Where a caller names none,
 * fly_objective_usual_bound applies.
 */
enum fly_objective_kind {
    FLY_OBJECTIVE_ENERGY,
    FLY_OBJECTIVE_TIME,
    FLY_OBJECTIVE_COST,
    FLY_OBJECTIVE_LOWEST_LIMIT,
    FLY_OBJECTIVE_CARBON,
    FLY_OBJECTIVE_MONEY,
};

/* A value type: its layout never changes within a major version. */
struct fly_objective {
    enum fly_objective_kind kind;
    double eta;          /* 0 .. 1, for FLY_OBJECTIVE_COST alone */
    double max_slowdown; /* factor >= 1; infinity for no bound */
};

/*
 * Reads an objective as written above; the bound becomes "none". FLY_EUSAGE for
 * an unknown word (the nearest is named) or an eta outside 0 .. 1. Thread-safe.
 */
FLY_API int fly_objective_parse(const char *text, struct fly_objective *out_objective,
                                struct fly_error *out_error);

/*
 * Reads a bound: "3%" gives 1.03, "1.03x" gives 1.03, "none" infinity. FLY_EUSAGE for
 * anything else, a bare number included, since "3" could mean either. Thread-safe.
 */
FLY_API int fly_slowdown_parse(const char *text, double *out_factor, struct fly_error *out_error);

/*
 * The bound of who names none: 1.05, but infinity for cost, which weighs time itself, and
 * for time. Sessions and tuners take it for a max_slowdown of 0. Pure.
 */
FLY_API double fly_objective_usual_bound(enum fly_objective_kind kind);

#ifdef __cplusplus
}
#endif

#endif
