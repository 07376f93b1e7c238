/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_JOB_H
#define FLYBALL_JOB_CORE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/objective.h>
#include <flyball/power_profile.h>

#include "base/error.h"
#include "base/math/generator.h"
#include "model/job_spec.h"
#include "policy/batch_policy.h"
#include "policy/event.h"

/*
 * What goes into the calls of recurring jobs, and what comes out: plain structs, the same
 * for a job kept here and one kept by a service. jobs.h has the calls, in the order in
 * which a training makes them.
 *
 * Words. A *recurrence* is one submission of the job; it takes one or more tries. A
 * *trial* is one try: one batch size, numbered from 1 within the job. An *attempt*
 * is one process that runs it; a preempted and requeued trial has several, numbered
 * from 1. *Hardware* is (GPU model, GPU count, GPU memory in whole GiB, world
 * size): a job learns about each on its own.
 *
 * Texts in `out_` structs are arrays of their own, or stand in the arena that was given.
 * Unknown numbers are NAN, unknown texts "".
 */

enum {
    JOB_NAME_MAX = 100, /* bytes; a-z A-Z 0-9 - _ . and not a dot first */
    JOB_TEXT_MAX = 128, /* bytes of other texts, with their end; UTF-8, no control characters */
    JOB_WHY_MAX = 512,
    JOB_CLIENT_MAX = 4096,
    JOB_GRID_MAX = 255,
    JOB_GPUS_MAX = 4096, /* bytes of a list of GPUs, with its end */
    JOB_EPOCHS_MAX = 1000000,
    JOB_HARDWARE_MAX = 64,       /* kinds that one job learns about */
    JOB_SILENCE_MIN_S = 600,     /* no trial expires sooner after its last sign of life */
    JOB_SILENCE_MAX_S = 86400,   /* before the first epoch, of one that sends no heartbeats */
    JOB_SILENCE_INTERVALS = 3,   /* a trial expires after so many of its longest interval */
    JOB_PROPOSALS_AT_ONCE = 100, /* proposals refused by the epochs they could run, in one call */
    JOB_KNOWN_MAX = 256,         /* points that are kept of a profile that is not whole */
};

/* ---- what a job is ---- */

enum job_target {
    JOB_NO_TARGET, /* a fixed number of epochs: only the power limit is tuned */
    JOB_AT_LEAST,  /* reached with a metric of target_metric or more */
    JOB_AT_MOST,
};

/*
 * Objectives carbon and money. Each trial's end has the reference of its time, by which its
 * grams or its money are counted. What trials are compared by is their energy at one and the
 * same reference, that of the log: which figure it is makes no difference to a choice, so it is
 * 1, and costs are in joules as ever, also where a reference is not known. With each trial's
 * own, a batch size would look expensive because it ran in a dirty week (docs/decisions.md has the figures).
 */

/*
 * A job's definition. Registered once and never changed; registering again with the
 * same fields is fine, with others FLY_ECONFLICT names those that differ.
 */
struct job_definition {
    const char *name;
    const uint32_t *batch_sizes; /* global, ascending, 1 .. JOB_BATCHES_MAX of them */
    size_t batch_count;
    uint32_t default_batch_size;    /* one of them */
    struct fly_objective objective; /* cost(eta) is the expert's; max_slowdown: INFINITY for none */
    /*
     * Whose intensities (g/kWh) or, with the objective money, prices a kWh has: PROVIDER:PLACE or a file, as
     * `flyball carbon` takes it. Needed for carbon and money; NULL or "": none.
     */
    const char *grid;
    double beta; /* a try is stopped at this multiple of the least cost; > 0, INFINITY for never */
    enum job_target target;
    double target_metric;      /* with a target */
    bool trains_on;            /* after the target was reached; energy up to it decides */
    uint32_t max_epochs;       /* 1 .. JOB_EPOCHS_MAX */
    uint32_t control_every;    /* each so many recurrences run the default at the highest limit; 0: none */
    const char *policy;        /* a name in batch_policies, or of a plug-in (policy_plugins.h) */
    const char *policy_sha256; /* of a plug-in's file, as it was registered; NULL or "": none, or not told */
    uint32_t seed;
    uint32_t window;          /* observations of a batch size that count, newest first; 0: all */
    bool one_at_a_time;       /* recurrences never overlap: the policy may rely on it */
    enum generator generator; /* GENERATOR_PHILOX unless a published run is repeated */
    /* Of the policy `zeus-server` alone. */
    uint32_t pruning_rounds;
    uint32_t explorations; /* of each batch size before it is sampled */
    double prior_mean;
    double prior_precision;
    const char *client; /* what else its client states, compared like the rest; NULL or "": nothing */
};

struct job_registered {
    bool known; /* it was registered before, with the same definition */
    uint64_t trials;
};

/* What a user may change later. What is not `set_...` stays. */
struct job_setting {
    const char *job;
    bool set_objective;
    struct fly_objective objective;
    bool set_control_every;
    uint32_t control_every;
    bool set_pin; /* pin_batch_size 0: no pin any more */
    uint32_t pin_batch_size;
    double pin_limit_w; /* NAN: the profile's best */
};

/* ---- a proposal ---- */

struct job_hardware {
    const char *gpu_model;
    uint32_t gpu_count;        /* of all ranks; >= 1 */
    uint64_t gpu_memory_bytes; /* of the smallest; 0: unknown */
    uint32_t world_size;       /* ranks; batch sizes it does not divide are left out; >= 1 */
    const double *limits_w;    /* that one GPU takes, ascending */
    size_t limit_count;        /* 0: limits cannot be set here */
    double max_power_w;        /* all GPUs' highest limits; 0: limits_w says */
};

struct job_origin {
    const char *user, *account, *host; /* "" or NULL: unknown */
    const char *gpus; /* UUIDs of those that its energy is of, with commas; "" or NULL: unknown */
};

/* The question what to run. */
struct job_question {
    const char *job;
    const char *request;    /* "": none; else unique to this call: repeated, it gets the same answer */
    const char *run;        /* "": none; a run that is requeued keeps its own (the Slurm job's id) */
    const char *submission; /* ties the tries of one recurrence together; "": `run`, else one of its own */
    uint32_t tries;         /* allowed in this recurrence; 1: nobody tries again; 0: somebody always does */
    int64_t finish_by_us;   /* since 1970, by the store's clock; 0: none */
    double heartbeat_s;     /* how often it beats until the first epoch is reported; 0: never */
    struct job_hardware hardware;
    struct job_origin origin;
    /*
     * 0, or what was run already, while the log was out of reach: the trial is on record as
     * that, and its reports follow. Not the policy's, and not capped.
     */
    uint32_t ran_batch_size;
    double ran_limit_w; /* NAN: not known */
};

/*
 * What to run. `trial`, `batch_size` and what was decided stay the same over all
 * attempts.
 */
struct job_proposal {
    uint64_t trial;
    uint32_t attempt;
    uint64_t recurrence; /* from 0 */
    uint32_t try_number; /* within the recurrence, from 0 */
    bool last_try;       /* the best known choice, without a cap */
    uint32_t batch_size;
    uint32_t local_batch_size; /* per rank */
    double limit_w;            /* NAN: leave it, or not known before the profile */
    bool wants_profile;        /* measure it, and tell jobs_profile */
    bool stops_at_target;
    uint32_t epochs;      /* it may run at most, as far as is known now */
    uint32_t epochs_done; /* reported by earlier attempts */
    double energy_j;      /* of earlier attempts */
    double time_s;
    bool repeated; /* this request was answered before */
    enum reason reason;
    char why[JOB_WHY_MAX]; /* one sentence */
    /*
     * With wants_profile: what is on record by now of a profile that is not whole, ascending
     * limits. Whoever goes on with it need not measure these again; in the same unit of work.
     * Else the whole profile of the batch size, if there is one; of more than JOB_KNOWN_MAX
     * points evenly spread ones, the ends among them.
     */
    struct fly_power_point known[JOB_KNOWN_MAX];
    size_t known_count;
    double known_units_per_epoch; /* of the points' work, as the profile was told; NAN: not known */
    /*
     * Epochs that trials of this batch size took to the target so far, in the mean, on all
     * hardware; max_epochs where training does not stop there. NAN: none has reached it yet.
     */
    double expected_epochs;
};

/* ---- what happened ---- */

/* A power profile, measured by a trial that wanted one. A new one of the same trial is refused. */
struct job_profile {
    const char *job;
    uint64_t trial;
    const struct fly_power_point *points; /* 1 .. JOB_LIMITS_MAX, limits of one GPU, power of all */
    size_t point_count;
    double units_per_epoch; /* 1: the points are of an epoch; the steps in one; 0: not known */
    /*
     * Some limits only, and none is chosen: they are kept until the batch size has a whole
     * profile, and handed to the next trial that wants one (job_proposal.known). May be said
     * again with more of them, or by a trial that has ended; of a limit the newest counts.
     */
    bool partial;
};

struct job_choice {
    double limit_w;  /* NAN to a partial profile */
    uint32_t epochs; /* the trial may run at most; 0: end it as TRIAL_REFUSED */
    bool repeated;   /* the profile was known; the first stays */
};

/*
 * An epoch's end. Energy and time are cumulative within the attempt, of all GPUs,
 * training and validation; the job adds the attempts. A trial whose energy is not known
 * counts for outcome and time, and for no cost: its policy learns nothing from it.
 */
struct job_epoch {
    const char *job;
    uint64_t trial;
    uint32_t attempt;
    uint32_t epoch;  /* from 1; the first of an attempt may go back to a checkpoint, then ascending */
    double metric;   /* NAN: none, or not a number */
    double energy_j; /* NAN: not known */
    double time_s;
    /*
     * The mean of a kWh's figure in the job's grid (grams, or money) over the time until
     * now, a week's for instance; the newest known when a trial ends is frozen with its end. NAN,
     * or what is not above 0: not known. A repeated report may have another: the first stays.
     */
    double reference_per_kwh;
    /* The training went on before this could be told: what the epoch cost or took stops nobody any more. */
    bool afterwards;
};

enum job_answer {
    JOB_GO_ON,
    JOB_REACHED, /* the target: stop there, or train on if the job does */
    JOB_STOP,
};

/* Why a trial has to stop. */
enum job_stop {
    JOB_STOP_NONE,
    JOB_STOP_TARGET,   /* reached */
    JOB_STOP_EPOCHS,   /* max_epochs */
    JOB_STOP_COST,     /* one more epoch would cost too much */
    JOB_STOP_DEADLINE, /* another try has to finish by the time given */
    JOB_STOP_ENDED,    /* the trial has ended already */
};

struct job_answered {
    enum job_answer answer;
    enum job_stop stop;
    bool repeated;              /* this report was known */
    bool late;                  /* the trial had expired; the report counts all the same */
    bool ended;                 /* the trial has, by this report or before */
    bool ends;                  /* by this very report, the first time it was made */
    enum trial_outcome outcome; /* then */
    uint32_t epochs;            /* the trial may run at most, as far as is known now */
    double energy_j;            /* of all attempts */
    double time_s;
    char gpu_model[JOB_TEXT_MAX]; /* that the trial runs on; "" of one that ended before a repeated report */
};

struct job_beat {
    const char *job;
    uint64_t trial;
    uint32_t attempt;
    double energy_j; /* so far in this attempt; NAN: unknown */
    double time_s;
};

/* The text of an end TRIAL_CRASHED that was none: the program ended well, and had reported nothing. */
#define JOB_END_WITHOUT_EPOCH "no epoch was reported"

/*
 * A trial's end. jobs_report ends trials that reached their target, used up their
 * epochs or had to stop; what comes after that adds the figures of the whole run.
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
};

struct job_ended {
    enum trial_outcome outcome; /* that stands */
    bool repeated;
    bool ends;       /* by this very call, the first time it was made; else a report had ended it */
    double energy_j; /* of the whole run, all attempts */
    double time_s;
    double energy_after_j;        /* of it, what this call adds to an end that was on record */
    char gpu_model[JOB_TEXT_MAX]; /* that the trial ran on */
};

/* ---- what can be asked ---- */

/* Stands in a list. */
struct job_summary {
    const char *name;
    const char *
        trouble; /* why its log cannot be understood here, and all but dates and events is unknown; or NULL */
    const char *policy; /* "" then */
    uint64_t trials, recurrences, running, events;
    int64_t made_us, changed_us;
};

struct job_list {
    struct job_summary *jobs; /* in the order of their names' bytes */
    size_t count;
};

/* A job as it stands. */
struct job_shown {
    struct job_definition definition; /* as registered */
    struct fly_objective objective;   /* that holds now */
    uint32_t control_every;           /* that holds now */
    uint32_t pin_batch_size;          /* 0: none */
    double pin_limit_w;               /* NAN: the profile's best */
    uint64_t trials, recurrences, running, events;
};

/* ---- words ---- */

/* The words of the enumerations in logs and answers: "reached", "out_of_memory"; "go_on"; "cost"; "explore".
 */
const char *job_outcome_name(enum trial_outcome outcome);
const char *job_answer_name(enum job_answer answer);
const char *job_stop_name(enum job_stop stop);
const char *job_reason_name(enum reason reason);
/* Back again; whether the word is known. */
bool job_outcome_parse(const char *word, enum trial_outcome *out_outcome);
bool job_answer_parse(const char *word, enum job_answer *out_answer);
bool job_stop_parse(const char *word, enum job_stop *out_stop);
bool job_reason_parse(const char *word, enum reason *out_reason);

#endif
