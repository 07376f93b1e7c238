/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_JOB_H
#define FLYBALL_JOB_CORE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/job_definition.h>
#include <flyball/power_profile.h>

#include "base/error.h"
#include "model/job_spec.h"
#include "policy/batch_policy.h"
#include "policy/event.h"

/*
 * The arguments and answers of the calls on recurring jobs: plain structs, the same whether a job is kept
 * here or by a service. job_backend.h has the calls, in the order in which a training makes them.
 *
 * Words. A *recurrence* is one submission of the job; it takes one or more tries. A *trial* is one try: one
 * batch size, numbered from 1 within the job. An *attempt* is one process that runs a trial; a preempted and
 * requeued trial has several, numbered from 1. *Hardware* is (GPU model, GPU count, GPU memory in whole GiB,
 * world size): a job learns about each on its own.
 *
 * Texts in `out_` structs are arrays of their own, or are in the arena that was given. Unknown numbers are
 * NAN, unknown texts "".
 */

enum {
    JOB_NAME_MAX = 100, /* bytes; a-z A-Z 0-9 - _ . and the first is no dot */
    JOB_TEXT_MAX = 128, /* bytes of other texts, with the final NUL; UTF-8, no control characters */
    JOB_WHY_MAX = 512,
    JOB_CLIENT_MAX = 4096,
    JOB_GRID_MAX = 255,
    JOB_GPUS_MAX = 4096, /* bytes of a list of GPUs, with the final NUL */
    JOB_EPOCHS_MAX = 1000000,
    JOB_EXPLORATIONS_MAX = 1000,
    JOB_HARDWARE_MAX = 64,       /* kinds that one job learns about */
    JOB_SILENCE_MIN_S = 600,     /* no trial expires sooner than this after its last sign of life */
    JOB_SILENCE_MAX_S = 86400,   /* a trial without heartbeats expires no sooner before its first epoch */
    JOB_SILENCE_INTERVALS = 3,   /* a trial expires after this many times its longest interval */
    JOB_PROPOSALS_AT_ONCE = 100, /* proposals refused in one call for the epochs that they could run */
    JOB_KNOWN_MAX = 256,         /* points that are kept of an unfinished profile */
    JOB_OTHERS_MAX = 160,        /* points of other batch sizes' profiles that a proposal tells */
};

/* ---- what a job is ---- */

/*
 * Objectives carbon and money. Each trial's end has the reference of its time, by which its grams or its
 * money are counted. Trials are compared by their energy at one and the same reference, that of the log.
 * Which figure that is makes no difference to a choice, so it is 1, and costs are in joules as ever, even
 * when a reference is not known. With each trial's own reference, a batch size would look expensive because
 * it ran in a dirty week (docs/explanation/decisions.md has the figures).
 */

/*
 * Registering a job (<flyball/job_definition.h>) again with the same fields succeeds; with others
 * FLY_ECONFLICT names those that differ. `like` and `revision` are not compared and not on record with the
 * definition: what is brought from elsewhere is an event of its own (job_record.h). On record a policy is
 * always named, with its version if nobody had named it, and all of the objective (definition_objective).
 */

struct job_registered {
    bool known; /* it was registered before, with the same definition */
    uint64_t trials;
    char policy[JOB_TEXT_MAX]; /* that holds now; "": not told, by an older service */
};

/* What a user may change later. Values without their `set_...` stay. */
struct job_setting {
    const char *job;
    bool set_objective;
    struct fly_objective objective;
    bool set_control_every;
    uint32_t control_every;
    bool set_pin; /* pin_batch_size 0: remove the pin */
    uint32_t pin_batch_size;
    double pin_limit_w; /* NAN: the profile's best */
    /*
     * NULL or "": stays. "auto": as for a job that is registered now. What was observed is folded into the
     * new policy as if it had been the job's from the beginning.
     */
    const char *policy;
    const char *policy_sha256; /* on record: of a plug-in's file; else NULL */
    bool set_recurrences_left;
    uint32_t recurrences_left; /* how many recurrences will begin from now on; 0: not known any more */
    const char *owners;        /* job_owner.h; JOB_OWNERS_NONE: the operators; NULL or "": stays */
};

/* ---- a proposal ---- */

struct job_hardware {
    const char *gpu_model;
    uint32_t gpu_count;        /* of all ranks; >= 1 */
    uint64_t gpu_memory_bytes; /* of the smallest; 0: unknown */
    uint32_t world_size;       /* ranks; batch sizes that it does not divide are left out; >= 1 */
    const double *limits_w;    /* limits that one GPU takes, ascending */
    size_t limit_count;        /* 0: limits cannot be set here */
    double max_power_w;        /* sum of all GPUs' highest limits; 0: limits_w says */
};

struct job_origin {
    const char *user, *account, *host; /* "" or NULL: unknown */
    const char *gpus; /* UUIDs of the GPUs that its energy is of, separated by commas; "" or NULL: unknown */
};

/* The question what to run. */
struct job_question {
    const char *job;
    const char *request;       /* "": none; else unique to this call: a repeated call gets the same answer */
    const char *run;           /* "": none; stays when the run is requeued (the Slurm job's id) */
    const char *submission;    /* common to the tries of one recurrence; "": `run`, else a new one */
    uint32_t tries;            /* allowed in this recurrence; 1: no further try; 0: always another */
    uint32_t recurrences_left; /* with this one, if it is new: goes on record as a setting; 0: not told */
    int64_t finish_by_us;      /* since 1970, by the store's clock; 0: none */
    double heartbeat_s;        /* seconds between heartbeats until the first epoch is reported; 0: never */
    struct job_hardware hardware;
    struct job_origin origin;
    /*
     * 0, or the batch size that was run already while the log was out of reach: the log records the trial as
     * such, and its reports follow. It is not the policy's choice, and has no cost cap.
     */
    uint32_t ran_batch_size;
    double ran_limit_w; /* NAN: not known */
};

/* A power limit of another batch size's profile. */
struct job_other_point {
    uint32_t batch_size;
    double limit_w, power_w, time_s; /* as in struct fly_power_point */
};

/* What to run. `trial`, `batch_size` and what was decided stay the same over all attempts. */
struct job_proposal {
    uint64_t trial;
    uint32_t attempt;
    uint64_t recurrence; /* from 0 */
    uint32_t try_number; /* within the recurrence, from 0 */
    bool last_try;       /* the best known choice, without a cap */
    uint32_t batch_size;
    uint32_t local_batch_size; /* per rank */
    double limit_w;            /* NAN: leave the limit alone, or not known before the profile */
    bool wants_profile;        /* measure the profile, and report it with `profile` */
    bool stops_at_target;
    uint32_t epochs;      /* that it may run at most, as far as known now */
    uint32_t epochs_done; /* reported by earlier attempts */
    double energy_j;      /* of earlier attempts */
    double time_s;
    bool repeated; /* this request was answered before */
    enum reason reason;
    char why[JOB_WHY_MAX]; /* one sentence */
    /*
     * With wants_profile: the points recorded so far of an unfinished profile, in ascending order of limits.
     * You need not measure these again if you go on with it in the same unit of work. Otherwise: the whole
     * profile of the batch size, if there is one; of more than JOB_KNOWN_MAX points a selection at even
     * distances, with both ends.
     */
    struct fly_power_point known[JOB_KNOWN_MAX];
    size_t known_count;
    /*
     * Units of the points' work per epoch, as in the profile; with wants_profile, where units are steps, as
     * other batch sizes showed, rounded up. NAN: not known.
     */
    double known_units_per_epoch;
    /*
     * With wants_profile: the profiles of the nearest other batch sizes, each in one piece and in ascending
     * order of limits. They show which limits need not be measured (policy/limit_plan.h). None if the
     * objective has a bound, which may make any limit of a batch size the best.
     */
    struct job_other_point others[JOB_OTHERS_MAX];
    size_t other_count;
    /*
     * Mean number of epochs in which trials of this batch size reached the target so far, on all hardware;
     * max_epochs when training does not stop there. NAN: none has reached it yet.
     */
    double expected_epochs;
    /*
     * On this hardware this batch size never trained, and another one did. If the program fails before its
     * first step, the batch size may be the cause, and another try may train.
     */
    bool untried;
};

/* ---- what happened ---- */

/* A power profile, measured by a trial that wanted one. A second one of the same trial is refused. */
struct job_profile {
    const char *job;
    uint64_t trial;
    const struct fly_power_point *points; /* 1 .. JOB_LIMITS_MAX, limits of one GPU, power of all */
    size_t point_count;
    double units_per_epoch; /* 1: the points are of an epoch; else the steps in an epoch; 0: not known */
    /*
     * Only some limits were measured, and none is chosen. The points are kept until the batch size has a
     * whole profile, and are given to the next trial that wants one (job_proposal.known). You may report
     * again with more of them, also for a trial that has ended; the newest point of a limit counts.
     */
    bool partial;
};

struct job_choice {
    double limit_w;  /* NAN in answer to a partial profile */
    uint32_t epochs; /* that the trial may run at most; 0: end it as TRIAL_REFUSED */
    bool repeated;   /* the profile was known; the first answer stays */
};

/*
 * An epoch's end. Energy and time are cumulative within the attempt, over all GPUs, training and validation;
 * the job adds the attempts. A trial whose energy is not known counts for its outcome and time, but for no
 * cost: its policy learns nothing from it.
 */
struct job_epoch {
    const char *job;
    uint64_t trial;
    uint32_t attempt;
    uint32_t epoch;  /* from 1; the first of an attempt may go back to a checkpoint, later ones ascend */
    double metric;   /* NAN: none, or not a number */
    double energy_j; /* NAN: not known */
    double time_s;
    /*
     * The mean figure of a kWh in the job's grid (grams, or money) over the time until now, for instance a
     * week. The newest one known when a trial ends is frozen with its end. NAN, or a value that is not above
     * 0: not known. A repeated report may have another value: the first stays.
     */
    double reference_per_kwh;
    /*
     * The training had gone on before this could be reported: the epoch's cost or time can no longer stop it.
     */
    bool afterwards;
    uint32_t steps; /* since the report before; 0: not known, or not all of them */
    /*
     * What the attempt took before its first step: imports, data, compilation. It is a part of energy and
     * time and of no epoch. 0 or NAN: not known.
     */
    double startup_energy_j;
    double startup_time_s;
};

enum job_answer {
    JOB_GO_ON,
    JOB_REACHED, /* the target was reached: stop, or train on if the job does */
    JOB_STOP,
};

/* Why a trial must stop. */
enum job_stop {
    JOB_STOP_NONE,
    JOB_STOP_TARGET,   /* the target was reached */
    JOB_STOP_EPOCHS,   /* max_epochs were run */
    JOB_STOP_COST,     /* one more epoch would cost too much */
    JOB_STOP_DEADLINE, /* another try must finish by the time given */
    JOB_STOP_ENDED,    /* the trial has ended already */
};

struct job_answered {
    enum job_answer answer;
    enum job_stop stop;
    bool repeated;              /* this report was made before */
    bool late;                  /* the trial had expired; the report still counts */
    bool ended;                 /* the trial has ended, by this report or before */
    bool ends;                  /* this very report ended it; repeated, it says so again */
    enum trial_outcome outcome; /* of a trial that has ended */
    uint32_t epochs;            /* that the trial may run at most, as far as known now */
    double energy_j;            /* of all attempts */
    double time_s;
    char gpu_model[JOB_TEXT_MAX]; /* that the trial runs on; "" for a repeated report after its end */
};

struct job_beat {
    const char *job;
    uint64_t trial;
    uint32_t attempt;
    double energy_j; /* so far in this attempt; NAN: unknown */
    double time_s;
};

/* The texts of ends with `nothing_learnt`: a program that ended well, and one that failed. */
#define JOB_END_WITHOUT_EPOCH "no epoch was reported"
#define JOB_END_WITHOUT_STEP "your program failed before its first step; nothing learnt"

/*
 * A trial's end. `report` ends trials that reached their target, used up their epochs or had to stop; an end
 * after that adds the figures of the whole run.
 */
struct job_end {
    const char *job;
    uint64_t trial;
    uint32_t attempt;
    enum trial_outcome outcome; /* REACHED (without a target: completed), NOT_REACHED, STOPPED,
                                   REFUSED, OUT_OF_MEMORY or CRASHED */
    double energy_j;            /* of the whole attempt; NAN: as last reported, unknown if it never was */
    double time_s;              /* of the whole attempt; NAN, with an energy of NAN: as last reported */
    const char *text;           /* a word on the cause, "" or NULL for none */
    double reference_per_kwh;   /* as in job_epoch; NAN: as last reported */
    double startup_energy_j;    /* as in job_epoch; 0 or NAN: as last reported */
    double startup_time_s;
    /*
     * With TRIAL_CRASHED, of a trial without an epoch: it tells nothing of its batch size, and the next
     * proposal is as if it had not been.
     */
    bool nothing_learnt;
};

struct job_ended {
    enum trial_outcome outcome; /* the outcome on record */
    bool repeated;
    bool ends; /* this very call ended the trial; repeated, it says so again; else a report had ended it */
    double energy_j; /* of the whole run, all attempts */
    double time_s;
    double energy_after_j;        /* the part of it that this call adds to an end on record */
    char gpu_model[JOB_TEXT_MAX]; /* on which the trial ran */
};

/* ---- what can be asked ---- */

/* A job in a list. */
struct job_summary {
    const char *name;
    const char *trouble; /* why its log is not understood here, so only dates and events are known; or NULL */
    const char *policy;  /* "" with a trouble */
    const char *owners;  /* job_owner.h, or JOB_OWNERS_NONE; NULL or "": not told, or a trouble */
    uint64_t trials, recurrences, running, events;
    int64_t made_us, changed_us;
};

struct job_list {
    struct job_summary *jobs; /* sorted by the bytes of their names */
    size_t count;
};

/* What holds the search on one kind of hardware back, and when learning began anew there. */
struct job_guard {
    const char *text;    /* why the default runs next in the place of what the policy chooses, or nothing is
                            held against it; "": neither */
    uint64_t anew_trial; /* with which learning last began anew under the revision that holds; 0: never */
    int64_t anew_us;     /* when that was */
    uint64_t anew_times; /* how often it did */
};

/* The current state of a job. */
struct job_shown {
    struct fly_job_definition definition; /* as registered */
    struct fly_objective objective;       /* the one that holds now */
    const char *policy;                   /* that holds now; NULL or "": not told, so the definition's */
    uint32_t control_every;               /* that holds now */
    uint32_t pin_batch_size;              /* 0: none */
    double pin_limit_w;                   /* NAN: the profile's best */
    uint64_t trials, recurrences, running, events;
    uint64_t recurrences_left;      /* that were announced and have not begun; 0: not known */
    const char *revision;           /* that holds now; NULL or "": none was told */
    const char *past;               /* what was brought for all hardware, in words; NULL or "": nothing */
    const char *owners;             /* job_owner.h, or JOB_OWNERS_NONE; NULL or "": not told */
    const struct job_guard *guards; /* of each kind of hardware, in the order of first use */
    size_t guard_count;             /* 0 also where a service does not tell */
};

/* ---- words ---- */

/* The words of the enumerations in logs and answers: "reached", "out_of_memory"; "cost"; "explore".
 */
const char *job_outcome_name(enum trial_outcome outcome);
const char *job_stop_name(enum job_stop stop);
const char *job_reason_name(enum reason reason);

#endif
