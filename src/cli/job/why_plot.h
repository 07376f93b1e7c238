/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_WHY_PLOT_H
#define FLYBALL_CLI_JOB_WHY_PLOT_H

#include "base/file/atomic_file.h"
#include "job/core/decision_numbers.h"
#include "job/past/history.h"

/*
 * The belief with which a trial was chosen, as a picture: what a run of each batch size was expected to cost,
 * with bands that hold the mean cost with a probability of 50 and 90 %, the trials before it, and the choice.
 */
struct why_plot {
    const struct decision_outlook *outlook;
    const struct job_history *history;
    uint64_t trial;  /* its number */
    uint32_t chosen; /* its batch size */
};

/* Draws it into the open file and commits that, or discards it on failure. */
int why_plot_commit(const struct why_plot *plot, struct atomic_file *file, struct fly_error *out_error);

#endif
