/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_BAYES_PAST_H
#define FLYBALL_POLICY_BAYES_PAST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "policy/law/law_mixture.h"
#include "policy/past.h"

/*
 * What was brought from elsewhere, as a second opinion on log epochs and on the log cost of an
 * epoch. Two hypotheses are weighed:
 *
 *     it holds         y = what it showed + one unknown level + a smooth residual
 *     it does not      the laws alone, as for a job without a past (law_mixture.h)
 *
 * What is observed here weighs them by its exact marginal likelihood under each, and both are
 * matched by one Gaussian of their mean and covariance. So a past that misleads is worth nothing
 * after a trial or two, and one that holds is worth nearly as much as runs of the job itself.
 *
 * While nothing was observed here, the past alone speaks.
 */
/* How much a past of one kind is believed. */
struct past_trust {
    double holds;     /* probability in advance */
    double level_sd;  /* of the level of log epochs; that of epochs' cost is always unknown */
    double epochs_sd; /* of the residual of log epochs; its length is that of the laws */
    double cost_sd;   /* likewise of the log cost of an epoch */
    bool vouches;     /* a batch size that reached its target there is known to do so here */
};

extern const struct past_trust past_trusts[PAST_KINDS];

/* A part of the second opinion: of log epochs, or of the log cost of an epoch. */
struct past_view {
    double *mean, *covariance; /* what there was believed at last; a triangle (base/math/triangle.h) */
    double weight;             /* that it holds, given what was observed here */
};

struct belief_past {
    bool brought;
    bool trusted; /* it is more likely to hold than not */
    enum past_kind kind;
    struct past_tally *tallies; /* per batch size */
    struct past_view epochs, cost;
};

/* Makes room for `count` batch sizes, once. Returns whether the arena had it. */
bool belief_past_init(struct belief_past *past, size_t count, struct arena *arena);

/* Notes what was believed there at last. */
void past_view_note(struct past_view *view, const double *mean, const double *covariance, size_t count);

/* A part of the belief as the laws fit it, which a second opinion is mixed into. */
struct past_fit {
    const struct law_mixture *law;
    const struct law_evidence *evidence;
    double log_likelihood;     /* of the evidence under the laws */
    double *mean, *covariance; /* replaced by those of both; a triangle */
};

/* Mix the second opinion in, if one was brought. */
void belief_past_mix_epochs(struct belief_past *past, const struct past_fit *fit);
void belief_past_mix_cost(struct belief_past *past, const struct past_fit *fit);

/* Returns whether the past is more likely to hold than not, by what was observed of epochs. */
bool belief_past_likely(const struct belief_past *past);

/* Returns how many runs of the past are evidence that a batch size reaches its target here. */
uint64_t belief_past_vouched(const struct belief_past *past, size_t batch);

/* Returns the sum of these runs over all `count` batch sizes. */
uint64_t belief_past_runs(const struct belief_past *past, size_t count);

/* Returns what the past showed of a batch size, while it is trusted; else nothing. */
const struct past_tally *belief_past_tally(const struct belief_past *past, size_t batch);

/*
 * Write what was brought as bytes, and read it back: into `batches`, `count` of them. Load returns false for
 * impossible bytes; a count of 0 is left where nothing was brought.
 */
void belief_past_save(const struct belief_past *past, size_t count, struct buffer *bytes);
bool belief_past_load(struct bytes_reader *bytes, size_t count, struct past_batch *batches,
                      struct past_brought *out_brought);

#endif
