/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_EVENT_H
#define FLYBALL_POLICY_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/numpy_random.h"

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
    TRIAL_REACHED,     /* its target */
    TRIAL_NOT_REACHED, /* within its epochs */
    TRIAL_REFUSED,     /* not one epoch fitted below its bound; nothing ran */
};

/* A trial has ended. */
struct trial_ended {
    uint64_t recurrence; /* from 0 */
    uint32_t try_number; /* within the recurrence, from 0 */
    size_t batch;
    double limit_w;
    enum trial_outcome outcome;
    double energy_j; /* of this trial alone, profiling included */
    double time_s;
};

enum event_kind {
    EVENT_RECURRENCE_BEGUN, /* the job was submitted once more */
    EVENT_TRIAL_PROPOSED,
    EVENT_PROFILE_MEASURED,
    EVENT_TRIAL_ENDED,
};

struct event {
    enum event_kind kind;
    union {
        const struct proposal *proposed;
        const struct profile_measured *measured;
        const struct trial_ended *ended;
    };
};

#endif
