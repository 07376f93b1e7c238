/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_GUARD_TEXT_H
#define FLYBALL_JOB_DECIDE_GUARD_TEXT_H

#include "job/decide/state.h"

/* What the guard of a search does (policy/search_guard.h), in words without a full stop. Pure. */

/*
 * Why the default runs: with REASON_GUARD, or with REASON_GUARD_DOUBT, where `retry` says that tries of the
 * same recurrence failed before.
 */
void guard_text(const struct job_line *line, enum reason reason, bool retry, char text[JOB_WHY_MAX]);

/*
 * What holds at present: why the next recurrence runs the default in the place of what the policy chooses, or
 * that nothing is held against the default since it fails; "" for neither.
 */
void guard_text_now(const struct job_state *state, const struct job_line *line, char text[JOB_WHY_MAX]);

#endif
