/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DECIDED_AGAIN_H
#define FLYBALL_JOB_DECIDE_DECIDED_AGAIN_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * A job's exported log, decided once more. Each event is taken in as it was recorded;
 * before a proposal, a chosen limit or an answer to a report is, the code that decides
 * live is asked the same question in the same state, and its decision is held against
 * the recorded one. What the machines answered is in the log, so nothing is simulated:
 * crashes, bounds, controls, tries that overlap and profiles that are not whole are
 * there as they were.
 *
 * Where versions of the software decide differently, the recorded decision stays the
 * fact that the next one rests on.
 */
enum { REPLAY_DIFFERENCE_MAX = 256 };

/* One decision. */
struct job_replayed {
    enum record_kind kind; /* RECORD_PROPOSED, RECORD_PROFILED or RECORD_EPOCH */
    uint64_t trial;
    uint32_t epoch;                         /* of a report; else 0 */
    const struct proposed_record *recorded; /* of a proposal, as the next; else NULL */
    const struct proposed_record *decided;
    bool told;                              /* the log has the whole question; else nothing was compared */
    char difference[REPLAY_DIFFERENCE_MAX]; /* "batch_size 64 on record, 128 now"; "": none */
};

/* Everything is borrowed for the call; a negative result ends the replay and is its own. */
typedef int job_replay_visit(void *context, const struct job_replayed *replayed, struct fly_error *out_error);

/* How many decisions of a kind were compared, differed, and could not be compared. */
struct job_replay_count {
    uint64_t compared, different, untold;
};

struct job_replay_sums {
    char job[JOB_TEXT_MAX];
    uint64_t events;
    struct job_replay_count proposals, profiles, reports;
};

/*
 * Replays a log as `flyball job export` writes it. `plugins` as job_state_fold takes them.
 * FLY_EDATA names the line of what is no such log; FLY_EUNSUPPORTED for a policy that is
 * not there. `visit` may be NULL.
 */
int job_replay(const char *log, size_t length, const struct batch_policy *const *plugins,
               job_replay_visit *visit, void *context, struct job_replay_sums *out_sums,
               struct fly_error *out_error);

#endif
