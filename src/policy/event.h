/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_EVENT_H
#define FLYBALL_POLICY_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/plugin.h>
#include <flyball/power_profile.h>

#include "base/math/numpy_random.h"

/*
 * What happens to a recurring job, as plain data. A job's whole state is the fold of its events
 * (decider.h).
 */

/* How the power limit of a trial follows from its proposal. */
enum limit_rule {
    LIMIT_PROFILED, /* the best of the batch size's profile, which is measured first if there is none */
    LIMIT_FIXED,    /* the one that the proposal states */
};

/* Why a trial was proposed. */
enum reason {
    REASON_FIXED,     /* the policy knows no other choice */
    REASON_EXPLORE,   /* to learn about this batch size or limit */
    REASON_SAMPLED,   /* the best of one draw from the beliefs about each batch size */
    REASON_BEST_SEEN, /* least cost so far */
    REASON_PLUGIN,    /* a reason of the plug-in */
    /* Set by job/, which decides last about a live job: */
    REASON_NO_TARGET, /* a job without a target: only its power limit is tuned */
    REASON_CONTROL,   /* the default batch size at its highest limit, as a baseline */
    REASON_LAST_TRY,  /* the best known choice, since nobody tries again */
    REASON_DEADLINE,  /* the best known choice, since exploring could miss the deadline */
    REASON_BOUND,     /* the policy's choice is known to be slower than allowed */
    REASON_MEMORY,    /* the policy's choice does not fit into the GPUs */
    REASON_NO_CHOICE, /* the policy had none left */
    REASON_PINNED,    /* chosen by the user */
    REASON_QUALITY,   /* the policy's choice gives worse models than allowed */
    REASON_UNASKED,   /* run while the job's log was out of reach */
    /* Set by the decider (search_guard.h): */
    REASON_GUARD,       /* the default, since the search or all costs have grown too dear */
    REASON_GUARD_DOUBT, /* the default, since what it takes today is in doubt */
    REASON_COUNT
};

/*
 * A proposed trial: what to run, which policy chose it, and why. Once logged it is a fact: a
 * replay compares with it and never computes it again.
 */
struct proposal {
    size_t batch; /* index into job_spec.batches */
    enum limit_rule limit_rule;
    double limit_w; /* with LIMIT_FIXED */
    bool uncapped;  /* it may run all epochs */
    enum reason reason;
    uint32_t policy_version;
    struct numpy_random random_after; /* state of the published generator, if it is used */
};

/* The power profile of one batch size, per epoch or per unit of work that is a part of one. */
struct profile_measured {
    size_t batch;
    const struct fly_power_point *points; /* borrowed; the fold makes a copy, of which the policy is told and
                                             which lasts as long as its state */
    size_t count;                         /* 1 .. JOB_LIMITS_MAX */
    double units_per_epoch;               /* units of the points' work in an epoch; 0: not known */
    size_t best; /* the point that the power policy chose; the decider sets it for batch-size policies */
};

/* How a trial ended is told to policies as to plug-ins; here its words need no prefix. */
#define trial_outcome fly_trial_outcome
#define TRIAL_REACHED FLY_TRIAL_REACHED /* a trial without a target did all its epochs */
#define TRIAL_NOT_REACHED FLY_TRIAL_NOT_REACHED
#define TRIAL_REFUSED FLY_TRIAL_REFUSED
#define TRIAL_STOPPED FLY_TRIAL_STOPPED
#define TRIAL_OUT_OF_MEMORY FLY_TRIAL_OUT_OF_MEMORY
#define TRIAL_CRASHED FLY_TRIAL_CRASHED
#define TRIAL_EXPIRED FLY_TRIAL_EXPIRED
#define TRIAL_OUTCOME_COUNT (FLY_TRIAL_EXPIRED + 1)

/* Returns whether the outcome tells what the batch size costs, even if the target was missed. */
static inline bool outcome_observed(enum trial_outcome outcome)
{
    return outcome == TRIAL_REACHED || outcome == TRIAL_NOT_REACHED || outcome == TRIAL_STOPPED;
}

/* An epoch has ended. Energy and time are those of the whole trial so far. */
struct epoch_reported {
    uint64_t trial; /* as in struct fly_trial */
    size_t batch;
    uint32_t epoch; /* from 1 */
    double metric;  /* NaN: none */
    bool reached;   /* the target */
    double energy_j;
    double time_s;
};

enum event_kind {
    EVENT_RECURRENCE_BEGUN, /* the job was submitted again */
    EVENT_TRIAL_PROPOSED,
    EVENT_PROFILE_MEASURED,
    EVENT_EPOCH_REPORTED,
    EVENT_TRIAL_ENDED,
    EVENT_BATCHES_EXCLUDED, /* the larger ones do not fit into the GPUs */
    EVENT_BATCH_GIVEN_UP,   /* its trials crash again and again, which the decider itself finds; or its models
                               are worse than allowed */
    EVENT_TRIAL_SEEN,       /* a trial that the policy did not propose has ended, such as a control */
    EVENT_PROFILE_KEPT,     /* a loaded state had this profile; the decider itself makes this event */
    EVENT_PAST_BROUGHT,     /* what was observed elsewhere (past.h) */
};

struct event {
    enum event_kind kind;
    union {
        const struct proposal *proposed;
        const struct profile_measured *measured; /* or kept */
        const struct epoch_reported *reported;
        const struct fly_trial *ended; /* or seen; its numbers of trial, recurrence and try then say nothing;
                                         without cost_j, which the job's eta gives */
        size_t first_excluded; /* index of the smallest batch size that does not fit; it never rises */
        size_t given_up;       /* index of the batch size; may be reported twice */
        const struct past_brought *brought;
    };
};

#endif
