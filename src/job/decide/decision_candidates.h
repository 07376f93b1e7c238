/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECISION_CANDIDATES_H
#define FLYBALL_JOB_DECIDE_DECISION_CANDIDATES_H

#include "job/core/decision_numbers.h"
#include "job/decide/state.h"

/*
 * Gives what the policy expects of each batch size before a new recurrence; false when it has nothing to say:
 * it has no model, no run has reached its target, or the job has none.
 */
bool decision_candidates(const struct job_state *state, const struct job_line *line,
                         struct decision_outlook *out_outlook);

#endif
