/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECIDE_H
#define FLYBALL_JOB_DECIDE_DECIDE_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * Decides what a job runs, on top of its policy. Pure: decides from the state, the question and the store's
 * time.
 *
 * A proposal is the first of these that applies: the user's pin; a control run of the default; the default,
 * for a job without a target; the best known choice, on the last try; the policy's choice. The policy's
 * choice is replaced by the best known one when it does not fit into the GPUs, is given up because its trials
 * crash again and again, is known to break the bound, or could miss the time by which a model must be ready.
 * When the policy's or the best choice has crashed CRASH_STREAK_LEAST times in a row and no other batch size
 * has ever trained, another batch size is tried instead. Only the policy's own choices are stopped at a cost
 * cap.
 */

struct decision {
    struct proposed_record record; /* its texts are the question's, the state's or `why` */
    size_t batch;
    bool refused;      /* not one epoch fits below its bound: the trial ends before it begins */
    uint32_t given_up; /* the batch size that the policy wanted but that is given up, or left; 0: none */
    uint32_t crashing; /* the batch size that would have run, had its trials not crashed in a row; 0: none */
    char why[JOB_WHY_MAX];
};

/* The submission that a question belongs to; "": one of its own. */
const char *decide_submission(const struct job_question *question);

/* Decides what to run. May add a line to the state; the event that records the decision will add it too. */
int decide_proposal(struct job_state *state, const struct job_question *question, int64_t now_us,
                    struct decision *out_decision, struct fly_error *out_error);

/* Decides the limit and the epochs of a trial whose profile has come. Errors are the policies'. */
int decide_profile(const struct job_state *state, const struct job_trial *trial,
                   struct profiled_record *record, struct fly_error *out_error);

/* Decides the answer to a report; `record` must have the report's own fields, and gets the answer's. */
int decide_report(const struct job_state *state, const struct job_trial *trial, int64_t now_us,
                  struct epoch_record *record, struct fly_error *out_error);

#endif
