/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_H
#define FLYBALL_JOB_DECIDE_STATE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "job/core/job.h"
#include "job/core/job_owner.h"
#include "job/core/job_record.h"
#include "job/core/target_progress.h"
#include "policy/decider.h"
#include "store/store.h"

/*
 * What a job's log amounts to: the fold of its events, and all that a decision needs. It grows with the kinds
 * of hardware, the batch sizes and the trials that run, not with trials that have ended. Pure but for memory:
 * equal events give equal states.
 *
 * Events (job/core/job_record.h has their bodies):
 *
 *     defined     the definition; always the first
 *     set         what a user changed later
 *     proposed    a trial, and everything that was decided; key "run/RUN/N" of a run's N-th
 *     attempt     a process took the trial up; key "request/REQUEST"
 *     profiled    a power profile, and the limit chosen; key "profile/TRIAL"
 *     profiled_part  some points of one, for the trials that come; no key
 *     heartbeat
 *     epoch       a report, and its answer; key "epoch/TRIAL/ATTEMPT/EPOCH"
 *     ended       a trial's end; key "end/TRIAL"; none for an expiry, which may be followed by an end
 *     brought     what was observed elsewhere: on other hardware, before a revision, or by another job
 *     closed      what the whole run took, after its end was known; key "close/TRIAL/ATTEMPT"
 */

enum {
    JOB_OPEN_MAX = 65536,     /* trials that run at the same time */
    JOB_SILENT_MAX = 256,     /* expired trials whose late reports still count, the newest ones */
    JOB_UNFINISHED_MAX = 256, /* recurrences without a model that a new try may still join, the newest ones */
    JOB_STATE_MAX = 512 << 20, /* bytes of one struct job_line */
    JOB_CRASH_TEXT_MAX = 96,
};

/*
 * The points of a batch size's power profile that trainings too short to finish it have measured: at most
 * JOB_KNOWN_MAX (job.h), one per limit, the newest of each. All zeros: none.
 */
struct profile_part {
    struct fly_power_point *points; /* in an arena; ascending limits */
    size_t count, capacity;
};

/* Adds points; leaves out those beyond the maximum. Returns 0 or FLY_ENOMEM. */
int profile_part_take(struct profile_part *part, struct arena *arena, const struct fly_power_point *points,
                      size_t count, struct fly_error *out_error);

/* Whether it holds each of the points unchanged. */
bool profile_part_has(const struct profile_part *part, const struct fly_power_point *points, size_t count);

/*
 * The final metrics of whole trainings with one batch size, and whether they show that its models are worse
 * than the default's by more than is allowed. Pure.
 *
 * This is a one-sided test for unequal variances (Welch, "The generalization of 'Student's' problem when
 * several different population variances are involved", Biometrika 34, 1947): with means m, variances s^2 and
 * counts n of the default (d) and the other (o), where a larger metric is better,
 *
 *     t = (m_d - m_o - most) / sqrt(s_d^2 / n_d + s_o^2 / n_o)
 *
 * is compared with the 95 % quantile of Student's distribution, whose degrees of freedom Welch and
 * Satterthwaite give. Below two trainings of either nothing is known.
 */
struct final_metrics {
    uint64_t count;
    double mean, squares; /* the mean, and the sum of squared distances from it */
};

/* Takes in one more; one that is not finite tells nothing. */
void final_metrics_take(struct final_metrics *metrics, double metric);

/* Returns whether the other's models are worse by more than `most`, told at 95 %. */
bool final_metrics_worse(const struct final_metrics *usual, const struct final_metrics *other, double most,
                         bool larger_is_better);

/*
 * What was observed of one batch size on one kind of hardware: sums over the trials that show what it costs,
 * at the first size of the data.
 */
struct batch_facts {
    uint64_t observed;
    uint64_t reached;
    uint64_t priced; /* of the reached, how many have a known energy */
    double cost_j;   /* sum over the trials whose energy is known */
    double energy_j;
    double time_s;
    double reached_energy_j;    /* of the priced */
    double reached_time_s;      /* of those that reached the target */
    double longest_s;           /* the longest time of one that did */
    uint64_t reached_epochs;    /* sum over those */
    double units_per_epoch;     /* of the profile; 0: unknown */
    struct past_tally tally;    /* of its epochs; costs are the profile's */
    struct final_metrics final; /* of trainings that went on after their target */
    bool worse;                 /* they are worse than allowed: the batch size is left */
    double first_steps;         /* of an epoch, at the first size of the data (data_growth.h); 0: unknown */
    /* Of the trials that show no cost: */
    uint64_t crashed;
    uint64_t silent;                     /* expired, with no sign of life since */
    uint64_t unstarted;                  /* how many in a row ended with nothing learnt */
    char crash_text[JOB_CRASH_TEXT_MAX]; /* why the newest one crashed; "": not told */
};

/* A kind of hardware, and what the job knows of itself there. */
struct job_line {
    struct arena arena;
    char gpu_model[JOB_TEXT_MAX];
    uint32_t gpu_count;
    uint32_t world_size;
    uint64_t gpu_memory_bytes;
    bool limits_known;     /* limits can be set here */
    bool described;        /* a trial ran here, whose proposal says so in full */
    struct job_spec *spec; /* in the arena; only batch sizes that the ranks can share */
    struct decider decider;
    struct batch_facts *facts;  /* in the arena, one per batch size of `spec` */
    struct profile_part *parts; /* likewise */
    size_t excluded;            /* the first batch size that does not fit; batch_count: all do */
    uint32_t overflowing;       /* smallest batch size per rank that did not fit; 0: none yet */
    uint64_t recurrences;       /* those in which the policy decided something */
    double growth;              /* of the data, as shown last; 1 */
    uint64_t baseline_runs;     /* trials at the default and the highest limit that reached the target */
    double baseline_time_s;     /* sum of their times */
    uint64_t anew_trial;        /* with which the guard last let learning begin anew; 0: never */
    int64_t anew_us;
};

/* A trial that runs, or that has expired but may still report. */
struct job_trial {
    uint64_t number;
    uint64_t index; /* in the line's decider, if `counted` */
    uint64_t recurrence;
    uint32_t try_number;
    size_t line;
    size_t batch;       /* index in the line */
    double limit_w;     /* NAN: not known, or not set */
    bool wants_profile; /* and it has none yet */
    bool profiles;      /* it wanted one when it was proposed */
    enum reason reason;
    bool counted; /* the policy knows of it */
    bool capped;
    bool last_try;
    bool of_past;       /* it began before the revision that holds now: it shows nothing of that */
    uint32_t epochs;    /* that it may run; 0: not known yet */
    int64_t stop_by_us; /* 0: none */
    double heartbeat_s;
    char run[JOB_TEXT_MAX];
    char submission[JOB_TEXT_MAX];

    uint32_t attempt;
    uint32_t epochs_done;            /* the newest reported */
    double metric;                   /* of that epoch */
    struct target_progress progress; /* towards the target */
    double growth;                   /* of the data (data_growth.h); 0: it has not told */
    double steps;                    /* of the newest epoch; 0: not known */
    double reference_per_kwh;        /* the newest reported, of any attempt; NAN */
    double past_energy_j;            /* of earlier attempts */
    double past_time_s;
    double energy_j; /* of this attempt, as far as known */
    double time_s;
    /* What belongs to no epoch (start_up.h): */
    bool startup_told; /* false in logs of older versions */
    double past_startup_energy_j,
        past_startup_time_s;                 /* of earlier attempts; NAN: that of one is not known */
    double startup_energy_j, startup_time_s; /* of this attempt; NAN: not known */
    struct later_epochs {
        double epochs, energy_j, time_s;
    } later; /* sums over the reports that followed another one of their attempt */

    bool decided; /* reached its target, and goes on training */
    double decided_energy_j;
    double decided_time_s;
    bool lost;   /* expired at least once: later reports are late */
    bool silent; /* expired, with no sign of life since */

    int64_t sign_us;        /* last sign of life, by the store's clock */
    double longest_s;       /* longest time between two reported epochs */
    double longest_epoch_s; /* the same without start-up, as far as that is known */
    bool reported;          /* an epoch of this attempt was reported */
};

/* A submission of the job that has no model yet. */
struct job_recurrence {
    uint64_t number;
    char submission[JOB_TEXT_MAX];
    uint32_t tries;
    size_t line;          /* of the policy's tries */
    uint64_t line_number; /* the recurrence's number on the line, once `begun` */
    uint32_t policy_tries;
    bool begun;
};

struct job_state {
    struct arena arena; /* the definition */
    struct fly_job_definition definition;
    bool defined;
    const struct batch_policy *policy; /* a plug-in's must outlive the state */
    struct policy_parameters parameters;
    struct fly_objective objective; /* the one that holds for the whole fold */
    uint64_t objective_from;        /* the event that set it; 0: the definition */
    struct job_policy_set {
        uint64_t from; /* the event that set the policy; 0: it is the definition's */
        char name[JOB_TEXT_MAX];
        char sha256[JOB_TEXT_MAX]; /* of a plug-in's file; "": none */
    } policy_set;
    char revision[JOB_TEXT_MAX];      /* that holds now; "": none was told */
    char owners[JOB_OWNERS_TEXT_MAX]; /* job_owner.h; "": the operators */
    struct job_brought {
        enum past_kind kind;
        char source[JOB_TEXT_MAX];
        struct brought_batch *batches; /* in the arena */
        size_t count;                  /* 0: nothing was brought */
    } brought;                         /* for all hardware, also to come */
    uint32_t control_every;
    uint32_t pin_batch_size; /* 0: none */
    double pin_limit_w;
    double reference_per_kwh; /* the one frozen last; NAN: none yet */
    uint64_t number;          /* of the last event folded */
    int64_t last_us;          /* its time */
    uint64_t trials, recurrences;
    uint64_t recurrences_end; /* how many there will have been, as announced; 0: not known, or past it */
    struct job_line *lines;   /* owned, like the two below; never moves */
    size_t line_count;
    struct job_trial *open;
    size_t open_count, open_capacity;
    struct job_recurrence *unfinished; /* oldest first */
    size_t unfinished_count;
};

/* Makes an empty state. Needs job_state_deinit. */
void job_state_init(struct job_state *state);
void job_state_deinit(struct job_state *state);

/* The open trial with that number; NULL for none. */
struct job_trial *job_state_trial(const struct job_state *state, uint64_t number);

/* The unfinished recurrence of a submission or with a number; NULL for none. */
struct job_recurrence *job_state_submission(const struct job_state *state, const char *submission);
struct job_recurrence *job_state_recurrence(const struct job_state *state, uint64_t number);

/*
 * How far it is on the way to its target after such a report. What was held before it went back to a
 * checkpoint does not count, since those epochs are trained again.
 */
struct target_progress job_trial_progress(const struct fly_job_definition *definition,
                                          const struct job_trial *trial, uint32_t epoch, double metric);

/* When the trial expires unless it gives a sign of life. */
int64_t job_trial_expires_us(const struct job_trial *trial);

/* How many recurrences were announced and have not begun; NAN: not known. */
static inline double job_state_recurrences_left(const struct job_state *state)
{
    return state->recurrences_end > state->recurrences ? (double)(state->recurrences_end - state->recurrences)
                                                       : NAN;
}

/* Its owners, or JOB_OWNERS_NONE: an answer without them is an older service's. */
static inline const char *job_state_owners(const struct job_state *state)
{
    return state->owners[0] != '\0' ? state->owners : JOB_OWNERS_NONE;
}

/* ---- for the fold and the snapshot ---- */

/* Sets the definition of an empty state. Returns FLY_EUNSUPPORTED for an unknown policy. */
int job_state_define(struct job_state *state, const struct fly_job_definition *definition,
                     const struct batch_policy *const *plugins, struct fly_error *out_error);

/* Adds an open trial, whose number must be the highest so far. */
int job_state_open(struct job_state *state, const struct job_trial *trial, struct fly_error *out_error);
void job_state_shut(struct job_state *state, const struct job_trial *trial);
void job_state_forget_silent(struct job_state *state);

/* Adds an unfinished recurrence; drops the oldest if there are too many. */
struct job_recurrence *job_state_submit(struct job_state *state, uint64_t number);
void job_state_finish(struct job_state *state, const struct job_recurrence *recurrence);

#endif
