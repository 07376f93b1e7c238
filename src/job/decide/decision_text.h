/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECISION_TEXT_H
#define FLYBALL_JOB_DECIDE_DECISION_TEXT_H

#include <jansson.h>

#include "job/core/decision_numbers.h"
#include "job/decide/decide.h"
#include "job/decide/state.h"

/* Writes the reason of a decision as a sentence, which decision_reasons has the numbers of. */
void decision_explain(const struct job_state *state, struct decision *decision);

/* Returns the numbers behind a choice (job/core/decision_numbers.h): a new reference, NULL without memory. */
json_t *decision_reasons(const struct job_state *state, const struct job_line *line);

/* What the guard of a search does (policy/search_guard.h), in words without a full stop. Pure. */

/*
 * What holds at present: why the next recurrence runs the default in the place of what the policy chooses, or
 * that nothing is held against the default since it fails; "" for neither.
 */
void guard_text_now(const struct job_state *state, const struct job_line *line, char text[JOB_WHY_MAX]);

#endif
