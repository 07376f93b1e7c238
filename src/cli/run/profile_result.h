/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_PROFILE_RESULT_H
#define FLYBALL_CLI_RUN_PROFILE_RESULT_H

#include <flyball/objective.h>
#include <flyball/tuner.h>

#include "base/file/atomic_file.h"
#include "cli/frame/call.h"
#include "cli/run/run_tune.h"

/*
 * The result of `flyball profile`, for its report, its picture and its file. The optimum of each
 * selector is that of flyball/power_selector.h over the valid points. Bounds are relative to the
 * highest setting, and there is no answer if that has no valid point. A point that is no further
 * from the highest setting than the uncertainty of the two is not chosen. With both knobs, ceilings
 * were measured under the highest limit, and each choice is the best of all points; the lowest limit
 * is chosen among the limits.
 *
 *     struct profile_result result;
 *
 *     profile_result_of(&tune, &result);
 *     code = profile_report_emit(call, &result, out_error);
 */
enum profile_selector {
    PROFILE_LEAST_ENERGY,
    PROFILE_LEAST_TIME,
    PROFILE_LEAST_COST,
    PROFILE_ENERGY_WITHIN,
    PROFILE_COST_WITHIN,
    PROFILE_LOWEST_LIMIT_WITHIN,
    PROFILE_SELECTOR_COUNT
};

enum { PROFILE_NAME_MAX = 96, PROFILE_SETTING_MAX = 32 };

struct profile_choice {
    struct fly_objective objective;
    char name[PROFILE_NAME_MAX];         /* "least energy within 3 % more time" */
    const struct fly_tuner_point *point; /* NULL: none can be chosen */
    const struct fly_tuner_point *tied;  /* if `point` is NULL: the best point, if the uncertainty of both
                                            cannot tell it from the highest limit's; else NULL */
};

struct profile_result {
    const struct run_tune *tune;           /* borrowed */
    const struct fly_tuner_point *highest; /* the highest limit's point; NULL unless valid */
    size_t valid, tried;                   /* points; `tried` counts those with any mark but "not measured" */
    bool complete;                         /* every setting was tried */
    const char *why;                       /* why it is not complete, a clause; borrowed; NULL if complete */
    bool of_power, of_clock;               /* which knobs have points */
    double max_power_w;                    /* that the cost uses */
    struct profile_choice choices[PROFILE_SELECTOR_COUNT];
};

void profile_result_of(const struct run_tune *tune, struct profile_result *out_result);

/* Writes a point's setting: "250 W", "1110 MHz". */
const char *profile_setting(const struct fly_tuner_point *point, char text[PROFILE_SETTING_MAX]);
/* "limit", "ceiling", "setting": what the points are of. */
const char *profile_noun(const struct profile_result *result);

extern const struct quantities profile_quantities, profile_ends_quantities;

/* "flyball.profile/3" as table, JSON or CSV. */
int profile_report_emit(const struct cli_call *call, const struct profile_result *result,
                        struct fly_error *out_error);

/* Draws energy over the time of a step. Commits or discards the file. */
int profile_plot_commit(const struct profile_result *result, struct atomic_file *file,
                        struct fly_error *out_error);

/* Saves the valid points for 'flyball run --tune': those of the limits, if there are any. */
int profile_result_save(const struct profile_result *result, const char *path, struct fly_error *out_error);
/* The same in a directory, by the key of the points; of both knobs in two files. Stores the last one's path.
 */
int profile_result_save_in(const struct profile_result *result, const char *directory,
                           char out_path[PROFILE_PATH_MAX], struct fly_error *out_error);

#endif
