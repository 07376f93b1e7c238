/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_SEARCH_GUARD_H
#define FLYBALL_POLICY_SEARCH_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/bytes.h"
#include "model/job_spec.h"

/*
 * Compares what a job's last recurrences took with what its default takes today, whatever the
 * policy, so that a search is never long worse than no search.
 *
 * A recurrence takes the sum of its tries, stopped ones too. It is dear when this exceeds a run
 * of the default by a fifth. What the default takes is the mean of its newest runs; a run far off
 * replaces them.
 *
 * - GUARD_ASK: whether the default still takes what it took is in doubt: two tries of this
 *   recurrence have failed, or the last recurrences were dear or took more than those before them,
 *   and the default has not run since; or they have crept up since it last ran. It must run with no cap.
 * - GUARD_DEFAULT: three of the last nine recurrences were dear, or the default takes more than it
 *   did by two fifths and the policy cannot follow that. The default runs with no cap. While three of
 *   nine are dear, it goes on to run. Learning begins anew if the default takes more, or if a search that
 *   should have found its choice long since, after 30 recurrences, is dear again.
 * - Where the default itself did not reach its target with no cap, nothing is compared with it,
 *   until it reaches it again.
 *
 * Plain values: the same calls give the same answers on every machine. Costs are in whatever unit the
 * caller minimises.
 */
enum { GUARD_WINDOW = 9, GUARD_DEAR_MOST = 3, GUARD_OPEN_MAX = 32 };

enum guard_advice { GUARD_GO_ON, GUARD_ASK, GUARD_DEFAULT };

/* A recurrence that has ended. */
struct guard_recurrence {
    double cost;
    bool dear;
};

/* A recurrence without its target so far. */
struct guard_open {
    uint64_t recurrence; /* from 0 */
    double cost;
    bool used;
};

struct guard {
    bool follows; /* the policy's early stopping gives way where all costs rise */
    uint64_t finished;
    struct guard_recurrence last[GUARD_WINDOW]; /* a ring, by `finished` */
    struct guard_open open[GUARD_OPEN_MAX];     /* a ring, by `opened` */
    uint64_t opened;
    double level;        /* what the default takes; 0: not known */
    uint64_t level_runs; /* of the default, since it last changed */
    uint64_t level_at;   /* `finished` when it last ran */
    bool asked;          /* it was proposed on GUARD_ASK and has not run since */
    uint64_t asked_at;   /* `finished` then */
    double smooth;       /* what recurrences take, the newest counting most; 0: not known */
    double least;        /* the least that this has been since the default last ran; infinity: it just did, or
                            nothing ran */
    bool rose;           /* it takes more than it did, and learning has not begun anew */
    bool rests;          /* it runs on GUARD_DEFAULT */
    uint64_t begun_at;   /* `finished` when learning last began anew */
    bool fails;          /* it does not reach its target */
};

void guard_init(struct guard *guard, bool follows);

/* Takes in a run of the default that reached its target, whoever chose it; `cost` > 0, at its highest limit.
 */
void guard_take_default(struct guard *guard, double cost);

/* Takes in a run of the default that had no cap and did not reach its target. */
void guard_take_default_failed(struct guard *guard);

/* Takes in that the default, proposed on GUARD_ASK, came to nothing. */
void guard_withdraw_question(struct guard *guard);

/* Takes in a try of a recurrence; a default's after guard_take_default. */
void guard_take_try(struct guard *guard, uint64_t recurrence, double cost, bool reached);

/* Answers what a try of a recurrence should be; the number is its own within the recurrence, from 0. */
enum guard_advice guard_advise(const struct guard *guard, uint32_t try_number);

/* Returns whether learning begins anew where the default runs on GUARD_DEFAULT. */
bool guard_begins_anew(const struct guard *guard);

/* Takes in that the default was proposed by GUARD_DEFAULT; ask guard_begins_anew before. */
void guard_take_advice(struct guard *guard);

/*
 * Takes in that the default was proposed by GUARD_ASK. Where recurrences overlap, the others need not run it
 * too; if it did not run within GUARD_WINDOW recurrences, it is asked again.
 */
void guard_take_question(struct guard *guard);

/* How many of the last GUARD_WINDOW recurrences were dear. */
unsigned guard_dear(const struct guard *guard);

/*
 * Returns what a run at this limit costs as a share of one at the highest limit, by the profile of its batch
 * size; 1 where the profile does not know. `points` may be NULL if `count` is 0.
 */
double guard_limit_share(const struct job_spec *spec, const struct fly_power_point *points, size_t count,
                         double limit_w);

/*
 * Returns how many trials may explore at the same time, so that no more than GUARD_DEAR_MOST of ten
 * recurrences in a row are dear even if all of those turn out to be.
 */
uint32_t guard_explorers(const struct guard *guard);

void guard_save(const struct guard *guard, struct buffer *bytes);

/* Reads it back into one just initialised. The reader has failed if the bytes were no guard. */
void guard_load(struct guard *guard, struct bytes_reader *bytes);

#endif
