/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/bayes_belief.h"

#include <math.h>
#include <string.h>

#include "base/math/normal.h"
#include "base/math/portable_math.h"

const struct belief_prior belief_prior_default = {
    .epochs = {.right = {-6.0, 1.0, 15},
               .left = {-12.0, 2.0, 7},
               .level_sd = 10.0,
               .deviations = {0.1, 0.2, 0.6},
               .weights = {0.4, 0.4, 0.2},
               .length = 1.0,
               .nugget = 0.02},
    .epoch_cost = {.left = {-12.0, 1.0, 17},
                   .level_sd = 10.0,
                   .deviations = {0.15},
                   .weights = {1.0},
                   .length = 2.0,
                   .nugget = 0.02},
    .scatter = 0.12,
    .scatter_runs = 4.0,
    .outlier = 0.12,
    .reaches = 0.85,
    .fails_beyond = 0.3,
    .fails_known = 0.02,
    .failure_cost = 1.5,
};

static const double exact = 1e8; /* precision of the log cost of an epoch that was measured */

bool belief_init(struct belief *belief, const struct belief_prior *prior, const uint32_t *sizes, size_t count,
                 size_t default_batch, struct arena *arena)
{
    *belief = (struct belief){.prior = prior,
                              .arena = arena,
                              .count = count,
                              .arms = arena_alloc(arena, count, sizeof belief->arms[0]),
                              .epochs_mean = arena_alloc(arena, count, sizeof(double)),
                              .epochs_covariance = arena_alloc(arena, triangle_size(count), sizeof(double)),
                              .cost_mean = arena_alloc(arena, count, sizeof(double)),
                              .cost_covariance = arena_alloc(arena, triangle_size(count), sizeof(double)),
                              .scatter = arena_alloc(arena, count, sizeof(double)),
                              .failure = arena_alloc(arena, count, sizeof(double))};
    if (belief->arms == NULL || belief->epochs_mean == NULL || belief->epochs_covariance == NULL ||
        belief->cost_mean == NULL || belief->cost_covariance == NULL || belief->scatter == NULL ||
        belief->failure == NULL)
        return false;
    belief->laws = bayes_laws_borrow(&prior->epochs, &prior->epoch_cost, sizes, count, default_batch);
    if (belief->laws == NULL)
        return false;
    belief_fit_epochs(belief);
    belief_fit_cost(belief);
    return true;
}

void belief_deinit(struct belief *belief)
{
    bayes_laws_return(belief->laws);
}

/* ---- observing ---- */

bool belief_has_begun(const struct belief *belief)
{
    for (size_t i = 0; i < belief->count; i++) {
        if (belief->arms[i].tried || belief->arms[i].reached > 0)
            return true;
    }
    return false;
}

void belief_take_cost(struct belief *belief, size_t batch, double epoch_cost, bool profiled)
{
    struct belief_arm *arm = &belief->arms[batch];

    if (!(epoch_cost > 0.0) || !isfinite(epoch_cost) || (arm->profiled && !profiled))
        return;
    arm->profiled = profiled;
    arm->cost_known = true;
    arm->log_cost = portable_log(epoch_cost);
}

/* How log epochs are followed while they drift. */
static const double moved_a_run = 0.0005; /* variance by which a batch size moves with each run of others */
static const double common_share = 0.5;   /* of a change: how much of it is one of all batch sizes */
static const double least_runs = 4.0;     /* count, however fast they drift */

static void watch_drift(struct belief *belief)
{
    belief->drifts = false;
    for (size_t i = 0; i < belief->count; i++)
        belief->drifts = belief->drifts || drift_watch_drifts(&belief->arms[i].watch);
}

/* Returns how many of its runs a batch size's mean is of: with drift, as few as a Kalman filter settles at.
 */
static double runs_counted(const struct belief *belief, size_t batch)
{
    double runs = (double)belief->arms[batch].reached;

    return belief->drifts ? fmin(runs, fmax(sqrt(belief->scatter[batch] / moved_a_run), least_runs)) : runs;
}

void belief_take_reached(struct belief *belief, size_t batch, double epochs)
{
    struct belief_arm *arm = &belief->arms[batch];
    double value = portable_log(epochs), before = arm->mean + belief->level - arm->level;

    drift_watch_take(&arm->watch, value);
    watch_drift(belief);
    arm->reached++;
    arm->mean = before + (value - before) / runs_counted(belief, batch);
    arm->squares += (value - before) * (value - arm->mean);
    if (belief->drifts && arm->reached > 1)
        belief->level += common_share * (arm->mean - before);
    arm->level = belief->level;
    arm->seen = ++belief->seen;
    arm->stopped_precision = arm->stopped_value = 0.0;
}

/*
 * The mean f of log epochs is normal before, and the run's log epochs are f plus scatter. That they
 * exceed a bound has the probability normal_below(z); its moments are those of probit regression
 * (Rasmussen and Williams, 2006, section 3.9).
 */
void belief_take_stopped(struct belief *belief, size_t batch, double epochs, bool failed)
{
    struct belief_arm *arm = &belief->arms[batch];
    double mean = belief->epochs_mean[batch];
    double variance = belief->epochs_covariance[triangle_at(batch, batch)];
    double total = variance + belief->scatter[batch];
    double z = (mean - portable_log(epochs)) / sqrt(total), slope = normal_slope(z);
    double new_mean = mean + variance * slope / sqrt(total);
    double new_variance = variance - variance * variance * slope * (slope + z) / total;
    double precision = 1.0 / new_variance - 1.0 / variance;

    arm->failures += failed;
    if (!(variance > 0.0) || !(new_variance > 0.0) || !(precision > 0.0))
        return;
    arm->stopped_precision += precision;
    arm->stopped_value += new_mean / new_variance - mean / variance;
}

/* ---- the scatter and the failures ---- */

static double more_than_one(uint64_t runs)
{
    return runs > 1 ? (double)(runs - 1) : 0.0;
}

static void pool_scatter(struct belief *belief)
{
    const struct belief_prior *prior = belief->prior;
    double squares = 0.0, freedom = 0.0, pooled;

    for (size_t i = 0; i < belief->count; i++) {
        const struct past_tally *past = belief_past_tally(&belief->past, i);

        squares += belief->arms[i].squares + past->squares;
        freedom += more_than_one(belief->arms[i].reached) + more_than_one(past->reached);
    }
    pooled =
        (prior->scatter_runs * prior->scatter * prior->scatter + squares) / (prior->scatter_runs + freedom);
    for (size_t i = 0; i < belief->count; i++) {
        const struct belief_arm *arm = &belief->arms[i];
        bool counts = belief_past_vouched(&belief->past, i) > 0;
        const struct past_tally *past = counts ? belief_past_tally(&belief->past, i) : &past_tally_none;
        double more = more_than_one(arm->reached) + more_than_one(past->reached);

        belief->scatter[i] =
            (prior->scatter_runs * pooled + (arm->squares + past->squares)) / (prior->scatter_runs + more);
    }
}

/* Returns the failures of a batch size, with those of the past that say something here. */
static double failures_of(const struct belief *belief, size_t batch)
{
    const struct past_tally *past = belief_past_tally(&belief->past, batch);
    bool counts = past->reached == 0 || belief_past_vouched(&belief->past, batch) > 0;

    return (double)(belief->arms[batch].failures + (counts ? past->failed : 0));
}

/* Returns whether a batch size between two others has failed and never reached its target. */
static bool failed_between(const struct belief *belief, size_t one, size_t other)
{
    for (size_t i = (one < other ? one : other) + 1; i < (one < other ? other : one); i++) {
        if (failures_of(belief, i) > 0.0 && belief_reached(belief, i) == 0)
            return true;
    }
    return false;
}

/* Returns the nearest batch size that reached its target; the default if none did; ties go to the smaller. */
static size_t nearest_reached(const struct belief *belief, size_t batch)
{
    size_t nearest = belief->count;

    for (size_t i = 0; i < belief->count; i++) {
        if (belief_reached(belief, i) > 0 &&
            (nearest == belief->count ||
             fabs(belief->laws->octaves[i] - belief->laws->octaves[batch]) <
                 fabs(belief->laws->octaves[nearest] - belief->laws->octaves[batch])))
            nearest = i;
    }
    for (size_t i = 0; nearest == belief->count; i++) {
        if (belief->laws->octaves[i] == 0.0)
            nearest = i;
    }
    return nearest;
}

static double failure_of(const struct belief *belief, size_t batch, double log_reaches)
{
    const struct belief_prior *prior = belief->prior;
    double failures = failures_of(belief, batch), reached = (double)belief_reached(belief, batch), first;
    size_t nearest;

    if (reached > 0.0)
        return (prior->fails_known + failures) / (1.0 + reached + failures);
    nearest = nearest_reached(belief, batch);
    first =
        1.0 - portable_exp(fabs(belief->laws->octaves[batch] - belief->laws->octaves[nearest]) * log_reaches);
    if (failed_between(belief, batch, nearest))
        first = fmax(first, prior->fails_beyond);
    return (first + failures) / (1.0 + failures);
}

/* ---- fitting ---- */

/* Returns the variance by which a batch size may have moved since it last ran. */
static double moved_since(const struct belief *belief, size_t batch)
{
    return belief->drifts ? moved_a_run * (double)(belief->seen - belief->arms[batch].seen) : 0.0;
}

static void fit_epochs(struct belief *belief)
{
    double outlier = belief->prior->outlier * belief->prior->outlier;
    struct law_evidence evidence[LAW_BATCHES_MAX] = {{0}};
    struct past_fit fit = {.law = &belief->laws->epochs,
                           .evidence = evidence,
                           .mean = belief->epochs_mean,
                           .covariance = belief->epochs_covariance};

    pool_scatter(belief);
    for (size_t i = 0; i < belief->count; i++) {
        const struct belief_arm *arm = &belief->arms[i];
        double runs = (double)arm->reached, known = (double)belief_reached(belief, i);
        double precision = 0.0, value = arm->stopped_value;

        if (arm->reached > 0)
            precision =
                1.0 / (belief->scatter[i] / runs + outlier / (known * known) + moved_since(belief, i));
        value += precision * (arm->mean + belief->level - arm->level);
        precision += arm->stopped_precision;
        evidence[i] = (struct law_evidence){precision, precision > 0.0 ? value / precision : 0.0};
    }
    fit.log_likelihood = law_mixture_fit(fit.law, fit.evidence, fit.mean, fit.covariance);
    belief_past_mix_epochs(&belief->past, &fit);
}

/* A past that turns out not to hold tells nothing of the scatter either. */
void belief_fit_epochs(struct belief *belief)
{
    double log_reaches = portable_log(belief->prior->reaches);

    belief->past.trusted = belief->past.brought;
    fit_epochs(belief);
    if (belief->past.trusted && !belief_past_likely(&belief->past)) {
        belief->past.trusted = false;
        fit_epochs(belief);
    }
    for (size_t i = 0; i < belief->count; i++)
        belief->failure[i] = failure_of(belief, i, log_reaches);
}

void belief_fit_cost(struct belief *belief)
{
    size_t n = belief->count;
    struct law_evidence evidence[LAW_BATCHES_MAX] = {{0}};
    struct past_fit fit = {.law = &belief->laws->cost,
                           .evidence = evidence,
                           .mean = belief->cost_mean,
                           .covariance = belief->cost_covariance};

    for (size_t i = 0; i < n; i++)
        evidence[i] =
            (struct law_evidence){belief->arms[i].cost_known ? exact : 0.0, belief->arms[i].log_cost};
    fit.log_likelihood = law_mixture_fit(fit.law, fit.evidence, fit.mean, fit.covariance);
    belief_past_mix_cost(&belief->past, &fit);
    for (size_t i = 0; i < n; i++) {
        if (!belief->arms[i].cost_known)
            continue;
        belief->cost_mean[i] = belief->arms[i].log_cost;
        for (size_t j = 0; j < n; j++)
            belief->cost_covariance[triangle_at(i, j)] = 0.0;
    }
}

/* ---- a past elsewhere ---- */

/* Believes what the tallies show, as if they were of this job. */
static void believe(struct belief *belief)
{
    const struct past_tally *tallies = belief->past.tallies;

    for (size_t i = 0; i < belief->count; i++)
        belief->arms[i] = (struct belief_arm){
            .reached = tallies[i].reached,
            .mean = tallies[i].mean,
            .squares = tallies[i].squares,
            .level = belief->level,
            .seen = belief->seen,
            .cost_known = !isnan(tallies[i].log_epoch_cost),
            .log_cost = isnan(tallies[i].log_epoch_cost) ? 0.0 : tallies[i].log_epoch_cost};
    belief_fit_epochs(belief);
    for (size_t i = 0; i < belief->count; i++) {
        if (tallies[i].reached == 0 && tallies[i].stopped > 0)
            belief_take_stopped(belief, i, tallies[i].stopped_epochs, false);
    }
    belief_fit_epochs(belief);
    belief_fit_cost(belief);
}

void belief_bring(struct belief *belief, const struct past_brought *brought)
{
    struct belief_past *past = &belief->past;
    struct belief_arm own[LAW_BATCHES_MAX];
    size_t n = belief->count;

    if (!belief_past_init(past, n, belief->arena))
        return;
    for (size_t i = 0; i < n; i++)
        past->tallies[i] = past_tally_none;
    for (size_t i = 0; i < brought->count; i++)
        past->tallies[brought->batches[i].batch] = brought->batches[i].tally;
    memcpy(own, belief->arms, n * sizeof own[0]);
    past->brought = false;
    believe(belief);
    memcpy(belief->arms, own, n * sizeof own[0]);
    past_view_note(&past->epochs, belief->epochs_mean, belief->epochs_covariance, n);
    past_view_note(&past->cost, belief->cost_mean, belief->cost_covariance, n);
    past->kind = brought->kind;
    past->brought = true;
}

/* ---- bytes ---- */

static const struct bytes_row arm_rows[] = {
    BYTES_AT(belief_arm, reached),       BYTES_AT(belief_arm, mean),
    BYTES_AT(belief_arm, squares),       BYTES_AT(belief_arm, stopped_precision),
    BYTES_AT(belief_arm, stopped_value), BYTES_AT(belief_arm, failures),
    BYTES_AT(belief_arm, tried),         BYTES_AT(belief_arm, profiled),
    BYTES_AT(belief_arm, cost_known),    BYTES_AT(belief_arm, log_cost),
    BYTES_AT(belief_arm, level),         BYTES_AT(belief_arm, seen),
};

void belief_save(const struct belief *belief, struct buffer *bytes)
{
    belief_past_save(&belief->past, belief->count, bytes);
    bytes_put_double(bytes, belief->level);
    bytes_put_u64(bytes, belief->seen);
    for (size_t i = 0; i < belief->count; i++) {
        const struct belief_arm *arm = &belief->arms[i];

        bytes_put_rows(bytes, BYTES_ROWS(arm_rows), arm);
        drift_watch_save(&arm->watch, bytes);
    }
}

static bool is_possible(const struct belief_arm *arm)
{
    return isfinite(arm->mean) && arm->squares >= 0.0 && isfinite(arm->squares) &&
           arm->stopped_precision >= 0.0 && isfinite(arm->stopped_precision) &&
           isfinite(arm->stopped_value) && isfinite(arm->log_cost) && isfinite(arm->level);
}

bool belief_load(struct belief *belief, struct bytes_reader *bytes)
{
    struct past_batch batches[LAW_BATCHES_MAX];
    struct past_brought brought;
    bool possible = belief_past_load(bytes, belief->count, batches, &brought);

    belief->past.brought = false;
    if (possible && brought.count > 0)
        belief_bring(belief, &brought);
    belief->level = bytes_double(bytes);
    belief->seen = bytes_u64(bytes);
    possible = possible && isfinite(belief->level);
    for (size_t i = 0; i < belief->count; i++) {
        struct belief_arm *arm = &belief->arms[i];

        bytes_rows(bytes, BYTES_ROWS(arm_rows), arm);
        bytes->failed |= arm->seen > belief->seen;
        possible = drift_watch_load(&arm->watch, bytes) && possible && is_possible(arm);
    }
    if (bytes->failed || !possible)
        return false;
    watch_drift(belief);
    belief_fit_epochs(belief);
    belief_fit_cost(belief);
    return true;
}

/* ---- the course ---- */

static const double least_horizon = 20.0, most_horizon = 30.0, horizon_growth = 3.0;

enum { FIRST_DOUBT = 12, DOUBT_STEP = 3, SECOND_DOUBT = FIRST_DOUBT * DOUBT_STEP };

struct bayes_prospect bayes_prospect_of(const struct bayes_course *course, double horizon, double following,
                                        bool chosen)
{
    struct bayes_prospect prospect = {.horizon = horizon};

    if (horizon == 0.0) {
        prospect.horizon =
            fmin(fmax(horizon_growth * ((double)course->reached + 1.0), least_horizon), most_horizon);
        prospect.doubt = chosen || !course->taken_up ? course->doubt : DOUBT_NONE;
    }
    if (following < prospect.horizon)
        prospect = (struct bayes_prospect){.horizon = fmax(following, 0.0)};
    return prospect;
}

void bayes_course_propose(struct bayes_course *course)
{
    course->taken_up = course->doubt != DOUBT_NONE;
}

static bool doubts_first(uint64_t recurrence, uint64_t first)
{
    while (recurrence > first && recurrence % DOUBT_STEP == 0)
        recurrence /= DOUBT_STEP;
    return recurrence == first;
}

/* Returns the recurrence that doubts first with a past of so many runs. */
static uint64_t first_with_past(uint64_t runs)
{
    uint64_t tripled = (DOUBT_STEP - 1) * runs;

    return tripled > SECOND_DOUBT ? tripled : SECOND_DOUBT;
}

void bayes_course_reach(struct bayes_course *course, uint64_t elsewhere)
{
    uint64_t first = elsewhere > 0 ? first_with_past(elsewhere) : FIRST_DOUBT;

    course->reached++;
    if (course->taken_up)
        course->doubt = course->doubt == DOUBT_LARGER ? DOUBT_SMALLER : DOUBT_NONE;
    else if (doubts_first(course->reached + 1, first))
        course->doubt = DOUBT_LARGER;
    course->taken_up = false;
}

void bayes_course_save(const struct bayes_course *course, struct buffer *bytes)
{
    bytes_put_u64(bytes, course->reached);
    bytes_put_u64(bytes, course->doubt);
    bytes_put_u64(bytes, course->taken_up);
}

void bayes_course_load(struct bayes_course *course, struct bytes_reader *bytes)
{
    course->reached = bytes_u64(bytes);
    course->doubt = (enum doubt)bytes_up_to(bytes, DOUBT_COUNT - 1);
    course->taken_up = bytes_bool(bytes);
}
