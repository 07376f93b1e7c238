/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POWER_SEARCH_H
#define FLYBALL_POWER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>
#include <flyball/objective.h>
#include <flyball/power_profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Just-in-time power-limit search: tries each power limit for some steps of a
 * running training and settles on the best (You et al., NSDI '23, section 4.2).
 *
 * A state machine without input or output. The caller tells it what happened
 * and carries out what it answers, in the order of the fields of the action:
 *
 *     struct fly_power_search_action action;
 *     fly_power_search_step_begin(search, &action);       // before every step
 *     while (action.close_window) {
 *         read energy and time since the window was opened
 *         fly_power_search_measured(search, energy_j, time_s, &action);
 *     }
 *     if (action.set_limit)
 *         set all GPUs of the job to action.limit_w
 *     if (action.open_window)
 *         note energy and time now
 *
 *     READY --wait_steps--> WARMUP --warmup_steps--> PROFILING --profile_steps--+
 *                              ^                                                |
 *                              +------------- next limit ----------------------+--> DONE
 *
 * Limits are tried from the highest to the lowest. A window covers whole steps.
 * The end of an epoch closes an open window; what was measured is kept and the
 * next epoch measures the remaining steps, under the same limit, so that a
 * profile is completed however short the epochs are. (The published optimizer
 * starts a limit over at each epoch's end.)
 *
 * If the window turns out too short to mean anything, the caller answers by
 * fly_power_search_extend instead, and the window goes on for more steps.
 *
 * A measurement that is not known is passed as NaN. Its limit is then measured
 * again, and left out after FLY_POWER_SEARCH_TRIES such windows. If no limit
 * could be measured, the search ends at the highest limit.
 *
 * Not thread-safe: one thread at a time per handle. Allocates only in _new.
 */
struct fly_power_search;

enum fly_power_search_state {
    FLY_POWER_SEARCH_READY,
    FLY_POWER_SEARCH_WARMUP,
    FLY_POWER_SEARCH_PROFILING,
    FLY_POWER_SEARCH_DONE,
};

enum { FLY_POWER_SEARCH_LIMITS_MAX = 256, FLY_POWER_SEARCH_TRIES = 3 };

struct fly_power_search_options {
    size_t size;                           /* sizeof(struct fly_power_search_options) */
    const double *limits_w;                /* the limits to try, > 0, all different, in any order; copied */
    size_t limit_count;                    /* 1 .. FLY_POWER_SEARCH_LIMITS_MAX */
    uint32_t wait_steps;                   /* before the first limit; the published default is 1 */
    uint32_t warmup_steps;                 /* under each limit before its window; 10 */
    uint32_t profile_steps;                /* in each window, >= 1; 40 */
    struct fly_objective objective;        /* how the limit is chosen */
    double max_power_w;                    /* as in cost.h; for FLY_OBJECTIVE_COST */
    const struct fly_power_point *profile; /* saved points, per step, or NULL; copied */
    size_t profile_count;                  /* a limit found there is not measured again */
};

struct fly_power_search_action {
    bool close_window; /* first: close the window and report it by fly_power_search_measured */
    bool set_limit;    /* then: set limit_w */
    bool open_window;  /* last: open a window */
    double limit_w;    /* meaningful only with set_limit */
};

/*
 * Makes a search in state READY, or DONE if the saved profile holds every limit. (A
 * point for a limit that is not to be tried is an error: it is another GPU's.)
 * FLY_EUSAGE for options out of range, FLY_EDATA for a profile that does not
 * fit, FLY_ENOMEM. The caller owns the handle.
 */
FLY_API int fly_power_search_new(const struct fly_power_search_options *options,
                                 struct fly_power_search **out_search, struct fly_error *out_error);

/* Frees the search; NULL is fine. */
FLY_API void fly_power_search_free(struct fly_power_search *search);

/*
 * A training step begins. Carry out the action before the step runs. FLY_ESTATE
 * if a measurement is still owed.
 */
FLY_API int fly_power_search_step_begin(struct fly_power_search *search,
                                        struct fly_power_search_action *out_action);

/* An epoch has ended: evaluation may follow. FLY_ESTATE as above. */
FLY_API int fly_power_search_epoch_end(struct fly_power_search *search,
                                       struct fly_power_search_action *out_action);

/*
 * The answer to close_window.
 *
 * energy_j  of all GPUs in the window, or NaN when unknown; a value that is not
 *           positive and finite counts as unknown
 * time_s    of the slowest rank, likewise
 *
 * FLY_ESTATE when no window was to be closed.
 */
FLY_API int fly_power_search_measured(struct fly_power_search *search, double energy_j, double time_s,
                                      struct fly_power_search_action *out_action);

/*
 * The other answer to close_window: measure the limit on trial for `steps` more
 * steps than so far. In mid-epoch its window stays open, and nothing is owed any
 * more. At an epoch's end the action asks for close_window again; answer it by
 * fly_power_search_measured, and the steps follow in the next epoch.
 * FLY_ESTATE when no window was to be closed, FLY_EUSAGE for no steps or more than
 * 2^32 - 1 in all.
 */
FLY_API int fly_power_search_extend(struct fly_power_search *search, uint32_t steps,
                                    struct fly_power_search_action *out_action);

/*
 * Ends the warm-up of the limit on trial: the next step opens its window. For a
 * caller who knows that the GPUs cannot feel the change, such as one of two limits
 * above all they draw. FLY_ESTATE outside FLY_POWER_SEARCH_WARMUP.
 */
FLY_API int fly_power_search_skip_warmup(struct fly_power_search *search);

/*
 * Leaves out every limit that is still to be measured and chooses among the
 * others, for a caller who knows that none of those can win. The action replaces
 * the one of the call before. FLY_ESTATE when done already or a measurement is owed;
 * a window that is open is forgotten.
 */
FLY_API int fly_power_search_finish(struct fly_power_search *search,
                                    struct fly_power_search_action *out_action);

/* Where the search stands. */
FLY_API enum fly_power_search_state fly_power_search_state(const struct fly_power_search *search);

/*
 * The limit the GPUs should have now: the highest before the first trial, the
 * one on trial, then the chosen one.
 */
FLY_API double fly_power_search_limit_w(const struct fly_power_search *search);

/*
 * Copies up to `capacity` complete points, per step, highest limit first, and
 * returns how many there are: what to save, and what `profile` takes back.
 */
FLY_API size_t fly_power_search_profile(const struct fly_power_search *search,
                                        struct fly_power_point *out_points, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
