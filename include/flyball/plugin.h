/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PLUGIN_H
#define FLYBALL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/export.h>
#include <flyball/objective.h>
#include <flyball/power_profile.h>

/*
 * Policies of your own, in a shared object that Flyball loads:
 *
 *     flyball sim job ... --policy zeus,./mine.so --power-policy ./my_limits.so
 *
 * A batch-size policy says which batch size the next trial of a recurring job
 * gets; a power-limit policy picks the power limit from a measured profile. A
 * shared object has one of them, or both. This is a whole one:
 *
 *     #include <flyball/plugin.h>
 *
 *     static int create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
 *     {
 *         *out_state = (void *)job; // it lives as long as the state
 *         return 0;
 *     }
 *
 *     static int propose(const void *state, const struct fly_batch_question *question,
 *                        struct fly_batch_decision *decision)
 *     {
 *         const struct fly_batch_job *job = state;
 *
 *         decision->batch = (size_t)(question->recurrence % job->batch_count);
 *         return 0;
 *     }
 *
 *     const struct fly_batch_policy fly_batch_policy_plugin = {
 *         .abi = FLY_PLUGIN_ABI, .size = sizeof(struct fly_batch_policy),
 *         .name = "in-turn", .version = 1, .create = create, .propose = propose,
 *     };
 *
 *     $ cc -shared -fPIC mine.c -o mine.so
 *
 * Rules. Equal calls must give equal answers: use no clock, no file, no variable
 * that outlives a state, and no random numbers but those of the question. Several
 * states live at once, on several threads, one thread at a time each. Keep a
 * pointer only if its comment allows it. Do not print to stdout, exit or start
 * threads. docs/howto/plugins.md says more, and what is checked.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Raised when plug-ins have to be compiled again; a plug-in with another number is refused. */
#define FLY_PLUGIN_ABI 1

/*
 * The random numbers of one trial, given by (seed, job, trial, draw): asking
 * again gives the same number, another draw an independent one. Use each draw
 * for one of the two only.
 */
struct fly_random {
    uint64_t (*bits)(const struct fly_random *random, uint16_t draw); /* 64 random bits */
    double (*normal)(const struct fly_random *random, uint16_t draw); /* mean 0, deviation 1 */
};

/* A batch size to choose from. */
struct fly_batch_choice {
    uint32_t size;          /* global batch size */
    const double *limits_w; /* power limits that can be set, ascending */
    size_t limit_count;     /* >= 1 */
};

/* A recurring job, and what the user asked for. Lives until destroy has returned. */
struct fly_batch_job {
    const char *name;
    const struct fly_batch_choice *batches; /* ascending */
    size_t batch_count;                     /* >= 1 */
    size_t default_batch;                   /* index of today's */
    uint32_t max_epochs;                    /* a trial that has not reached its target by then has failed */
    double max_power_w;                     /* sum of the GPUs' highest limits: weight of time in the cost */
    double eta;                             /* weight of energy in the cost, 0 .. 1 */
    double beta;     /* --beta: stop at this multiple of the least cost; may be infinite */
    uint32_t window; /* --window: newest observations that count; 0 for all */
    uint32_t seed;

    /* What to make small, of which eta is one spelling, and its bound on the slowdown. The bound is against
       the default batch size at its highest limit, to the target; infinity: none. */
    struct fly_objective objective;
    uint32_t gpu_count; /* GPUs that share a limit, >= 1 */
    int overlapping;    /* not 0: a recurrence may begin while others run */
    int no_default;     /* not 0: the default is only where to begin, and nothing to compare with */
    void *data;         /* of the program that brought the policy's table itself (sim.h); else NULL */
};

/* What to run next? */
struct fly_batch_question {
    uint64_t recurrence; /* submission of the job, from 0 */
    uint32_t try_number; /* within the recurrence, from 0; above that, those before have failed */
    uint64_t trial;      /* through the whole job, from 0 */
    uint64_t in_flight;  /* trials that run beside this one, where recurrences overlap */
    const struct fly_random *random;
    double recurrences_left; /* that will begin, with this one if it is new; NAN: not known, as in simulations
                              */
    uint32_t explorers; /* how many trials may explore beside each other, this one among them, so that few
                           recurrences in a row take more than the default; UINT32_MAX: any */
};

enum fly_limit_rule {
    FLY_LIMIT_PROFILED, /* profile the batch size if that was not done, and let the power policy choose */
    FLY_LIMIT_FIXED,    /* limit_w */
};

/* What propose returns when no batch size is left to choose. */
#define FLY_NOTHING_LEFT 1

struct fly_batch_decision {
    size_t batch;                   /* index into the job's batches; comes in as none of them */
    enum fly_limit_rule limit_rule; /* comes in as FLY_LIMIT_PROFILED */
    double limit_w;                 /* with FLY_LIMIT_FIXED: one of that batch size's limits */
};

enum fly_trial_outcome {
    FLY_TRIAL_REACHED,     /* its target */
    FLY_TRIAL_NOT_REACHED, /* within its epochs */
    FLY_TRIAL_REFUSED,     /* epoch_cap gave 0 epochs: nothing ran, or only its power profile */
    /* Of live jobs alone, never in a simulation; ignore what is new to you. */
    FLY_TRIAL_STOPPED,       /* at its epoch_cap, or by itself before its epochs were done */
    FLY_TRIAL_OUT_OF_MEMORY, /* this batch size and larger ones will not be run again */
    FLY_TRIAL_CRASHED,       /* says nothing about the batch size, nor does the next */
    FLY_TRIAL_EXPIRED,       /* silent for too long; if it ends after all, it is observed once more */
};

/* A trial that has ended. */
struct fly_trial {
    uint64_t recurrence;
    uint32_t try_number;
    size_t batch;
    double limit_w;
    enum fly_trial_outcome outcome;
    double
        energy_j; /* of this trial, profiling included; of live jobs at the size that their data had first */
    double time_s;
    double cost_j;  /* eta * energy_j + (1 - eta) * max_power_w * time_s */
    double epochs;  /* trained; 0 if none or not known */
    uint64_t trial; /* its number: that of the question whose answer it ran */
    int late;       /* not 0: it was observed as FLY_TRIAL_EXPIRED before, and this is its real outcome */
    int crashed;    /* not 0: its program crashed, whatever the outcome */
    int by_itself;  /* with FLY_TRIAL_STOPPED, not 0: it ended early, which shows only that it needs more */
    double dearer;  /* live, without a whole profile: its cost at the limits that it ran at, over that at the
                       best one, as other batch sizes show; 0: not known, or it ran at the chosen limit */
    double apart_energy_j; /* the part of energy_j that belongs to no epoch, as start-up; 0: none is known */
    double apart_time_s;   /* likewise of time_s */
    int nothing_learnt;    /* not 0: the program failed before its first step. Forget that it began: the next
                              question is as if the trial had not been */
};

/* A power profile, and what it took to measure. Copy what you keep. */
struct fly_profile {
    size_t batch;
    const struct fly_power_point *points; /* limits in any order, times of one unit of work */
    size_t count;
    size_t chosen;          /* index of the point that the power-limit policy chose */
    double units_per_epoch; /* 1: the unit is an epoch; NAN: not known */
    double window;          /* share of an epoch in which it was measured, evenly over the limits */
    double energy_j;        /* that this window took, by these points; NAN: not known */
    double time_s;
};

enum fly_past_kind {
    FLY_PAST_HARDWARE, /* the same job on other GPUs: what reached its target there does so here */
    FLY_PAST_REVISION, /* before the user changed script, data or hyper-parameters */
    FLY_PAST_JOB,      /* another job, which the user named */
};

/*
 * What was observed elsewhere of one batch size. Epochs to the target do not depend on the GPU or on the
 * objective. The cost of an epoch does; its shape over batch sizes is similar.
 */
struct fly_past {
    enum fly_past_kind kind;
    size_t batch;
    uint64_t reached;          /* runs that reached their target */
    double epochs;             /* the geometric mean of theirs; 0 without any */
    double log_epochs_squares; /* sum of squared distances of the natural logarithms from that of the mean */
    uint64_t stopped;          /* runs that did not */
    uint64_t failed;           /* of these, runs that had all epochs of there */
    double stopped_epochs;     /* the most epochs of a run that did not; 0 without any */
    double epoch_cost_j;       /* of an epoch at its cheapest limit there, as cost_j; NAN: not known */
    size_t following;          /* batch sizes of the same past that are told next */
};

/* Why a batch size will not be run again. */
enum fly_bar {
    FLY_BAR_MEMORY,   /* it does not fit */
    FLY_BAR_GIVEN_UP, /* its trials crash again and again, or its models are worse than allowed */
};

/* How many epochs may a trial run? */
struct fly_cap_question {
    size_t batch;
    double epoch_energy_j; /* of an epoch at the trial's limit */
    double epoch_time_s;
    double highest_limit_w;  /* of this batch size's profile, all GPUs together */
    double recurrences_left; /* that will begin after this one; NAN: not known */
    double apart_energy_j;   /* what the trial takes apart from its epochs, as start-up; 0: none is known */
    double apart_time_s;
};

/* A batch-size policy. Slots marked optional may be left out. */
struct fly_batch_policy {
    uint32_t abi;     /* FLY_PLUGIN_ABI */
    uint32_t size;    /* sizeof(struct fly_batch_policy) */
    const char *name; /* in reports: 1 to 40 of a-z A-Z 0-9 - _ . + that begin with a letter or digit */
    uint32_t version; /* raise it when the policy decides otherwise than before */

    /*
     * Makes the state of one job under one seed. Returns 0; or anything else
     * for a job it cannot serve, then `*out_reason` may be set to say why, to a
     * text that stays.
     */
    int (*create)(const struct fly_batch_job *job, void **out_state, const char **out_reason);

    /* Optional: releases what create made. */
    void (*destroy)(void *state);

    /*
     * Optional: takes in the power profile of a batch size, limits in any order. Times are those of an
     * epoch, but in live jobs often of a step: `measure` tells which.
     */
    void (*profile)(void *state, size_t batch, const struct fly_power_point *points, size_t count);

    /* Optional: takes in how a trial ended. */
    void (*observe)(void *state, const struct fly_trial *trial);

    /*
     * Answers what to run next; learns nothing from being asked. Returns 0;
     * FLY_NOTHING_LEFT when no batch size is worth a trial, which ends the job;
     * or anything else for a failure.
     */
    int (*propose)(const void *state, const struct fly_batch_question *question,
                   struct fly_batch_decision *out_decision);

    /*
     * Optional: the epochs that a trial may run, 0 (do not start it) to
     * max_epochs, given what an epoch takes at its power limit. Without it:
     * max_epochs.
     */
    uint32_t (*epoch_cap)(const void *state, size_t batch, double epoch_energy_j, double epoch_time_s);

    /*
     * Optional: takes in that a trial of this batch size begins, whoever chose it. Its end comes to
     * `observe`; where recurrences overlap, other trials may begin before. A program too old for
     * this slot, or for the epochs of struct fly_trial, refuses the plug-in by its size.
     */
    void (*begin)(void *state, size_t batch);

    /* A program too old for what follows, or for what it fills of the structs, refuses the plug-in by its
     * size. */

    /* Optional: as `profile`, which is then not called, with what else is known of it. */
    void (*measure)(void *state, const struct fly_profile *profile);

    /* Optional: takes in what was observed elsewhere, batch size by batch size, before it is asked. */
    void (*bring)(void *state, const struct fly_past *past);

    /*
     * Optional: takes in a trial that the policy did not propose, such as a control. There was no `begin`;
     * its trial, recurrence and try_number say nothing.
     */
    void (*see)(void *state, const struct fly_trial *trial);

    /* Optional: takes in that a batch size will not be run again; may be told twice. */
    void (*bar)(void *state, size_t batch, enum fly_bar why);

    /* Optional: as `epoch_cap`, which is then not called. */
    uint32_t (*cap)(const void *state, const struct fly_cap_question *question);
};

/* A power-limit policy: for every batch size that is profiled, whichever policy chose that. */
struct fly_power_policy {
    uint32_t abi;     /* FLY_PLUGIN_ABI */
    uint32_t size;    /* sizeof(struct fly_power_policy) */
    const char *name; /* as above */
    uint32_t version;

    /*
     * Sets `*out_index` to the chosen one of `count` >= 1 points, which are in
     * any order; it comes in as none of them. eta and max_power_w are as in
     * struct fly_batch_job. Returns 0, or anything else for a failure.
     */
    int (*choose)(const struct fly_power_point *points, size_t count, double eta, double max_power_w,
                  size_t *out_index);
};

/* What a plug-in defines: one of these, or both. */
extern FLY_API const struct fly_batch_policy fly_batch_policy_plugin;
extern FLY_API const struct fly_power_policy fly_power_policy_plugin;

#ifdef __cplusplus
}
#endif

#endif
