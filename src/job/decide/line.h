/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_LINE_H
#define FLYBALL_JOB_DECIDE_LINE_H

#include "job/decide/state.h"

/* A kind of hardware: found, added to by the fold, and asked by decisions. */

/* The line of that hardware; lines.count when there is none yet. */
size_t job_state_line(const struct job_state *state, const struct job_hardware *hardware);

/* The place of a batch size on it; spec->batch_count when its ranks do not share that. */
size_t job_line_batch(const struct job_line *line, uint32_t size);

/* Adds one. FLY_EUSAGE when the ranks cannot share the default batch size or nothing says what power costs.
 */
int job_state_add_line(struct job_state *state, const struct job_hardware *hardware,
                       struct fly_error *out_error);

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

/* ---- for those who decide ---- */

/* The batch size of least cost per reached target that runs and keeps the bound; the default before any, or
 * the largest that runs. */
size_t job_line_best(const struct job_line *line);

/* Whether the batch size fits and is not given up. */
bool job_line_runs(const struct job_line *line, size_t batch);

/* The longest time that `batch` took to its target; NAN when it never reached it. */
double job_line_longest_s(const struct job_line *line, size_t batch);

/* The time that the bound refers to: the default's; NAN when it is not known. */
double job_line_reference_s(const struct job_line *line);

/* Whether the batch size keeps the bound, as far as is known. */
bool job_line_keeps_bound(const struct job_line *line, size_t batch);

/*
 * The epochs that a trial of `batch` at `limit_w` may run by what is known before it
 * starts; 0 in `out_known` when nothing is.
 */
int job_line_epochs(const struct job_line *line, size_t batch, double limit_w, bool *out_known,
                    uint32_t *out_epochs, struct fly_error *out_error);

#endif
