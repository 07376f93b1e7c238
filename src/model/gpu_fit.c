/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_fit.h"

#include <math.h>

#include "base/error.h"
#include "base/math/portable_math.h"
#include "base/math/simplex_search.h"

enum { STARTS = 16, START_EVALUATIONS = 350, FINALISTS = 3, FINAL_ROUNDS = 3, FINAL_EVALUATIONS = 800 };

/* An error beyond this, or beyond the profile's scatter, counts much more. */
static const double tolerance = 0.045;

/* Errors below this are of no account. */
static const double small = 0.01;

/* How much a parameter's distance from its usual value counts. */
static const double preference = 1e-4;

/* The parameters, each as a number from 0 to 1. */
enum parameter {
    STATIC_POWER,
    WANTED_POWER,
    FLOOR_CLOCK,
    LOWEST_CLOCK,
    CLOCK_SHARE,
    MEMORY_CLOCK,
    POWER_SPREAD,
    WAIT_SHARE,
    WAIT_HIDDEN,
    PARAMETERS
};

/* What 0, 1 and the usual value mean. The first two are relative to the powers of the profile. */
static const struct range {
    double least, most, usual;
} ranges[PARAMETERS] = {
    [STATIC_POWER] = {0.2, 0.999, 0.7}, /* of the least power */
    [WANTED_POWER] = {0.0, 1.5, 0.1},   /* above the greatest power, of it */
    [FLOOR_CLOCK] = {0.3, 0.95, 0.65},  [LOWEST_CLOCK] = {0.02, 0.7, 0.15}, [CLOCK_SHARE] = {0.0, 1.0, 0.7},
    [MEMORY_CLOCK] = {0.0, 1.0, 0.6},   [POWER_SPREAD] = {0.0, 1.0, 0.1},   [WAIT_SHARE] = {0.0, 0.9, 0.05},
    [WAIT_HIDDEN] = {0.0, 1.0, 0.5},
};

struct profile {
    const struct fly_power_point *points;
    size_t count;
    double least_power_w, greatest_power_w;
    double time_tolerance, energy_tolerance;
};

static double value_of(enum parameter parameter, const double *at)
{
    return ranges[parameter].least + at[parameter] * (ranges[parameter].most - ranges[parameter].least);
}

static double place_of(enum parameter parameter, double value)
{
    return (value - ranges[parameter].least) / (ranges[parameter].most - ranges[parameter].least);
}

/* The board and the work of these parameters; the time is relative. */
static struct gpu_fit fit_at_place(const struct profile *profile, const double *at)
{
    struct gpu_fit fit = {
        .shape = {.idle_w = value_of(STATIC_POWER, at) * profile->least_power_w,
                  .static_w = value_of(STATIC_POWER, at) * profile->least_power_w,
                  .busy_w = INFINITY,
                  .floor_clock = value_of(FLOOR_CLOCK, at),
                  .lowest_clock = value_of(LOWEST_CLOCK, at)},
        .nature = {.clock_share = value_of(CLOCK_SHARE, at),
                   .memory_clock = value_of(MEMORY_CLOCK, at),
                   .power_spread = value_of(POWER_SPREAD, at),
                   .wait_share = value_of(WAIT_SHARE, at),
                   .wait_hidden = value_of(WAIT_HIDDEN, at)},
        .wanted_w = (1.0 + value_of(WANTED_POWER, at)) * profile->greatest_power_w,
        .full_clock_s = 1.0,
    };

    return fit;
}

struct fly_power_point gpu_fit_at(const struct gpu_fit *fit, double limit_w)
{
    struct gpu_bounds bounds = {fit->wanted_w, limit_w, 1.0};
    struct gpu_pace pace = gpu_pace_of(&fit->shape, &fit->nature, &bounds);

    return (struct fly_power_point){limit_w, pace.power_w, pace.slowdown * fit->full_clock_s};
}

/* Errors of a relative fit at each point, as logarithms, and the time scale that makes them least. */
struct errors {
    double time[GPU_FIT_POINTS_MAX], energy[GPU_FIT_POINTS_MAX];
    double log_scale;
};

static void find_errors(const struct profile *profile, const struct gpu_fit *fit, struct errors *out)
{
    double sum = 0.0;

    for (size_t i = 0; i < profile->count; i++) {
        const struct fly_power_point *measured = &profile->points[i];
        struct fly_power_point point = gpu_fit_at(fit, measured->limit_w);

        out->time[i] = portable_log(point.time_s / measured->time_s);
        out->energy[i] = out->time[i] + portable_log(point.power_w / measured->power_w);
        sum += out->time[i] + out->energy[i];
    }
    out->log_scale = -sum / (2.0 * (double)profile->count);
}

/*
 * Counts an error by its size, not by its square, so that a few rows that are far off do not draw the others
 * along.
 */
static double badness(double error, double tolerated)
{
    double size = fabs(error), excess = fmax(size - tolerated, 0.0);

    return size * size / (size + small) + 10.0 * excess;
}

static double height(const double *at, const void *data)
{
    const struct profile *profile = data;
    struct gpu_fit fit = fit_at_place(profile, at);
    struct errors errors;
    double sum = 0.0;

    find_errors(profile, &fit, &errors);
    for (size_t i = 0; i < profile->count; i++)
        sum += badness(errors.time[i] + errors.log_scale, profile->time_tolerance) +
               badness(errors.energy[i] + errors.log_scale, profile->energy_tolerance);
    sum /= 2.0 * (double)profile->count;
    for (int i = 0; i < PARAMETERS; i++) {
        double away = at[i] - place_of((enum parameter)i, ranges[i].usual);

        sum += preference * away * away;
    }
    return sum;
}

/* Element `index` of van der Corput's sequence to a base: evenly spread over 0 .. 1. */
static double spread(unsigned index, unsigned base)
{
    double value = 0.0, part = 1.0;

    for (; index > 0; index /= base) {
        part /= base;
        value += part * (index % base);
    }
    return value;
}

struct candidate {
    double at[PARAMETERS];
    double height;
};

/* The first start is the usual one, the others are spread over all there is. */
static void choose_start(unsigned start, double *at)
{
    static const unsigned primes[PARAMETERS] = {2, 3, 5, 7, 11, 13, 17, 19, 23};

    for (int i = 0; i < PARAMETERS; i++)
        at[i] = start == 0 ? place_of((enum parameter)i, ranges[i].usual) : spread(start, primes[i]);
}

/* Keeps the list's best candidates, best first. */
static void enter(struct candidate *best, size_t *count, const struct candidate *candidate)
{
    size_t place = *count < FINALISTS ? (*count)++ : FINALISTS;

    while (place > 0 && best[place - 1].height > candidate->height) {
        if (place < FINALISTS)
            best[place] = best[place - 1];
        place--;
    }
    if (place < FINALISTS)
        best[place] = *candidate;
}

static void search(const struct profile *profile, double *out_at)
{
    struct candidate best[FINALISTS] = {{.height = 0.0}}, winner = {.height = INFINITY};
    size_t count = 0;

    for (unsigned start = 0; start < STARTS; start++) {
        const struct simplex_task task = {height, profile, PARAMETERS, 0.25, START_EVALUATIONS};
        struct candidate candidate;

        choose_start(start, candidate.at);
        candidate.height = simplex_search(&task, candidate.at);
        enter(best, &count, &candidate);
    }
    for (size_t i = 0; i < count; i++) {
        for (int round = 0; round < FINAL_ROUNDS; round++) {
            const struct simplex_task task = {height, profile, PARAMETERS, 0.2 / (round + 1),
                                              FINAL_EVALUATIONS};

            best[i].height = simplex_search(&task, best[i].at);
        }
        if (best[i].height < winner.height)
            winner = best[i];
    }
    for (int i = 0; i < PARAMETERS; i++)
        out_at[i] = winner.at[i];
}

static bool is_positive(double value)
{
    return isfinite(value) && value > 0.0;
}

static int check(const struct fly_power_point *points, size_t count, struct fly_error *out_error)
{
    if (count < GPU_FIT_POINTS_MIN || count > GPU_FIT_POINTS_MAX)
        return error_set(out_error, FLY_EUSAGE, "a model fits %d to %d power limits, not %zu",
                         GPU_FIT_POINTS_MIN, GPU_FIT_POINTS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        if (!is_positive(points[i].limit_w) || !is_positive(points[i].power_w) ||
            !is_positive(points[i].time_s))
            return error_set(out_error, FLY_EUSAGE,
                             "point %zu of the profile: limit, power and time must be above 0", i + 1);
        for (size_t other = 0; other < i; other++) {
            if (points[other].limit_w == points[i].limit_w)
                return error_set(out_error, FLY_EUSAGE, "the limit %g W occurs twice", points[i].limit_w);
        }
    }
    return 0;
}

/* A limit this many times above all that is drawn cannot bind. */
static const double unfelt = 1.5;

struct gpu_scatter gpu_fit_scatter(const struct fly_power_point *points, size_t count)
{
    struct gpu_scatter scatter = {0.0, 0.0};
    double greatest_w = 0.0;

    for (size_t i = 0; i < count; i++)
        greatest_w = fmax(greatest_w, points[i].power_w);
    for (size_t high = 0; high < count; high++) {
        for (size_t low = 0; low < count; low++) {
            bool unbound = points[low].limit_w > unfelt * greatest_w;

            if (points[low].limit_w >= points[high].limit_w)
                continue;
            if (unbound) {
                scatter.time = fmax(scatter.time, points[low].time_s / points[high].time_s - 1.0);
                scatter.power = fmax(scatter.power, points[high].power_w / points[low].power_w - 1.0);
            }
            scatter.time = fmax(scatter.time, points[high].time_s / points[low].time_s - 1.0);
            scatter.power = fmax(scatter.power, points[low].power_w / points[high].power_w - 1.0);
        }
    }
    return scatter;
}

/* Limits as measured; the step is the least distance between two. */
static void take_limits(struct gpu_shape *shape, const struct fly_power_point *points, size_t count)
{
    shape->lowest_limit_w = INFINITY;
    shape->limit_step_w = INFINITY;
    for (size_t i = 0; i < count; i++) {
        shape->lowest_limit_w = fmin(shape->lowest_limit_w, points[i].limit_w);
        shape->highest_limit_w = fmax(shape->highest_limit_w, points[i].limit_w);
        for (size_t other = 0; other < i; other++)
            shape->limit_step_w = fmin(shape->limit_step_w, fabs(points[i].limit_w - points[other].limit_w));
    }
}

int gpu_fit_of(const struct fly_power_point *points, size_t count, struct gpu_fit *out_fit,
               struct fly_error *out_error)
{
    struct gpu_scatter scatter;
    struct profile profile = {.points = points, .count = count, .least_power_w = INFINITY};
    struct errors errors;
    double at[PARAMETERS];
    int code = check(points, count, out_error);

    if (code < 0)
        return code;
    scatter = gpu_fit_scatter(points, count);
    profile.time_tolerance = fmax(tolerance, 0.9 * scatter.time);
    profile.energy_tolerance = fmax(tolerance, 0.9 * (scatter.time + scatter.power));
    for (size_t i = 0; i < count; i++) {
        profile.least_power_w = fmin(profile.least_power_w, points[i].power_w);
        profile.greatest_power_w = fmax(profile.greatest_power_w, points[i].power_w);
    }
    search(&profile, at);
    *out_fit = fit_at_place(&profile, at);
    find_errors(&profile, out_fit, &errors);
    out_fit->full_clock_s = portable_exp(errors.log_scale);
    take_limits(&out_fit->shape, points, count);
    out_fit->shape.busy_w = fmax(out_fit->wanted_w, out_fit->shape.highest_limit_w);
    return 0;
}
