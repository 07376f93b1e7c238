/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECISION_TEXT_H
#define FLYBALL_JOB_DECIDE_DECISION_TEXT_H

#include "job/decide/decide.h"

/* Why, in a sentence and in numbers; the numbers are a new reference or NULL. */
void decision_explain(const struct job_state *state, struct decision *decision);
json_t *decision_numbers(const struct job_state *state, const struct job_line *line);

#endif
