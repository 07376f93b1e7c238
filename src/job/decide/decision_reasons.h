/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECISION_REASONS_H
#define FLYBALL_JOB_DECIDE_DECISION_REASONS_H

#include <jansson.h>

#include "job/decide/state.h"

/* Returns the numbers behind a choice (job/core/decision_numbers.h): a new reference, NULL without memory. */
json_t *decision_reasons(const struct job_state *state, const struct job_line *line);

#endif
