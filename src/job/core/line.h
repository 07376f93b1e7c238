/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_LINE_H
#define FLYBALL_JOB_CORE_LINE_H

#include "job/core/state.h"

/* The fold's part of one kind of hardware; what decisions ask of it stands in state.h. */

void job_line_deinit(struct job_line *line);

/* Brings what fits up to date on every line, after one of them ran out of memory or was added. */
int job_lines_exclude(struct job_state *state, struct fly_error *out_error);

/* A trial that tells what its batch size costs. */
struct line_observation {
    size_t batch;
    double limit_w;
    bool profiled; /* it ran under other limits for a while */
    bool reached;
    uint32_t epochs; /* until then */
    double energy_j;
    double time_s;
};

void job_line_observe(struct job_line *line, const struct line_observation *observed);

#endif
