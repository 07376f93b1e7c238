/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_FOLDING_H
#define FLYBALL_JOB_DECIDE_STATE_FOLDING_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * One event while it is folded into the state. Each kind of event has a function, in state_fold.c,
 * state_fold_begin.c or state_fold_end.c, which returns 0, a negative code, or JOB_FOLD_ANEW. An event of a
 * trial that is not open (any more) changes nothing of that trial.
 */
struct folding {
    struct job_state *state;
    const struct store_event *event;
    json_t *body;            /* borrowed */
    struct job_trial *trial; /* the event's, if it is open */
    const struct batch_policy *const *plugins;
    struct fly_error *error;
};

/* Returns FLY_EDATA with the event and why its body was refused, or with the member that is wrong. */
int fold_refuse(const struct folding *folding, const struct fly_error *why);
int fold_refuse_member(const struct folding *folding, const char *name, const char *expected);

/* The line of the event's trial, which must be open. */
struct job_line *fold_line(const struct folding *folding);

/* An expired trial that gives a sign of life is no longer silent. */
void fold_heard_of(const struct folding *folding);

/* Tells the event to the decider of that line. */
int fold_tell(const struct folding *folding, size_t line, const struct event *event);

#endif
