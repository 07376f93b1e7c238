/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_BATCH_POLICY_H
#define FLYBALL_POLICY_BATCH_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/math/generator.h"
#include "model/job_spec.h"
#include "policy/event.h"
#include "policy/power_policy.h"

/*
 * A batch-size policy: which batch size does the next trial of a recurring job
 * get, and how many epochs may it take?
 *
 * A policy is pure. Its state follows from the events alone; it reads no clock,
 * file, device or global, and takes randomness only as batch_question says, so
 * that the same events give the same decisions anywhere. One state belongs to
 * one job and is used by one thread at a time.
 */

/* What the user may set; every policy reads the fields it knows. */
struct policy_parameters {
    double beta;     /* stop a trial at this multiple of the best cost; > 0, infinity for never */
    uint32_t window; /* observations of a batch size that count, newest first; 0 for all */
    uint32_t seed;
    enum generator generator;
    bool overlapping;   /* recurrences may be submitted while others run */
    size_t fixed_batch; /* the choice of the policy `fixed` */
    double fixed_limit_w;
    /* If not NULL, that choice in each recurrence, where it changes; gets fixed_context. */
    void (*fixed_at)(const void *context, uint64_t recurrence, size_t *out_batch, double *out_limit_w);
    const void *fixed_context;
    const struct power_policy *power; /* chooses from profiles; NULL: power_policy_cost */
    /* Of `zeus-server` alone: */
    uint32_t pruning_rounds;
    uint32_t explorations;  /* of each batch size before it is sampled */
    double prior_mean;      /* of the reward, in -J */
    double prior_precision; /* 0: flat */
};

enum { POLICY_WINDOW_MAX = 65536 };

/* The question what to run next. */
struct batch_question {
    uint64_t recurrence; /* from 0 */
    uint32_t try_number; /* within the recurrence, from 0 */
    uint64_t trial;      /* proposals made so far: index of this decision's random numbers */
    uint64_t in_flight;  /* trials proposed that have not ended */
};

/* The question how many epochs a proposed trial may run. */
struct epoch_question {
    size_t batch;
    double epoch_energy_j; /* at the trial's power limit */
    double epoch_time_s;
    double highest_limit_w; /* of this batch size's profile, all GPUs together */
};

/* The question whether a trial goes on after an epoch. */
struct progress_question {
    const struct epoch_reported *reported;
    uint32_t epochs; /* the trial may run, by epoch_cap or max_epochs */
    bool capped;     /* it may be stopped before max_epochs */
};

enum verdict {
    VERDICT_GO_ON,
    VERDICT_REACHED, /* the target */
    VERDICT_EPOCHS,  /* max_epochs are done */
    VERDICT_COST,    /* it costs more than it may */
};

struct batch_policy {
    const char *name;
    const char *summary; /* one line for people */
    uint32_t version;    /* raised when equal events may give other decisions */
    const char *content; /* SHA-256 of a plug-in's file, in hexadecimal; NULL: built in */

    /*
     * Power limits are chosen with the highest limit of the batch size in the
     * place of the job's max_power_w: a habit of the published code.
     */
    bool weighs_with_batch_limit;

    /*
     * Makes the state of one job in `arena`. Borrows `self` and `spec` for the
     * state's life. FLY_ENOMEM, or FLY_EUSAGE for parameters out of range.
     */
    int (*create)(const struct batch_policy *self, const struct job_spec *spec,
                  const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                  struct fly_error *out_error);

    /* Releases what the state holds beside the arena. NULL: nothing. */
    void (*destroy)(void *state);

    /* Takes one event in; cannot fail. NULL when the policy learns nothing. */
    void (*fold)(void *state, const struct event *event);

    /*
     * Answers a question and leaves the state alone. FLY_EEXHAUSTED when the
     * policy has no batch size left to propose.
     */
    int (*propose)(const void *state, const struct batch_question *question, struct proposal *out_proposal,
                   struct fly_error *out_error);

    /*
     * The epochs a trial may run, 0 to max_epochs; 0 refuses it. Fails only
     * with FLY_EDATA for a plug-in that answers otherwise. NULL: always
     * max_epochs.
     */
    int (*epoch_cap)(const void *state, const struct epoch_question *question, uint32_t *out_epochs,
                     struct fly_error *out_error);

    /* Whether a trial goes on. NULL: until its target or its epochs (decider.h). */
    enum verdict (*judge)(const void *state, const struct progress_question *question);

    /*
     * The fold's state as bytes, and back into a state just created with the same
     * spec and parameters. `load` returns whether the bytes were such a state; after a
     * false the state is of no use. A change of the form raises `version`. Both NULL:
     * the state can only be folded anew.
     */
    void (*save)(const void *state, struct buffer *bytes);
    bool (*load)(void *state, struct bytes_reader *bytes);
};

extern const struct batch_policy batch_policy_default; /* the default batch size at its highest limit */
extern const struct batch_policy batch_policy_fixed;   /* what the parameters say, for ever */
extern const struct batch_policy batch_policy_grid;
extern const struct batch_policy batch_policy_zeus;
extern const struct batch_policy batch_policy_zeus_server;

#endif
