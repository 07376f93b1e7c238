/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_BAYES_CHOICE_H
#define FLYBALL_POLICY_BAYES_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/batch_policy.h"
#include "policy/bayes_belief.h"
#include "policy/pair_bound.h"

/*
 * What a trial of each batch size is worth and costs, and where it should be stopped: the
 * knowledge gradient (Frazier, Powell and Dayanik, "The Knowledge-Gradient Policy for Correlated
 * Normal Beliefs", 2009) against a trial's own cost, with optimal stopping.
 *
 * The best known batch size has the least expected cost V among those that reached their target.
 * A trial of another one, stopped when it has cost tau, costs in expectation
 *
 *     J(tau) = (1 - q) E[c; c <= tau] + ((1 - q) P(c > tau) + q) (tau + V) + what its profile costs
 *
 * since after a stopped trial the best known one runs. tau is the cheapest from 1.1 V to 3 V. What
 * is learnt lowers the expected cost of every later recurrence:
 *
 *     net = max over k of (horizon * gain of k trials - k (J - V))
 *
 * with k = 1 for a batch size that never reached its target; several trials at once make up for
 * the knowledge gradient's blindness to what only repeating a noisy trial would tell. Trials that
 * run already count as if they had ended as expected. Where the belief itself is doubted, what never
 * ran nor failed is believed less firmly, and what it brings counts several times.
 *
 * Within a bound on the slowdown (pair_bound.h) a run costs what it costs at the limit that the bound
 * leaves its batch size, and only a batch size that keeps the bound can be the best known one. A trial of
 * another one brings its gain with the probability that it keeps the bound once the trials have ended,
 * and is not begun where that cannot be; what it saves by breaking the bound for certain counts for nothing.
 * A run of the default narrows the doubt about the slowdown of all others, and so brings limits and batch
 * sizes within the bound that are kept out by that doubt. If none keeps the bound, the one that is nearest to
 * it counts.
 *
 * Pure and deterministic, the same bits on every machine.
 */
enum { CHOICE_STOPS = 11 };

/* tau / V, and the logarithms: from ln 1.1 to ln 3 in equal steps. */
extern const double choice_stops[CHOICE_STOPS], choice_log_stops[CHOICE_STOPS];

struct choice_question {
    const struct belief *belief;
    const bool *cannot_run;  /* per batch size */
    const uint32_t *pending; /* per batch size: trials that run; NULL: none */
    uint32_t explorers;      /* how many trials may run beside each other at others than the best known one */
    struct bayes_prospect prospect;
    double profile_extra;           /* what a profile costs beyond its epoch, as a share of an epoch's cost */
    const struct epoch_cost *exact; /* NULL: only what the belief has */
    const struct pair *pairs; /* per batch size: what a bound on the slowdown leaves of it; NULL: no bound */
    size_t default_batch;
};

/* What a question comes to for all batch sizes. */
struct choice {
    struct choice_question question;
    size_t best;      /* the best known batch size; the belief's count if none reached its target */
    double best_cost; /* V */
    double log_best_cost;
    double *mean;       /* borrowed: of log cost */
    double *covariance; /* borrowed: of log cost, pending trials counted; a triangle */
    double *penalty;    /* borrowed: log of the factor for failures */
};

/* What a trial is worth. */
struct trial_worth {
    double stop_cost;     /* tau: stop the trial when it has cost as much */
    double expected_cost; /* J */
    double gain;          /* expected decrease of the cost of one later recurrence, for `runs` trials */
    uint32_t runs;        /* k */
    double net;           /* what the trial is worth beyond running the best known batch size */
};

/* Room for a choice, for the caller's stack. */
struct choice_room {
    double mean[LAW_BATCHES_MAX], penalty[LAW_BATCHES_MAX];
    double covariance[LAW_BATCHES_MAX * (LAW_BATCHES_MAX + 1) / 2];
    struct pair pairs[LAW_BATCHES_MAX];
};

/* Answers the question for all. The choice borrows the room, which may hold the question's pairs. */
struct choice choice_open(const struct choice_question *question, struct choice_room *room);

/* Returns the logarithm of a run's expected cost. */
double choice_log_expected(const struct choice *choice, size_t batch);

/* Returns what a trial of this batch size is worth; some batch size must have reached its target. */
struct trial_worth choice_worth(const struct choice *choice, size_t batch);

/*
 * Returns whether a batch size may be tried: it was, here or in a past that is trusted, or it is beside one
 * that was, or at most two octaves away.
 */
bool choice_is_near(const struct choice *choice, size_t batch);

/*
 * Says what the choice rests on, for each batch size; runs of the best known one are stopped at `best_stop`.
 * Returns false while none has reached its target.
 */
bool choice_explain(const struct choice *choice, double best_stop, struct batch_outlook *outlooks);

/*
 * For as long as none has reached its target: returns the batch size with the fewest failures and runs that
 * ended by themselves, `early`, each counted as two steps from the default; ties go to the nearest, then to
 * the smaller. Returns the belief's count for none.
 */
size_t choice_least_doubtful(const struct choice *choice, const uint64_t *early);

/* Returns whether nothing was observed here, nor runs. */
bool choice_begins(const struct choice *choice);

/*
 * For as long as that is so: returns the best known batch size, or the default if that should cost less. A
 * past alone does not say what a trial here is worth.
 */
size_t choice_first(const struct choice *choice);

/* Returns whether one more trial may explore beside those that run. */
bool choice_may_explore(const struct choice *choice);

/*
 * Returns the batch size whose trial is worth most, or the best known one if none is worth its cost or no
 * more may explore.
 */
size_t choice_most_worth(const struct choice *choice);

#endif
