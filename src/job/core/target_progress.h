/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_TARGET_PROGRESS_H
#define FLYBALL_JOB_CORE_TARGET_PROGRESS_H

#include "job/core/job.h"

/*
 * How far a trial is on its way to its target. A job may ask that the target holds for several reports in a
 * row, so that one lucky metric is not enough; and that the best metric so far counts, as of a program that
 * keeps its best model. Pure.
 */
struct target_progress {
    double best;   /* metric so far; NAN: none */
    uint32_t held; /* reports in a row whose metric met the target, up to the newest */
};

/* Of a trial without reports. */
extern const struct target_progress target_progress_none;

/* Returns the progress after one more report. */
struct target_progress target_progress_after(const struct fly_job_definition *definition,
                                             struct target_progress before, double metric);

/* Whether the target is reached. */
bool target_reached(const struct fly_job_definition *definition, const struct target_progress *progress);

/* The metric that counts after a report of `metric`. */
double target_counted(const struct fly_job_definition *definition, const struct target_progress *progress,
                      double metric);

#endif
