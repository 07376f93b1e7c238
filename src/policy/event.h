/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_EVENT_H
#define FLYBALL_POLICY_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/math/numpy_random.h"

/*
 * What happened to a recurring job, as plain data. A job's whole state is the
 * fold of its events (decider.h).
 */

/* How the power limit of a trial follows from its proposal. */
enum limit_rule {
    LIMIT_PROFILED, /* the best of the batch size's profile, measured first if there is none */
    LIMIT_FIXED,    /* the proposal's own */
};

/* Why a trial was proposed. */
enum reason {
    REASON_FIXED,     /* the policy knows no other choice */
    REASON_EXPLORE,   /* to learn about this batch size or limit */
    REASON_SAMPLED,   /* the best of one draw from what is believed of each batch size */
    REASON_BEST_SEEN, /* least cost so far */
    REASON_PLUGIN,    /* a plug-in's own */
    /* Of job/, which has the last word on a live job. */
    REASON_NO_TARGET, /* a job without a target: only its power limit is tuned */
    REASON_CONTROL,   /* the default at its highest limit, as a baseline */
    REASON_LAST_TRY,  /* nobody tries again: the best known choice */
    REASON_DEADLINE,  /* the best known choice, since exploring could miss the time given */
    REASON_BOUND,     /* the policy's choice is known to be slower than allowed */
    REASON_MEMORY,    /* the policy's choice does not fit into the GPUs */
    REASON_NO_CHOICE, /* the policy had none left */
    REASON_PINNED,    /* the user's */
    REASON_UNASKED,   /* it was run while the job's log was out of reach */
    REASON_COUNT
};

/*
 * A trial proposed: what to run, by whom and why. Once in a log it is a fact; a
 * replay compares with it and never computes it anew.
 */
struct proposal {
    size_t batch; /* index into job_spec.batches */
    enum limit_rule limit_rule;
    double limit_w; /* with LIMIT_FIXED */
    enum reason reason;
    uint32_t policy_version;
    struct numpy_random random_after; /* where the published generator stands now, if it is in use */
};

/* The power profile of one batch size, per epoch. */
struct profile_measured {
    size_t batch;
    const struct fly_power_point *points; /* borrowed; the fold copies */
    size_t count;                         /* 1 .. JOB_LIMITS_MAX */
};

enum trial_outcome {
    TRIAL_REACHED,       /* its target; without one: its epochs are done */
    TRIAL_NOT_REACHED,   /* within its epochs */
    TRIAL_REFUSED,       /* not one epoch fitted below its bound; nothing ran */
    TRIAL_STOPPED,       /* at its bound */
    TRIAL_OUT_OF_MEMORY, /* the batch size does not fit */
    TRIAL_CRASHED,       /* says nothing about the batch size */
    TRIAL_EXPIRED,       /* silent for too long; what becomes known later comes as `late` */
    TRIAL_OUTCOME_COUNT
};

/* Whether the end tells what the batch size costs, be it in vain. */
static inline bool outcome_observed(enum trial_outcome outcome)
{
    return outcome == TRIAL_REACHED || outcome == TRIAL_NOT_REACHED || outcome == TRIAL_STOPPED;
}

/* An epoch has ended. Energy and time are those of the whole trial so far. */
struct epoch_reported {
    uint64_t trial; /* as in trial_ended */
    size_t batch;
    uint32_t epoch; /* from 1 */
    double metric;  /* NaN: none */
    bool reached;   /* the target */
    double energy_j;
    double time_s;
};

/* A trial has ended. */
struct trial_ended {
    uint64_t trial;      /* proposals before its own: batch_question.trial when it was made */
    bool late;           /* it ended as expired before; this is what it came to */
    uint64_t recurrence; /* from 0 */
    uint32_t try_number; /* within the recurrence, from 0 */
    size_t batch;
    double limit_w;
    enum trial_outcome outcome;
    bool crashed;    /* by itself: TRIAL_CRASHED is also the end that tells no cost */
    double energy_j; /* of this trial alone, profiling included */
    double time_s;
};

enum event_kind {
    EVENT_RECURRENCE_BEGUN, /* the job was submitted once more */
    EVENT_TRIAL_PROPOSED,
    EVENT_PROFILE_MEASURED,
    EVENT_EPOCH_REPORTED,
    EVENT_TRIAL_ENDED,
    EVENT_BATCHES_EXCLUDED, /* the larger ones do not fit into the GPUs */
    EVENT_BATCH_GIVEN_UP,   /* its trials crash again and again; of the decider's own making */
};

struct event {
    enum event_kind kind;
    union {
        const struct proposal *proposed;
        const struct profile_measured *measured;
        const struct epoch_reported *reported;
        const struct trial_ended *ended;
        size_t first_excluded; /* index of the smallest batch size that does not fit; only ever falls */
        size_t given_up;       /* index of the batch size; may be told twice */
    };
};

#endif
