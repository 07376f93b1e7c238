/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pair_bound.h"

#include <math.h>

#include <flyball/cost.h>

#include "base/math/normal.h"
#include "base/math/portable_math.h"
#include "policy/power_score.h"

enum { MOST_RUNS = 8 }; /* how many trials at once are weighed */

static const double tolerated = 0.01980262729617973; /* ln 1.02 */
static const double surely = 1.2815515655446004;     /* standard deviations, which leave 10 % */
static const double hopeless = 1.6448536269514722;   /* standard deviations, which leave 5 % */
static const double beyond = 3.0;                    /* standard deviations: certain */
static const double hope = 0.5; /* standard deviations by which a guess may turn out better */
static const double mean_runs =
    4.0; /* after so many the mean epochs count as much as what their scatter says */

bool pair_bound_init(struct pair_bound *bound, const struct job_spec *spec, struct arena *arena)
{
    *bound = (struct pair_bound){.spec = spec,
                                 .arms = arena_alloc(arena, spec->batch_count, sizeof bound->arms[0])};
    return bound->arms != NULL;
}

static double epoch_cost(const struct job_spec *spec, const struct fly_power_point *point)
{
    return fly_cost(spec->eta, spec->max_power_w, point->time_s * point->power_w, point->time_s);
}

static size_t cheapest(const struct job_spec *spec, const struct fly_power_point *points, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        if (epoch_cost(spec, &points[i]) < epoch_cost(spec, &points[best]))
            best = i;
    }
    return best;
}

double pair_bound_least_cost(const struct pair_bound *bound, const struct profile_measured *measured)
{
    return epoch_cost(bound->spec,
                      &measured->points[cheapest(bound->spec, measured->points, measured->count)]);
}

static void set_profile(const struct job_spec *spec, const struct profile_measured *measured,
                        struct pair_arm *arm)
{
    arm->points = measured->points;
    arm->count = measured->count;
    arm->best = measured->best;
    arm->cheapest = cheapest(spec, measured->points, measured->count);
    arm->units_per_epoch = measured->units_per_epoch;
}

/* ---- what was seen ---- */

void pair_bound_keep_profile(struct pair_bound *bound, const struct profile_measured *kept)
{
    set_profile(bound->spec, kept, &bound->arms[kept->batch]);
}

void pair_bound_take_profile(struct pair_bound *bound, const struct profile_measured *measured,
                             uint64_t running)
{
    pair_bound_keep_profile(bound, measured);
    bound->arms[measured->batch].profiling = running > 0 ? running : 1;
}

/* Takes in how long a trial's epochs took, if it ran under one limit. */
static void take_time(struct pair_arm *arm, const struct fly_trial *ended)
{
    double epochs_s = ended->time_s - ended->apart_time_s;
    double units = arm->units_per_epoch > 0.0 ? arm->units_per_epoch : 1.0;

    if (arm->points == NULL) {
        arm->run_s += epochs_s;
        arm->run_epochs += ended->epochs;
    }
    for (size_t i = 0; i < arm->count; i++) {
        if (arm->points[i].limit_w != ended->limit_w)
            continue;
        arm->taken_s += epochs_s;
        arm->profile_s += ended->epochs * arm->points[i].time_s * units;
    }
}

void pair_bound_take_ended(struct pair_bound *bound, const struct fly_trial *ended)
{
    struct pair_arm *arm = &bound->arms[ended->batch];
    bool profiled = arm->profiling > 0;

    arm->profiling -= profiled;
    if (!outcome_observed(ended->outcome) || !(ended->epochs > 0.0) || !isfinite(ended->epochs))
        return;
    if (!profiled && !ended->late && ended->time_s > 0.0 && isfinite(ended->time_s))
        take_time(arm, ended);
    if (ended->outcome == TRIAL_REACHED) {
        arm->reached++;
        arm->epochs += ended->epochs;
    } else if (ended->epochs >= (double)bound->spec->max_epochs) {
        arm->missed++;
    }
}

/* ---- times ---- */

/* Returns the seconds of an epoch for a second of the profile's points; NaN: not known. */
static double level_of(const struct pair_arm *arm)
{
    double units = arm->units_per_epoch > 0.0 ? arm->units_per_epoch : 1.0;

    if (arm->profile_s > 0.0)
        return units * arm->taken_s / arm->profile_s;
    return arm->units_per_epoch > 0.0 ? units : NAN;
}

static size_t fastest(const struct fly_power_point *points, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        if (points[i].time_s < points[best].time_s ||
            (points[i].time_s == points[best].time_s && points[i].limit_w > points[best].limit_w))
            best = i;
    }
    return best;
}

/* Returns the seconds of an epoch of the default at its highest limit; NaN: not known. */
static double default_epoch_s(const struct pair_bound *bound)
{
    const struct pair_arm *arm = &bound->arms[bound->spec->default_batch];
    size_t highest = 0;

    if (arm->count == 0)
        return arm->run_epochs > 0.0 ? arm->run_s / arm->run_epochs : NAN;
    for (size_t i = 1; i < arm->count; i++) {
        if (arm->points[i].limit_w > arm->points[highest].limit_w)
            highest = i;
    }
    return level_of(arm) * arm->points[highest].time_s;
}

/* ---- epochs ---- */

/*
 * Returns the logarithm of the expected epochs until the target is reached. The mean of epochs is more
 * than that of their logarithms says: by half the scatter or, as runs come, by what they show.
 */
static double log_epochs(const struct pair_bound *bound, const struct belief *belief, size_t batch)
{
    const struct pair_arm *arm = &bound->arms[batch];
    double runs = (double)arm->reached, more = mean_runs * 0.5 * belief->scatter[batch], tries = 1.0;

    if (arm->reached > 0) {
        more += runs * fmax(portable_log(arm->epochs / runs) - belief->arms[batch].mean, 0.0);
        tries += (double)arm->missed * (double)bound->spec->max_epochs / arm->epochs;
    }
    return belief->epochs_mean[batch] + more / (mean_runs + runs) + portable_log(tries);
}

/* Returns the variance of the difference of two batch sizes' values. */
static double variance_between(const double *covariance, size_t one, size_t other)
{
    return fmax(covariance[triangle_at(one, one)] + covariance[triangle_at(other, other)] -
                    2.0 * covariance[triangle_at(one, other)],
                0.0);
}

/* Returns by how much the variance of the difference of two shrinks when so many more runs of one have ended.
 */
static double told_by(const struct belief *belief, size_t one, size_t other, uint32_t runs)
{
    double own = belief->epochs_covariance[triangle_at(one, one)], more = (double)runs,
           doubt = belief->prior->outlier / ((double)belief->arms[one].reached + more),
           common = own - belief->epochs_covariance[triangle_at(one, other)];

    return common * common / (own + belief->scatter[one] / more + doubt * doubt);
}

/* Returns by how much the variance of `pair` shrinks when so many more trials have ended. */
static double learned(const struct pair *pair, const struct belief *belief, size_t batch,
                      size_t default_batch, uint32_t runs)
{
    return fmin(pair->resolved + told_by(belief, batch, default_batch, runs), pair->variance);
}

/* ---- the pair ---- */

/* Returns how far log_over must be below 0 to keep the bound. */
static double margin(double variance)
{
    return fmax(surely * sqrt(variance) - tolerated, 0.0);
}

/* Finds the point of least objective that takes at most so long; false if there is none. */
static bool least_within(const struct job_spec *spec, const struct pair_arm *arm, double allowed_s,
                         size_t *out_point)
{
    double least = INFINITY;
    bool found = false;

    for (size_t i = 0; i < arm->count; i++) {
        double score = power_score(&arm->points[i], spec->objective, spec->max_power_w);

        if (arm->points[i].time_s > allowed_s || score > least ||
            (score == least && arm->points[i].limit_w < arm->points[*out_point].limit_w))
            continue;
        *out_point = i;
        least = score;
        found = true;
    }
    return found;
}

/* Returns what an epoch costs at a point beyond the cheapest one, as a logarithm. */
static double log_beyond(const struct job_spec *spec, const struct pair_arm *arm, size_t point)
{
    return arm->count == 0 ? 0.0
                           : portable_log(epoch_cost(spec, &arm->points[point]) /
                                          epoch_cost(spec, &arm->points[arm->cheapest]));
}

/*
 * Chooses the point: the least objective that keeps the bound, else one that could once more trials have
 * ended, else the fastest. `allowed_s` is in the profile's own seconds.
 */
static void choose_point(const struct job_spec *spec, const struct pair_arm *arm, double allowed_s,
                         double margin_then, struct pair *pair)
{
    size_t known = 0;

    pair->keeps = least_within(spec, arm, allowed_s * portable_exp(-margin(pair->variance)), &pair->point);
    if (!pair->keeps && !least_within(spec, arm, allowed_s * portable_exp(-margin_then), &pair->point))
        pair->point = fastest(arm->points, arm->count);
    pair->log_cost_known =
        least_within(spec, arm, allowed_s, &known) ? log_beyond(spec, arm, known) : INFINITY;
    pair->log_over = portable_log(arm->points[pair->point].time_s / allowed_s);
    pair->log_cost = log_beyond(spec, arm, pair->point);
}

/* Guesses the point of a batch size without a profile by the default's. */
static void guess_point(const struct pair_bound *bound, const struct belief *belief, size_t batch,
                        double log_allowed_s, struct pair *pair)
{
    size_t base = bound->spec->default_batch;
    const struct pair_arm *arm = &bound->arms[base];
    double log_slower = belief->cost_mean[batch] - belief->cost_mean[base];

    pair->resolved = variance_between(belief->cost_covariance, batch, base);
    pair->variance += pair->resolved;
    if (arm->count > 0) {
        choose_point(bound->spec, arm, portable_exp(log_allowed_s - log_slower) / level_of(arm),
                     -hope * sqrt(pair->variance), pair);
        return;
    }
    pair->log_over = portable_log(default_epoch_s(bound)) + log_slower - log_allowed_s;
    pair->keeps = pair->log_over <= -margin(pair->variance);
}

static struct pair pair_of(const struct pair_bound *bound, const struct belief *belief, size_t batch,
                           const struct pair_arm *arm)
{
    const struct job_spec *spec = bound->spec;
    size_t base = spec->default_batch;
    double base_s = default_epoch_s(bound), level = level_of(arm), log_allowed_s;
    struct pair pair = {.keeps = true,
                        .point = arm->best,
                        .log_cost = log_beyond(spec, arm, arm->best),
                        .log_cost_known = INFINITY};

    if (batch == base || bound->arms[base].reached == 0 || !(base_s > 0.0))
        return pair;
    pair.held = true;
    pair.variance = variance_between(belief->epochs_covariance, batch, base);
    log_allowed_s = portable_log(spec->objective->max_slowdown * base_s) + log_epochs(bound, belief, base) -
                    log_epochs(bound, belief, batch);
    if (arm->count > 0 && level > 0.0) {
        pair.has_point = true;
        choose_point(spec, arm, portable_exp(log_allowed_s) / level,
                     margin(pair.variance - learned(&pair, belief, batch, base, MOST_RUNS)), &pair);
        return pair;
    }
    if (arm->run_epochs > 0.0) {
        pair.log_over = portable_log(arm->run_s / arm->run_epochs) - log_allowed_s;
        pair.keeps = pair.log_over <= -margin(pair.variance);
        pair.log_cost_known = pair.log_over <= 0.0 ? 0.0 : INFINITY;
    } else {
        guess_point(bound, belief, batch, log_allowed_s, &pair);
    }
    return pair;
}

struct pair pair_bound_of(const struct pair_bound *bound, const struct belief *belief, size_t batch,
                          const struct profile_measured *measured)
{
    struct pair_arm arm = bound->arms[batch];

    if (measured != NULL)
        set_profile(bound->spec, measured, &arm);
    return pair_of(bound, belief, batch, &arm);
}

const struct pair *pair_bound_open(const struct pair_bound *bound, const struct belief *belief,
                                   const struct epoch_cost *exact, struct pair *pairs)
{
    for (size_t i = 0; pairs != NULL && i < belief->count; i++) {
        const struct epoch_cost *known = exact != NULL && exact->batch == i ? exact : NULL;
        const struct fly_power_point point = {1.0, 1.0, known != NULL ? known->time_s : 1.0};
        const struct profile_measured measured = {
            .batch = i, .points = &point, .count = 1, .units_per_epoch = 1.0};
        bool unfolded = known != NULL && bound->arms[i].points == NULL;

        pairs[i] = pair_bound_of(bound, belief, i, unfolded ? &measured : NULL);
        if (known != NULL)
            pairs[i].log_cost = 0.0;
    }
    return pairs;
}

double pair_chance(const struct pair *pair, const struct belief *belief, size_t batch, size_t default_batch,
                   uint32_t runs)
{
    double less, room;

    if (pair->keeps)
        return 1.0;
    if (pair->log_over > hopeless * sqrt(pair->variance))
        return 0.0;
    less = learned(pair, belief, batch, default_batch, runs);
    room = -pair->log_over - margin(pair->variance - less);
    return less > 0.0 ? normal_below(room / sqrt(less)) : 0.0;
}

bool pair_is_beyond(const struct pair *pair)
{
    return !pair->keeps && pair->log_over > beyond * sqrt(pair->variance);
}

double pair_narrowing(const struct pair *pair, const struct belief *belief, size_t batch,
                      size_t default_batch, uint32_t runs)
{
    double now = margin(pair->variance),
           then = margin(fmax(pair->variance - told_by(belief, default_batch, batch, runs), 0.0));

    return now > 0.0 ? 1.0 - then / now : 0.0;
}

/* ---- bytes ---- */

static const struct bytes_row arm_rows[] = {
    BYTES_AT(pair_arm, taken_s),    BYTES_AT(pair_arm, profile_s), BYTES_AT(pair_arm, run_s),
    BYTES_AT(pair_arm, run_epochs), BYTES_AT(pair_arm, reached),   BYTES_AT(pair_arm, missed),
    BYTES_AT(pair_arm, epochs),     BYTES_AT(pair_arm, profiling),
};

void pair_bound_save(const struct pair_bound *bound, struct buffer *bytes)
{
    for (size_t i = 0; i < bound->spec->batch_count; i++)
        bytes_put_rows(bytes, BYTES_ROWS(arm_rows), &bound->arms[i]);
}

bool pair_bound_load(struct pair_bound *bound, struct bytes_reader *bytes)
{
    bool possible = true;

    for (size_t i = 0; i < bound->spec->batch_count; i++) {
        struct pair_arm *arm = &bound->arms[i];

        bytes_rows(bytes, BYTES_ROWS(arm_rows), arm);
        possible = possible && arm->taken_s >= 0.0 && arm->profile_s >= 0.0 && arm->run_s >= 0.0 &&
                   arm->run_epochs >= 0.0 && (arm->reached == 0 || arm->epochs > 0.0) &&
                   isfinite(arm->taken_s + arm->profile_s + arm->run_s + arm->run_epochs + arm->epochs);
    }
    return possible && !bytes->failed;
}
