/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECIDED_AGAIN_H
#define FLYBALL_JOB_DECIDE_DECIDED_AGAIN_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * Decides a job's exported log once more. It folds each event as recorded. Before a proposal, a chosen limit
 * or an answer to a report, it asks the code that decides live the same question in the same state, and
 * compares the decision with the recorded one. The machines' answers are in the log, so nothing is simulated:
 * crashes, bounds, controls, overlapping tries and unfinished profiles are there as they were.
 *
 * When versions of the software decide differently, the recorded decision stays the fact on which the next
 * one builds.
 */
enum { REPLAY_DIFFERENCE_MAX = 256 };

/* One decision. */
struct job_replayed {
    enum record_kind kind; /* RECORD_PROPOSED, RECORD_PROFILED or RECORD_EPOCH */
    uint64_t trial;
    uint32_t epoch;                         /* of a report; else 0 */
    const struct proposed_record *recorded; /* of a proposal, like the next field; else NULL */
    const struct proposed_record *decided;
    char difference[REPLAY_DIFFERENCE_MAX]; /* "batch_size 64 on record, 128 now"; "": none */
};

/* Borrows everything for the call; a negative result ends the replay, which returns it. */
typedef int job_replay_visit(void *context, const struct job_replayed *replayed, struct fly_error *out_error);

/* How many decisions of a kind were compared, and differed. */
struct job_replay_count {
    uint64_t compared, different;
};

struct job_replay_sums {
    char job[JOB_TEXT_MAX];
    uint64_t events;
    struct job_replay_count proposals, profiles, reports;
};

/*
 * Replays a log in the format of `flyball job export`. `plugins` as for job_state_fold. Returns FLY_EDATA
 * with the line where the text is no such log, FLY_EUNSUPPORTED for a policy that does not exist here.
 * `visit` may be NULL.
 */
int job_replay(const char *log, size_t length, const struct batch_policy *const *plugins,
               job_replay_visit *visit, void *context, struct job_replay_sums *out_sums,
               struct fly_error *out_error);

#endif
