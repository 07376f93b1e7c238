/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/bayes_belief.h"

#include <math.h>
#include <string.h>

#include "base/math/cholesky.h"
#include "base/math/normal.h"
#include "base/math/portable_math.h"
#include "base/math/triangle.h"

const struct past_trust past_trusts[] = {
    [PAST_HARDWARE] = {.holds = 0.95, .level_sd = 0.15, .epochs_sd = 0.05, .cost_sd = 0.15, .vouches = true},
    [PAST_REVISION] = {.holds = 0.7, .level_sd = 10.0, .epochs_sd = 0.1, .cost_sd = 0.1},
    [PAST_JOB] = {.holds = 0.1, .level_sd = 10.0, .epochs_sd = 0.2, .cost_sd = 0.2},
};
_Static_assert(sizeof past_trusts / sizeof past_trusts[0] == PAST_KINDS, "one for every kind");

static const double least_level_sd = 0.5; /* of a past that does not hold: its level is as near by chance */

/* ---- what there was ---- */

static bool belief_past_init(struct belief_past *past, size_t count, struct arena *arena)
{
    if (past->cost.covariance != NULL)
        return true;
    past->tallies = arena_alloc(arena, count, sizeof past->tallies[0]);
    past->epochs.mean = arena_alloc(arena, count, sizeof(double));
    past->epochs.covariance = arena_alloc(arena, triangle_size(count), sizeof(double));
    past->cost.mean = arena_alloc(arena, count, sizeof(double));
    if (past->tallies == NULL || past->epochs.mean == NULL || past->epochs.covariance == NULL ||
        past->cost.mean == NULL)
        return false;
    past->cost.covariance = arena_alloc(arena, triangle_size(count), sizeof(double));
    return past->cost.covariance != NULL;
}

/* Notes what was believed there at last. */
static void past_view_note(struct past_view *view, const double *mean, const double *covariance, size_t count)
{
    memcpy(view->mean, mean, count * sizeof mean[0]);
    memcpy(view->covariance, covariance, triangle_size(count) * sizeof covariance[0]);
    view->weight = 1.0;
}

/* ---- weighing it ---- */

/* Adds the covariance of the level and of the residual to what was believed there. */
static void widen(const struct past_view *view, const struct law_mixture *law, double level_sd, double sd,
                  double *covariance)
{
    size_t n = law->count;
    double level = level_sd * level_sd, nugget = law->prior->nugget * law->prior->nugget;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            size_t at = triangle_at(i, j);

            covariance[at] =
                view->covariance[at] + level + sd * sd * law->likeness[i * n + j] + (i == j ? nugget : 0.0);
        }
    }
}

/* A Gaussian while it is conditioned on evidence. */
struct conditioning {
    size_t n, observed_count;
    size_t observed[LAW_BATCHES_MAX];
    double mean[LAW_BATCHES_MAX], covariance[LAW_BATCHES_MAX * (LAW_BATCHES_MAX + 1) / 2];
    double factor[LAW_BATCHES_MAX * LAW_BATCHES_MAX];       /* [observed][observed] */
    double solved[LAW_BATCHES_MAX * (1 + LAW_BATCHES_MAX)]; /* [observed][1 + n]: of the distances from the
                                                               mean, of the covariances */
};

/* Subtracts from mean and covariance what the evidence told. */
static void subtract(struct conditioning *of)
{
    size_t n = of->n;

    for (size_t row = 0; row < of->observed_count; row++) {
        const double *solved = &of->solved[row * (1 + n)];

        for (size_t i = 0; i < n; i++) {
            of->mean[i] += solved[0] * solved[1 + i];
            for (size_t j = 0; j <= i; j++)
                of->covariance[triangle_at(i, j)] -= solved[1 + i] * solved[1 + j];
        }
    }
}

/* Conditions it; returns the log likelihood of the evidence, without the powers of 2 pi. */
static double condition(struct conditioning *of, const struct law_evidence *evidence)
{
    size_t n = of->n, count = of->observed_count;
    double log_likelihood = 0.0;

    for (size_t row = 0; row < count; row++) {
        size_t i = of->observed[row];
        double *right = &of->solved[row * (1 + n)];

        right[0] = evidence[i].value - of->mean[i];
        for (size_t j = 0; j < n; j++)
            right[1 + j] = of->covariance[triangle_at(i, j)];
        for (size_t column = 0; column <= row; column++)
            of->factor[row * count + column] = of->covariance[triangle_at(i, of->observed[column])];
        of->factor[row * count + row] += 1.0 / evidence[i].precision;
    }
    log_likelihood -= cholesky_factor(of->factor, count);
    cholesky_forward(of->factor, count, of->solved, 1 + n);
    for (size_t row = 0; row < count; row++)
        log_likelihood -= 0.5 * of->solved[row * (1 + n)] * of->solved[row * (1 + n)];
    subtract(of);
    return log_likelihood;
}

/* Matches the two hypotheses, the first with this weight, by one Gaussian in place of the second. */
static void match(double weight, const struct conditioning *first, double *mean, double *covariance)
{
    size_t n = first->n;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            size_t at = triangle_at(i, j);

            covariance[at] =
                weight * first->covariance[at] + (1.0 - weight) * covariance[at] +
                weight * (1.0 - weight) * (first->mean[i] - mean[i]) * (first->mean[j] - mean[j]);
        }
    }
    for (size_t i = 0; i < n; i++)
        mean[i] += weight * (first->mean[i] - mean[i]);
}

/* Mixes one part in; `residual_sd` and `level_sd` are those of its kind. */
static void mix(struct belief_past *past, struct past_view *view, double level_sd, double residual_sd,
                const struct past_fit *fit)
{
    double holds = past_trusts[past->kind].holds, log_odds;
    size_t n = fit->law->count;
    struct conditioning first;

    first.n = n;
    first.observed_count = 0;
    for (size_t i = 0; i < n; i++) {
        if (fit->evidence[i].precision > 0.0)
            first.observed[first.observed_count++] = i;
    }
    memcpy(first.mean, view->mean, n * sizeof first.mean[0]);
    widen(view, fit->law, first.observed_count > 0 ? level_sd : 0.0, residual_sd, first.covariance);
    view->weight = 1.0;
    if (first.observed_count > 0) {
        log_odds = portable_log(holds / (1.0 - holds)) + condition(&first, fit->evidence) -
                   fit->log_likelihood -
                   portable_log(fit->law->prior->level_sd / fmax(level_sd, least_level_sd));
        view->weight = 1.0 / (1.0 + portable_exp(fmin(fmax(-log_odds, -500.0), 500.0)));
    }
    match(view->weight, &first, fit->mean, fit->covariance);
}

static void belief_past_mix_epochs(struct belief_past *past, const struct past_fit *fit)
{
    const struct past_trust *trust = &past_trusts[past->kind];

    if (past->brought)
        mix(past, &past->epochs, trust->level_sd, trust->epochs_sd, fit);
}

/* Mix the second opinion in, if one was brought. */
static void belief_past_mix_cost(struct belief_past *past, const struct past_fit *fit)
{
    if (past->brought)
        mix(past, &past->cost, fit->law->prior->level_sd, past_trusts[past->kind].cost_sd, fit);
}

/* ---- what follows ---- */

static bool belief_past_likely(const struct belief_past *past)
{
    return past->brought && past->epochs.weight >= 0.5;
}

uint64_t belief_past_vouched(const struct belief_past *past, size_t batch)
{
    return past_trusts[past->kind].vouches ? belief_past_tally(past, batch)->reached : 0;
}

uint64_t belief_past_runs(const struct belief_past *past, size_t count)
{
    uint64_t runs = 0;

    for (size_t i = 0; i < count; i++)
        runs += belief_past_vouched(past, i);
    return runs;
}

const struct past_tally *belief_past_tally(const struct belief_past *past, size_t batch)
{
    return past->trusted ? &past->tallies[batch] : &past_tally_none;
}

/* ---- bytes ---- */

static void belief_past_save(const struct belief_past *past, size_t count, struct buffer *bytes)
{
    bytes_put_u64(bytes, past->brought ? 1 + (uint64_t)past->kind : 0);
    for (size_t i = 0; i < count && past->brought; i++)
        bytes_put_rows(bytes, PAST_TALLY_ROWS, &past->tallies[i]);
}

/*
 * Write what was brought as bytes, and read it back: into `batches`, `count` of them. Load returns false for
 * impossible bytes; a count of 0 is left where nothing was brought.
 */
static bool belief_past_load(struct bytes_reader *bytes, size_t count, struct past_batch *batches,
                             struct past_brought *out_brought)
{
    uint64_t kind = bytes_up_to(bytes, PAST_KINDS);
    bool possible = true;

    *out_brought = (struct past_brought){.batches = batches, .count = kind > 0 ? count : 0};
    if (kind > 0)
        out_brought->kind = (enum past_kind)(kind - 1);
    for (size_t i = 0; i < out_brought->count; i++) {
        batches[i].batch = i;
        bytes_rows(bytes, PAST_TALLY_ROWS, &batches[i].tally);
        possible = possible && past_tally_possible(&batches[i].tally);
    }
    return !bytes->failed && possible;
}

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
