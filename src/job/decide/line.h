/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_LINE_H
#define FLYBALL_JOB_DECIDE_LINE_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * A line: what a job knows of itself on one kind of hardware. The fold finds and extends lines, decisions ask
 * them.
 */

/* The index of the line of that hardware; lines.count when there is none yet. */
size_t job_state_line(const struct job_state *state, const struct job_hardware *hardware);

/* The index of a batch size on the line; spec->batch_count when its ranks cannot share that size. */
size_t job_line_batch(const struct job_line *line, uint32_t size);

/* Tells all deciders how many recurrences are left, after one began or more were announced. */
void job_lines_tell_left(struct job_state *state);

/*
 * Adds a line. Returns FLY_EUSAGE when the ranks cannot share the default batch size, or when the price of
 * power is not known.
 */
int job_state_add_line(struct job_state *state, const struct job_hardware *hardware,
                       struct fly_error *out_error);

/* Forgets what was observed on the line, but not what fits into its memory. */
int job_line_renew(struct job_state *state, struct job_line *line, struct fly_error *out_error);

void job_line_deinit(struct job_line *line);

/* Updates which batch sizes fit on every line, after one ran out of memory or a line was added. */
int job_lines_exclude(struct job_state *state, struct fly_error *out_error);

/* A trial that shows what its batch size costs, at the first size of the data. */
struct line_observation {
    size_t batch;
    double limit_w;
    bool profiled; /* it ran under other limits for some of the time */
    bool reached;
    uint32_t epochs; /* until it was reached */
    double energy_j;
    double time_s;
};

void job_line_observe(struct job_line *line, const struct line_observation *observed);

/*
 * The units of work in an epoch: of the batch size's own profile, else as many as the nearest profiled batch
 * size shows by its samples. 0: not known, or the others do not agree.
 */
double job_line_units(const struct job_line *line, size_t batch);

/*
 * Takes in the final metric of a whole training, for a job that bounds how much worse it may be. Batch sizes
 * whose models turn out worse than allowed are left, and the policy looks for others.
 */
int job_line_take_final(const struct job_state *state, struct job_line *line, size_t batch, double metric,
                        struct fly_error *out_error);

/* Tells a policy that has just been loaded which batch sizes are left. */
int job_line_tell_left(struct job_line *line, struct fly_error *out_error);

/*
 * What training costs under the limits of the batch size's unfinished profile, or under the highest limit if
 * it has none, over what it costs under the best limit: as the nearest profiled batch size shows. 0: there is
 * none.
 */
double job_line_dearer(const struct job_line *line, size_t batch);

/* ---- for decisions ---- */

/*
 * The batch size with the least cost per reached target that runs and keeps the bound. When none is known,
 * the default or the largest that runs.
 */
size_t job_line_best(const struct job_line *line);

/* Whether the batch size never trained here, and another one did. */
bool job_line_untried(const struct job_line *line, size_t batch);

/* Whether the batch size fits, is not given up, and its models are not worse than allowed. */
bool job_line_runs(const struct job_line *line, size_t batch);

/* The longest time in which `batch` reached its target, at today's size of the data; NAN when it never did.
 */
double job_line_longest_s(const struct job_line *line, size_t batch);

/* The time to which the bound refers: the default's, at today's size of the data; NAN when not known. */
double job_line_reference_s(const struct job_line *line);

/*
 * Whether the batch size keeps the bound, as far as known: by its limits for a policy that chooses pairs,
 * else by the time that it took.
 */
bool job_line_keeps_bound(const struct job_line *line, size_t batch);

/*
 * Stores the epochs that a trial of `batch` at `limit_w` may run, by what is known before it starts. Sets
 * `out_known` to false when nothing is known.
 */
int job_line_epochs(const struct job_line *line, size_t batch, double limit_w, bool *out_known,
                    uint32_t *out_epochs, struct fly_error *out_error);

/*
 * What is brought from elsewhere to a job: gathered from the state of the job that has it, and taken by the
 * state of the job that gets it. Pure.
 */

/* As policies are told it, and as logs have it. */
struct past_tally brought_tally(const struct brought_batch *batch);
struct brought_batch brought_of(uint32_t batch_size, const struct past_tally *tally);

/*
 * Gathers what all lines showed under the revision that holds, as another objective prices it: epochs of all
 * lines together, costs of the line with the most profiles. Where nothing was observed since something was
 * brought, that is gathered again. Batch sizes that `wanted` does not have are left out. Fills in `batches`
 * and `count`.
 */
void brought_gather(const struct job_state *state, const struct fly_job_definition *wanted,
                    const struct fly_objective *objective, struct brought_record *record);

/* Tells a line's policy. */
int brought_tell(struct job_line *line, const struct brought_record *record, struct fly_error *out_error);

/* Adds a line, as job_state_add_line, and tells it what the job brought for all hardware. */
int brought_add_line(struct job_state *state, const struct job_hardware *hardware,
                     struct fly_error *out_error);

/* Keeps it for lines to come. */
int brought_keep(struct job_state *state, const struct brought_record *record, struct fly_error *out_error);

#endif
