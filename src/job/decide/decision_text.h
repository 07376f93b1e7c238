/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECISION_TEXT_H
#define FLYBALL_JOB_DECIDE_DECISION_TEXT_H

#include "job/decide/decide.h"

/* Writes the reason of a decision as a sentence; the numbers are in decision_reasons.h. */
void decision_explain(const struct job_state *state, struct decision *decision);

#endif
