/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_BROUGHT_H
#define FLYBALL_JOB_DECIDE_BROUGHT_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

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
void brought_gather(const struct job_state *state, const struct job_definition *wanted,
                    const struct fly_objective *objective, struct brought_record *record);

/* Tells a line's policy. */
int brought_tell(struct job_line *line, const struct brought_record *record, struct fly_error *out_error);

/* Adds a line, as job_state_add_line, and tells it what the job brought for all hardware. */
int brought_add_line(struct job_state *state, const struct job_hardware *hardware,
                     struct fly_error *out_error);

/* Keeps it for lines to come. */
int brought_keep(struct job_state *state, const struct brought_record *record, struct fly_error *out_error);

#endif
