/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many power limits limit_plan.h measures, and by how much the limit that is then chosen costs more than
 * the best of all. Nothing here passes or fails.
 *
 *     bench_limits TRACES
 *
 * TRACES is the directory of the public traces: all batch sizes of six jobs on three GPUs, for five weights
 * of energy. First each batch size with whole profiles of the nearest others; then as a job lives: its
 * default has a whole profile, and those of the others, nearest first, have only what was measured.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/math/order.h"
#include "policy/limit_plan.h"
#include "sim/world/workload.h"

enum { LIMITS_MAX = 32, BATCHES_MAX = 64, CASES_MAX = 4096 };

static const char *const gpus[] = {"v100", "a40", "p100"};
static const double etas[] = {0.0, 0.25, 0.5, 0.75, 1.0};

struct figures {
    double excess[CASES_MAX];
    size_t cases, limits, measured;
};

/* What was measured of each batch size of a workload, in ascending order. */
struct profiles {
    struct fly_power_point points[BATCHES_MAX][LIMITS_MAX];
    size_t count[BATCHES_MAX]; /* 0: not yet */
};

static _Noreturn void die(const char *text)
{
    fprintf(stderr, "bench_limits: %s\n", text);
    exit(1);
}

static double octaves(const struct workload *workload, size_t one, size_t other)
{
    return fabs(log2((double)workload->spec.batches[one].size / (double)workload->spec.batches[other].size));
}

/* Takes the profiles of the nearest other batch sizes; returns how many. */
static size_t take_curves(const struct workload *workload, const struct profiles *profiles, size_t batch,
                          struct limit_curve curves[LIMIT_CURVES_MAX])
{
    bool taken[BATCHES_MAX] = {false};
    size_t count = 0;

    while (count < LIMIT_CURVES_MAX) {
        size_t nearest = batch;

        for (size_t i = 0; i < workload->spec.batch_count; i++) {
            if (i != batch && !taken[i] && profiles->count[i] > 0 &&
                (nearest == batch || octaves(workload, i, batch) < octaves(workload, nearest, batch)))
                nearest = i;
        }
        if (nearest == batch)
            break;
        taken[nearest] = true;
        curves[count++] = (struct limit_curve){profiles->points[nearest], profiles->count[nearest]};
    }
    return count;
}

/* Measures a batch size as planned, into `out_points`, ascending; returns how many limits. */
static size_t measure(const struct workload *workload, double eta, size_t batch,
                      const struct limit_curve *curves, size_t curve_count,
                      struct fly_power_point out_points[LIMITS_MAX])
{
    const struct workload_batch *truth = &workload->batches[batch];
    struct limit_arm room[LIMITS_MAX];
    struct limit_arms arms = {.arms = room,
                              .count = truth->point_count,
                              .open = truth->point_count,
                              .objective = {FLY_OBJECTIVE_COST, eta, INFINITY},
                              .max_power_w = workload->spec.max_power_w};
    size_t place, count = 0;

    for (size_t i = 0; i < arms.count; i++)
        room[i] = (struct limit_arm){
            .limit = truth->points[arms.count - 1 - i].limit_w, .time_s = NAN, .power_w = NAN};
    while (limit_plan_next(&arms, curves, curve_count, &place)) {
        room[place].time_s = truth->points[arms.count - 1 - place].time_s;
        room[place].power_w = truth->points[arms.count - 1 - place].power_w;
    }
    for (size_t i = arms.count; i-- > 0;) {
        if (limit_arms_known(&arms, i))
            out_points[count++] = (struct fly_power_point){room[i].limit, room[i].power_w, room[i].time_s};
    }
    return count;
}

static double least_cost(const struct workload *workload, double eta, const struct fly_power_point *points,
                         size_t count)
{
    double least = INFINITY;

    for (size_t i = 0; i < count; i++)
        least = fmin(least,
                     points[i].time_s * (eta * points[i].power_w + (1.0 - eta) * workload->spec.max_power_w));
    return least;
}

static void note(struct figures *figures, const struct workload *workload, double eta, size_t batch,
                 const struct fly_power_point *points, size_t count)
{
    const struct workload_batch *truth = &workload->batches[batch];

    if (figures->cases == CASES_MAX)
        die("more cases than there is room for");
    figures->excess[figures->cases++] = least_cost(workload, eta, points, count) /
                                            least_cost(workload, eta, truth->points, truth->point_count) -
                                        1.0;
    figures->limits += truth->point_count;
    figures->measured += count;
}

static void fill_whole(const struct workload *workload, size_t batch, struct profiles *profiles)
{
    const struct workload_batch *truth = &workload->batches[batch];

    profiles->count[batch] = truth->point_count;
    for (size_t i = 0; i < truth->point_count; i++)
        profiles->points[batch][i] = truth->points[i];
}

/* The batch size to profile next: the nearest to the default that has no profile; batch_count: none. */
static size_t next_batch(const struct workload *workload, const struct profiles *profiles)
{
    size_t next = workload->spec.batch_count, start = workload->spec.default_batch;

    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        if (profiles->count[i] == 0 && (next == workload->spec.batch_count ||
                                        octaves(workload, i, start) < octaves(workload, next, start)))
            next = i;
    }
    return next;
}

static void plan_with_whole_profiles(const struct workload *workload, double eta, struct figures *figures)
{
    struct profiles profiles = {.count = {0}};

    for (size_t i = 0; i < workload->spec.batch_count; i++)
        fill_whole(workload, i, &profiles);
    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        struct limit_curve curves[LIMIT_CURVES_MAX];
        struct fly_power_point points[LIMITS_MAX];
        size_t curve_count = take_curves(workload, &profiles, i, curves);
        size_t count = measure(workload, eta, i, curves, curve_count, points);

        note(figures, workload, eta, i, points, count);
    }
}

static void plan_as_a_job_lives(const struct workload *workload, double eta, struct figures *figures)
{
    struct profiles profiles = {.count = {0}};
    size_t batch;

    fill_whole(workload, workload->spec.default_batch, &profiles);
    while ((batch = next_batch(workload, &profiles)) < workload->spec.batch_count) {
        struct limit_curve curves[LIMIT_CURVES_MAX];
        size_t curve_count = take_curves(workload, &profiles, batch, curves);

        profiles.count[batch] = measure(workload, eta, batch, curves, curve_count, profiles.points[batch]);
        note(figures, workload, eta, batch, profiles.points[batch], profiles.count[batch]);
    }
}

static void print(const char *what, struct figures *figures)
{
    double sum = 0.0;
    size_t beyond = 0;

    for (size_t i = 0; i < figures->cases; i++) {
        sum += figures->excess[i];
        beyond += figures->excess[i] > 0.01;
    }
    qsort(figures->excess, figures->cases, sizeof figures->excess[0], order_doubles);
    printf("%-36s %5.1f %% of %zu limits left out; cost above the best limit's: mean %.3f %%, p95 %.2f %%, "
           "worst %.2f %%, above 1 %% in %.1f %% of %zu\n",
           what, 100.0 - 100.0 * (double)figures->measured / (double)figures->limits, figures->limits,
           100.0 * sum / (double)figures->cases, 100.0 * figures->excess[figures->cases * 95 / 100],
           100.0 * figures->excess[figures->cases - 1], 100.0 * (double)beyond / (double)figures->cases,
           figures->cases);
}

int main(int argc, char **argv)
{
    static struct figures whole, lived;

    if (argc < 2 || access(argv[1], R_OK) != 0) {
        printf("power limits by plan: left out, there are no traces\n");
        return 0;
    }
    for (size_t gpu = 0; gpu < sizeof gpus / sizeof gpus[0]; gpu++) {
        struct trace trace;
        struct fly_error error;

        if (trace_open(&trace, argv[1], gpus[gpu], &error) < 0)
            die(error.text);
        for (size_t job = 0; job < known_job_count; job++) {
            struct workload workload;

            if (!workload_in_trace(&trace, &known_jobs[job]))
                continue;
            if (workload_open(&workload, &trace, &known_jobs[job], &error) < 0)
                die(error.text);
            for (size_t i = 0; i < sizeof etas / sizeof etas[0]; i++) {
                plan_with_whole_profiles(&workload, etas[i], &whole);
                plan_as_a_job_lives(&workload, etas[i], &lived);
            }
            workload_close(&workload);
        }
        trace_close(&trace);
    }
    print("limits, others' profiles whole", &whole);
    print("limits, as a job lives", &lived);
    return 0;
}
