/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_BATCH_POLICY_H
#define FLYBALL_POLICY_BATCH_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/cost.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/math/generator.h"
#include "model/job_spec.h"
#include "policy/event.h"
#include "policy/power_policy.h"

/*
 * A batch-size policy decides which batch size the next trial of a recurring job gets, and how
 * many epochs the trial may take.
 *
 * A policy is pure. Its state follows from the events alone. It reads no clock, file, device or
 * global that could change an answer, and takes randomness only as batch_question says, so that the same
 * events give the same decisions anywhere. One state belongs to one job and is used by one thread at a time.
 */

enum guard_choice { GUARD_OF_POLICY, GUARD_ON, GUARD_OFF };

/* Parameters that the user may set; every policy reads the fields that it knows. */
struct policy_parameters {
    double beta;     /* stop a trial at this multiple of the best cost; > 0, infinity for never */
    uint32_t window; /* how many observations of a batch size count, newest first; 0: all */
    uint32_t seed;
    enum generator generator;
    bool overlapping; /* recurrences may be submitted while others run */
    bool no_default; /* the default batch size is only where the search begins, and nothing to compare with */
    size_t fixed_batch; /* the choice of the policy `fixed` */
    double fixed_limit_w;
    /* If not NULL: gives the choice of `fixed` for each recurrence, if that varies; gets fixed_context. */
    void (*fixed_at)(const void *context, uint64_t recurrence, size_t *out_batch, double *out_limit_w);
    const void *fixed_context;
    const struct power_policy *power; /* chooses from profiles; NULL: power_policy_cost */
    enum guard_choice guard;          /* whether searches are held against the default (search_guard.h) */
    /* For `zeus-server` only: */
    uint32_t pruning_rounds;
    uint32_t explorations;  /* trials of each batch size before it is sampled */
    double prior_mean;      /* of the reward, in -J */
    double prior_precision; /* 0: flat */
    /* For `bayes` only: */
    double horizon;        /* recurrences that are still expected, each time; 0: learnt from how many were */
    double profile_window; /* share of its first epoch after which a trial is profiled and may end; 0: all of
                              it */
    double profile_steps;  /* steps in which a live profile measures each limit: they say what share it was of
                              an epoch, where that is known in steps; 0: it is always profile_window */
};

enum { POLICY_WINDOW_MAX = 65536 };

/* Asks what to run next. */
struct batch_question {
    uint64_t recurrence;     /* from 0 */
    uint32_t try_number;     /* within the recurrence, from 0 */
    uint64_t trial;          /* proposals made so far; selects this decision's random numbers */
    uint64_t in_flight;      /* trials that were proposed and have not ended */
    uint32_t explorers;      /* how many trials may explore beside each other, this one among them */
    double recurrences_left; /* that will begin, with this one if it is new; NAN: not known */
};

/*
 * The cost of a trial's epochs, by the job's eta. What a trial takes apart from them it takes at each batch
 * size: a model of epochs leaves it out.
 */
static inline double trial_epochs_cost(const struct job_spec *spec, const struct fly_trial *ended)
{
    return fly_cost(spec->eta, spec->max_power_w, ended->energy_j - ended->apart_energy_j,
                    ended->time_s - ended->apart_time_s);
}

/* Asks how many epochs a proposed trial may run. */
struct epoch_question {
    size_t batch;
    double epoch_energy_j; /* at the trial's power limit */
    double epoch_time_s;
    double apart_energy_j; /* what the trial takes apart from its epochs, as start-up, where that is known */
    double apart_time_s;
    double highest_limit_w;  /* of this batch size's profile, all GPUs together */
    double recurrences_left; /* that will still begin; NAN: not known */
};

/* Asks whether a trial goes on after an epoch. */
struct progress_question {
    const struct epoch_reported *reported;
    uint32_t epochs; /* how many the trial may run, by epoch_cap or max_epochs */
    bool capped;     /* the trial may be stopped before max_epochs */
};

enum verdict {
    VERDICT_GO_ON,
    VERDICT_REACHED, /* the target was reached */
    VERDICT_EPOCHS,  /* max_epochs are done */
    VERDICT_COST,    /* the trial costs more than it may */
};

/*
 * What a policy that models costs expects of a batch size. Costs are those of fly_cost, logarithms are
 * natural.
 */
struct batch_outlook {
    double expected_cost; /* of a run to the target */
    double doubt;         /* standard deviation of what is believed of the logarithm of the mean cost */
    double scatter;       /* standard deviation of the logarithm between runs */
    double failure;       /* probability that a run does not reach its target */
    double trial_cost; /* expected, of a trial that is stopped at stop_cost and what makes the model then */
    double stop_cost;
    double gain;      /* expected decrease of the cost of each following recurrence, by `runs` trials */
    double following; /* how many recurrences are expected to follow */
    double worth;     /* of the trials: what they gain in all of them, less what they cost beyond the best */
    uint32_t runs;
    bool is_best; /* the best known one, with which the others are compared */
    bool may_run; /* it fits, what is known reaches near enough to try it now, and another one may explore */
};

struct batch_policy {
    const char *name;
    const char *summary; /* one line for people */
    uint32_t version;    /* raised whenever the same events may give other decisions */
    const char *content; /* SHA-256 of a plug-in's file, in hexadecimal; NULL: built in */

    /*
     * Power limits are chosen with the highest limit of the batch size in place of the job's
     * max_power_w, as the published code does.
     */
    bool weighs_with_batch_limit;

    /* It learns from what was observed elsewhere (EVENT_PAST_BROUGHT). */
    bool heeds_past;

    /* It may forget all but the newest results (policy_parameters.window); a plug-in is always told. */
    bool heeds_window;

    /*
     * With GUARD_OF_POLICY it is guarded. Its early stopping gives way where all costs rise alike, so
     * learning does not begin anew for that.
     */
    bool guarded;

    /* It answers as a published service does, or chooses nothing: it is never guarded. */
    bool unguarded;

    /*
     * Makes the state of one job in `arena`. Borrows `self` and `spec` for the lifetime of the state.
     * FLY_ENOMEM, or FLY_EUSAGE for parameters out of range.
     */
    int (*create)(const struct batch_policy *self, const struct job_spec *spec,
                  const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                  struct fly_error *out_error);

    /* Releases what the state holds outside the arena. NULL: there is nothing. */
    void (*destroy)(void *state);

    /* Updates the state with one event; cannot fail. NULL: the policy learns nothing. */
    void (*fold)(void *state, const struct event *event);

    /*
     * Answers a question without changing the state. FLY_EEXHAUSTED if the policy has no batch size
     * left to propose.
     */
    int (*propose)(const void *state, const struct batch_question *question, struct proposal *out_proposal,
                   struct fly_error *out_error);

    /*
     * Says what it expects of each batch size, for people, at the same question; `outlooks` has an entry for
     * each. Returns false when it has nothing to say. NULL: it never has.
     */
    bool (*explain)(const void *state, const struct batch_question *question, struct batch_outlook *outlooks);

    /*
     * Gives the epochs that a trial may run, 0 to max_epochs; 0 refuses the trial. Fails only with
     * FLY_EDATA, for a plug-in whose answer is out of range. NULL: always max_epochs.
     */
    int (*epoch_cap)(const void *state, const struct epoch_question *question, uint32_t *out_epochs,
                     struct fly_error *out_error);

    /* Returns whether a trial goes on. NULL: it goes on until its target or its epochs (decider.h). */
    enum verdict (*judge)(const void *state, const struct progress_question *question);

    /*
     * A policy with these two chooses pairs of batch size and power limit, and applies the bound on the
     * slowdown to the pair; the decider asks only if the job has one (decider_chooses_pairs). Both NULL:
     * it chooses batch sizes alone.
     *
     * `choose_limit` gives the point of a profile, known or just measured, at which its batch size runs;
     * false leaves the choice to the power policy. `keeps_bound` returns whether some limit of the batch
     * size keeps the bound, as far as known.
     */
    bool (*choose_limit)(const void *state, const struct profile_measured *measured, size_t *out_point);
    bool (*keeps_bound)(const void *state, size_t batch);

    /*
     * Write the state as bytes, and read it back into a state just created with the same spec and
     * parameters. `load` returns whether the bytes were such a state; after false the state must not
     * be used. Raise `version` when the format changes. Both NULL: the state can only be rebuilt by
     * folding its events again.
     */
    void (*save)(const void *state, struct buffer *bytes);
    bool (*load)(void *state, struct bytes_reader *bytes);
};

extern const struct batch_policy batch_policy_bayes;
extern const struct batch_policy batch_policy_default; /* the default batch size at its highest limit */
extern const struct batch_policy batch_policy_fixed;   /* always what the parameters say */
extern const struct batch_policy batch_policy_grid;
extern const struct batch_policy batch_policy_zeus;
extern const struct batch_policy batch_policy_zeus_server;

/* Simple searches that others are compared with, for simulations alone: they cannot be saved. */
extern const struct batch_policy batch_policy_bandit;
extern const struct batch_policy batch_policy_hill_climb;
extern const struct batch_policy batch_policy_zeus_one_round; /* `zeus` without its second round of pruning */

#endif
