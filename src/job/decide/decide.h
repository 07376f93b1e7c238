/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECIDE_H
#define FLYBALL_JOB_DECIDE_DECIDE_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * What a job decides, on top of its policy. Pure: from the state, the question and the
 * store's time.
 *
 * A proposal is, in this order, the user's pin; a control run of the default; the
 * default, for a job without a target; the best known choice, on the last try; else the
 * policy's, unless that does not fit into the GPUs, is given up because its trials crash again and
 * again, is known to break the bound, or could miss the time by which a model has to stand: then
 * the best known choice again.
 * Where the policy's or the best choice has crashed CRASH_STREAK_LEAST times in a row and no other batch
 * size has ever trained, another one is tried in its place.
 * What is not the policy's own runs without a cap.
 */

struct decision {
    struct proposed_record record; /* texts are the question's, the state's or `why` */
    size_t batch;
    bool refused;      /* not one epoch fits below its bound: it ends before it begins */
    uint32_t given_up; /* the batch size that the policy wanted and that is given up; 0: none */
    uint32_t crashing; /* the one that would have been run, and whose trials crashed in a row; 0: none */
    char why[JOB_WHY_MAX];
};

/* May add a line to the state, which the event of the decision will stand for. */
int decide_proposal(struct job_state *state, const struct job_question *question, int64_t now_us,
                    struct decision *out_decision, struct fly_error *out_error);

/* The limit and the epochs of a trial whose profile has come. Errors as the policies'. */
int decide_profile(const struct job_state *state, const struct job_trial *trial,
                   struct profiled_record *record, struct fly_error *out_error);

/* What a report is answered with; fills `record`, of which the report's own fields are set. */
int decide_report(const struct job_state *state, const struct job_trial *trial, int64_t now_us,
                  struct epoch_record *record, struct fly_error *out_error);

#endif
