/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_BAYES_BELIEF_H
#define FLYBALL_POLICY_BAYES_BELIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/math/drift_watch.h"
#include "base/math/triangle.h"
#include "policy/law/bayes_laws.h"
#include "policy/law/law_mixture.h"
#include "policy/past.h"

/*
 * What is believed of the cost to reach the target at each batch size:
 *
 *     log cost = log epochs + log(cost of an epoch)
 *
 * Only epochs scatter; the cost of an epoch is exact as soon as it was measured. Both parts are a
 * law_mixture, so what one batch size showed tells of its neighbours.
 *
 * - The scatter of log epochs between runs is pooled over batch sizes and shrunk to a prior.
 * - A run that stopped before its target says that it needed more epochs. This truncated normal is
 *   matched by a normal pseudo-observation of the same mean and variance (expectation propagation,
 *   Minka 2001), which is dropped when the batch size reaches its target.
 * - A batch size fails with a probability that grows with the octaves to the nearest one that
 *   reached its target, and with its own failures.
 *
 * - While the runs of some batch size drift (drift_watch.h), its newest runs count most, what was observed of
 *   the others long ago counts less with each run, and half of a change is taken to be one of all batch
 *   sizes: their common level and the place of the best one are followed apart.
 * - What was observed elsewhere is a second opinion (belief_past).
 *
 * Pure but for the arena; deterministic, the same bits on every machine. The belief follows from
 * what was observed; call belief_fit after observing, before reading it.
 */

/* What is believed before anything was observed. */
struct belief_prior {
    struct law_prior epochs, epoch_cost; /* of their logarithms */
    double scatter;                      /* standard deviation of log epochs between runs */
    double scatter_runs;                 /* how many runs this counts for */
    double outlier;      /* kappa: doubt about the mean is kappa / n more, with n runs here and of a past that
                            vouches */
    double reaches;      /* probability that a batch size reaches its target, one octave away */
    double fails_beyond; /* least probability of failure beyond a batch size that failed */
    double fails_known;  /* failures in advance of a batch size that reached its target */
    double failure_cost; /* expected cost of a failure, in tries: a factor 1 + this * q / (1 - q) */
};

extern const struct belief_prior belief_prior_default;

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

/* A part of the belief as the laws fit it, which a second opinion is mixed into. */
struct past_fit {
    const struct law_mixture *law;
    const struct law_evidence *evidence;
    double log_likelihood;     /* of the evidence under the laws */
    double *mean, *covariance; /* replaced by those of both; a triangle */
};

/* Returns how many runs of the past are evidence that a batch size reaches its target here. */
uint64_t belief_past_vouched(const struct belief_past *past, size_t batch);

/* Returns the sum of these runs over all `count` batch sizes. */
uint64_t belief_past_runs(const struct belief_past *past, size_t count);

/* Returns what the past showed of a batch size, while it is trusted; else nothing. */
const struct past_tally *belief_past_tally(const struct belief_past *past, size_t batch);

/* What was observed of one batch size. */
struct belief_arm {
    uint64_t reached;         /* runs that reached the target */
    double mean, squares;     /* of their log epochs: the mean, and the sum of squared distances from it */
    double stopped_precision; /* the pseudo-observation of stopped runs; 0: none */
    double stopped_value;     /* times its precision */
    struct drift_watch watch; /* of its log epochs */
    double level;             /* the common level when it last reached its target */
    uint64_t seen;            /* how many runs had then reached theirs */
    uint64_t failures;
    bool tried;      /* a trial has ended */
    bool profiled;   /* the cost of an epoch is the profile's, else that of the newest trial */
    bool cost_known; /* the next one is known */
    double log_cost; /* of an epoch */
};

struct belief {
    const struct belief_prior *prior; /* borrowed */
    size_t count;
    const struct bayes_laws *laws; /* shared with other jobs */
    struct belief_arm *arms;
    /* Of log epochs and the log cost of an epoch; covariances are triangles (base/math/triangle.h): */
    double *epochs_mean, *epochs_covariance;
    double *cost_mean, *cost_covariance;
    double *scatter; /* variance of log epochs between runs */
    double *failure; /* probability that a run does not reach its target */
    bool drifts;
    double level;  /* common, of log epochs: what it has changed by while they drifted */
    uint64_t seen; /* runs that reached their target */
    struct belief_past past;
    struct arena *arena; /* borrowed, for what is brought */
};

/*
 * Initialises it for batch sizes `sizes`, ascending, at most LAW_BATCHES_MAX. Returns whether there was
 * memory. It is fitted to nothing. Call belief_deinit only after success.
 */
bool belief_init(struct belief *belief, const struct belief_prior *prior, const uint32_t *sizes, size_t count,
                 size_t default_batch, struct arena *arena);

void belief_deinit(struct belief *belief);

/* Returns how many runs show that a batch size reaches its target: its own, and those of a past that vouches.
 */
static inline uint64_t belief_reached(const struct belief *belief, size_t batch)
{
    return belief->arms[batch].reached + belief_past_vouched(&belief->past, batch);
}

/* Returns whether a run was taken in here, whatever it showed. */
bool belief_has_begun(const struct belief *belief);

/* Takes in the cost of an epoch. What a profile tells is not replaced by what trials took. */
void belief_take_cost(struct belief *belief, size_t batch, double epoch_cost, bool profiled);

/* Takes in a run that reached its target after so many epochs, > 0. */
void belief_take_reached(struct belief *belief, size_t batch, double epochs);

/*
 * Takes in a run that ended after so many epochs, > 0, before its target. With `failed` it counts
 * as a failure too. The belief must be fitted.
 */
void belief_take_stopped(struct belief *belief, size_t batch, double epochs, bool failed);

void belief_fit_epochs(struct belief *belief);
void belief_fit_cost(struct belief *belief);

/*
 * Replaces what was brought from elsewhere. It is left out if there is no room for it. The belief must be
 * fitted again.
 */
void belief_bring(struct belief *belief, const struct past_brought *brought);

/* What is believed of the log cost of a run at a batch size. */
static inline double belief_mean(const struct belief *belief, size_t batch)
{
    return belief->epochs_mean[batch] + belief->cost_mean[batch];
}

static inline double belief_covariance(const struct belief *belief, size_t one, size_t other)
{
    size_t at = triangle_at(one, other);

    return belief->epochs_covariance[at] + belief->cost_covariance[at];
}

/* Write what was observed as bytes, and read it back, fitted; false for impossible bytes. */
void belief_save(const struct belief *belief, struct buffer *bytes);
bool belief_load(struct belief *belief, struct bytes_reader *bytes);

/* ---- how long the belief is for, and when it is doubted ---- */

/*
 * How many recurrences of a job are still to be expected when nobody has said so, and when the belief
 * about its batch sizes is to be doubted. Both follow from the number of recurrences that reached their
 * target, without a clock.
 *
 * A job that has recurred often goes on longer than a new one: 20 recurrences are expected at first, then
 * three times as many as there were with the next one, 30 at most. So a new job tries what pays soon, and
 * what pays only in the long run is tried later.
 *
 * A few unlucky runs of one batch size may hide better ones behind it, and then nothing ever shows
 * that they are better. So the 12th recurrence doubts what is believed of larger batch sizes, the next one
 * that of smaller ones, and so do the 36th, the 108th, and so on, with the next. Where recurrences overlap,
 * the one that begins next doubts.
 *
 * A past that vouches has been searched already. With it the first doubt is left out, and the next comes no
 * sooner than when there were three times as many runs, there and here, as that past had.
 */
enum doubt { DOUBT_NONE, DOUBT_LARGER, DOUBT_SMALLER, DOUBT_COUNT };

struct bayes_course {
    uint64_t reached; /* recurrences that reached their target */
    enum doubt doubt;
    bool taken_up; /* a trial was proposed since this doubt arose */
};

/* What counts for a choice. */
struct bayes_prospect {
    double horizon; /* recurrences that are still expected */
    enum doubt doubt;
};

/*
 * Gives the prospect of a trial that is chosen next (`chosen` is false), or of one that was chosen last.
 * `horizon` says how many recurrences to expect, 0 leaves it to the course; `following` says how many follow
 * at most, NAN if that is not known. Doubt takes many recurrences to pay.
 */
struct bayes_prospect bayes_prospect_of(const struct bayes_course *course, double horizon, double following,
                                        bool chosen);

void bayes_course_propose(struct bayes_course *course);

/* Takes in a recurrence that reached its target; a past that vouches had so many runs `elsewhere`. */
void bayes_course_reach(struct bayes_course *course, uint64_t elsewhere);

void bayes_course_save(const struct bayes_course *course, struct buffer *bytes);
void bayes_course_load(struct bayes_course *course, struct bytes_reader *bytes);

#endif
