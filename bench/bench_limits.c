/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many power limits limit_plan.h measures, and what that costs against measuring all of them. Nothing
 * here passes or fails.
 *
 *     bench_limits [TRACES [JOBS]]
 *
 * TRACES is the directory of the public traces: all batch sizes of six jobs on three GPUs. Besides there are
 * JOBS jobs of each family drawn at random (limit_worlds.h), 5 if not given. Each is profiled as a job lives:
 * its default has a whole profile, and those of the others, nearest to it first, have only what was measured.
 * This is done for five weights of energy, without noise and with errors of 1 and 3 % (standard deviation) in
 * each time and each power.
 *
 * The excess is what the limit chosen from what the plan measured costs beyond the one that is chosen when
 * all are measured, with the same errors; it is judged by the true figures, so with noise it may be below 0.
 * What measuring all costs beyond the truly best limit stands beside it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/math/order.h"
#include "limit_worlds.h"
#include "policy/limit_plan.h"

/* Other jobs than those on which the constants were chosen. */
enum { CASES_MAX = 28000, JOBS = 5, JOBS_MAX = 100, SYNTHETIC_SEED = 1001 };

static const char *const gpus[] = {"v100", "a40", "p100"};
static const double etas[] = {0.0, 0.25, 0.5, 0.75, 1.0};
static const double noises[] = {0.0, 0.01, 0.03};

enum { ETAS = sizeof etas / sizeof etas[0], NOISES = sizeof noises / sizeof noises[0] };

struct figures {
    double excess[CASES_MAX];
    size_t cases, limits, measured;
    double all_beyond_best; /* sum */
};

/* What is known of the batch sizes of a job, in ascending order of limits. */
struct profiles {
    struct fly_power_point points[LIMIT_WORLD_BATCHES_MAX][LIMIT_WORLD_LIMITS];
    size_t count[LIMIT_WORLD_BATCHES_MAX]; /* 0: not yet */
};

static _Noreturn void die(const char *text)
{
    fprintf(stderr, "bench_limits: %s\n", text);
    exit(1);
}

static double apart(const struct limit_world *world, size_t one, size_t other)
{
    return fabs(world->octaves[one] - world->octaves[other]);
}

/* Takes the profiles of the nearest other batch sizes; returns how many. */
static size_t take_curves(const struct limit_world *world, const struct profiles *profiles, size_t batch,
                          struct limit_curve curves[LIMIT_CURVES_MAX])
{
    bool taken[LIMIT_WORLD_BATCHES_MAX] = {false};
    size_t count = 0;

    while (count < LIMIT_CURVES_MAX) {
        size_t nearest = batch;

        for (size_t i = 0; i < world->batch_count; i++) {
            if (i != batch && !taken[i] && profiles->count[i] >= LIMIT_CURVE_LEAST &&
                (nearest == batch || apart(world, i, batch) < apart(world, nearest, batch)))
                nearest = i;
        }
        if (nearest == batch)
            break;
        taken[nearest] = true;
        curves[count++] = (struct limit_curve){profiles->points[nearest], profiles->count[nearest],
                                               world->octaves[nearest] - world->octaves[batch]};
    }
    return count;
}

/* Measures a batch size as planned. */
static void measure(const struct limit_world *world, double eta, size_t batch, struct profiles *profiles)
{
    struct limit_curve curves[LIMIT_CURVES_MAX];
    struct limit_arm room[LIMIT_WORLD_LIMITS];
    size_t curve_count = take_curves(world, profiles, batch, curves), place;
    struct limit_arms arms = {.arms = room,
                              .count = world->count[batch],
                              .open = world->count[batch],
                              .objective = {FLY_OBJECTIVE_COST, eta, INFINITY},
                              .max_power_w = world->max_power_w,
                              .indifference = 0.01};
    const struct fly_power_point *figures = world->points[batch];

    for (size_t i = 0; i < arms.count; i++)
        room[i] =
            (struct limit_arm){.limit = figures[arms.count - 1 - i].limit_w, .time_s = NAN, .power_w = NAN};
    while (limit_plan_next(&arms, curves, curve_count, &place)) {
        room[place].time_s = figures[arms.count - 1 - place].time_s;
        room[place].power_w = figures[arms.count - 1 - place].power_w;
    }
    for (size_t i = arms.count; i-- > 0;) {
        if (limit_arms_known(&arms, i))
            profiles->points[batch][profiles->count[batch]++] =
                (struct fly_power_point){room[i].limit, room[i].power_w, room[i].time_s};
    }
}

static double cost(const struct limit_world *world, double eta, const struct fly_power_point *point)
{
    return point->time_s * (eta * point->power_w + (1.0 - eta) * world->max_power_w);
}

static size_t cheapest(const struct limit_world *world, double eta, const struct fly_power_point *points,
                       size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        if (cost(world, eta, &points[i]) <= cost(world, eta, &points[best]))
            best = i;
    }
    return best;
}

/* What the choice among measured points truly costs. */
static double true_cost(const struct limit_world *truth, double eta, size_t batch,
                        const struct fly_power_point *points, size_t count)
{
    double limit_w = points[cheapest(truth, eta, points, count)].limit_w;

    for (size_t i = 0; i < truth->count[batch]; i++) {
        if (truth->points[batch][i].limit_w == limit_w)
            return cost(truth, eta, &truth->points[batch][i]);
    }
    die("a limit that there is not");
}

static void note(struct figures *figures, const struct limit_world *truth, const struct limit_world *measured,
                 double eta, size_t batch, const struct profiles *profiles)
{
    size_t count = truth->count[batch];
    double least = true_cost(truth, eta, batch, truth->points[batch], count);
    double all = true_cost(truth, eta, batch, measured->points[batch], count);
    double planned = true_cost(truth, eta, batch, profiles->points[batch], profiles->count[batch]);

    if (figures->cases == CASES_MAX)
        die("more cases than there is room for");
    figures->excess[figures->cases++] = planned / all - 1.0;
    figures->all_beyond_best += all / least - 1.0;
    figures->limits += count;
    figures->measured += profiles->count[batch];
}

/* The batch size to profile next: the nearest to the default that has no profile; batch_count: none. */
static size_t next_batch(const struct limit_world *world, const struct profiles *profiles)
{
    size_t next = world->batch_count, start = world->default_batch;

    for (size_t i = 0; i < world->batch_count; i++) {
        if (profiles->count[i] == 0 &&
            (next == world->batch_count || apart(world, i, start) < apart(world, next, start)))
            next = i;
    }
    return next;
}

static void live(const struct limit_world *truth, const struct limit_world *measured, double eta,
                 struct figures *figures)
{
    static struct profiles profiles;
    size_t batch = measured->default_batch;

    profiles = (struct profiles){.count = {0}};
    profiles.count[batch] = measured->count[batch];
    for (size_t i = 0; i < measured->count[batch]; i++)
        profiles.points[batch][i] = measured->points[batch][i];
    while ((batch = next_batch(measured, &profiles)) < measured->batch_count) {
        measure(measured, eta, batch, &profiles);
        note(figures, truth, measured, eta, batch, &profiles);
    }
}

/* Figures by noise and eta. */
struct table {
    struct figures cells[NOISES][ETAS];
};

static void live_all(const struct limit_world *world, uint64_t seed, struct table *table)
{
    static struct limit_world measured;

    for (size_t noise = 0; noise < NOISES; noise++) {
        limit_world_measure(world, noises[noise], seed, &measured);
        for (size_t eta = 0; eta < ETAS; eta++)
            live(world, &measured, etas[eta], &table->cells[noise][eta]);
    }
}

static void add(struct figures *sum, const struct figures *figures)
{
    for (size_t i = 0; i < figures->cases; i++)
        sum->excess[sum->cases++] = figures->excess[i];
    sum->limits += figures->limits;
    sum->measured += figures->measured;
    sum->all_beyond_best += figures->all_beyond_best;
}

static void print_row(const char *what, double noise, const char *eta, struct figures *figures)
{
    double sum = 0.0, cases = (double)figures->cases;
    size_t beyond = 0;

    for (size_t i = 0; i < figures->cases; i++) {
        sum += figures->excess[i];
        beyond += figures->excess[i] > 0.01;
    }
    qsort(figures->excess, figures->cases, sizeof figures->excess[0], order_doubles);
    printf("%-12s %4.0f %%  %-4s %6zu %7.1f %% %8.3f %7.2f %7.2f %7.2f %9.2f %% %9.3f\n", what, 100.0 * noise,
           eta, figures->cases, 100.0 * (double)figures->measured / (double)figures->limits,
           100.0 * sum / cases, 100.0 * figures->excess[figures->cases * 95 / 100],
           100.0 * figures->excess[figures->cases * 99 / 100], 100.0 * figures->excess[figures->cases - 1],
           100.0 * (double)beyond / cases, 100.0 * figures->all_beyond_best / cases);
}

static void print_table(const char *what, struct table *table, bool by_eta)
{
    static struct figures sum;

    for (size_t noise = 0; noise < NOISES; noise++) {
        sum = (struct figures){.cases = 0};
        for (size_t eta = 0; eta < ETAS; eta++) {
            char text[8];

            add(&sum, &table->cells[noise][eta]);
            snprintf(text, sizeof text, "%.2f", etas[eta]);
            if (by_eta)
                print_row(what, noises[noise], text, &table->cells[noise][eta]);
        }
        print_row(what, noises[noise], "all", &sum);
    }
}

/* Prints each family, and adds them up. */
static void bench_families(size_t jobs, struct table *sum)
{
    static struct limit_world world;
    static struct table own;

    for (size_t family = 0; family < limit_family_count; family++) {
        for (size_t i = 0; i < NOISES * ETAS; i++)
            own.cells[i / ETAS][i % ETAS] = (struct figures){.cases = 0};
        for (uint64_t job = 0; job < jobs; job++) {
            limit_world_draw(&world, family, SYNTHETIC_SEED + job);
            live_all(&world, SYNTHETIC_SEED + job, &own);
        }
        for (size_t i = 0; i < NOISES * ETAS; i++)
            add(&sum->cells[i / ETAS][i % ETAS], &own.cells[i / ETAS][i % ETAS]);
        print_table(limit_families[family], &own, false);
    }
}

static void bench_traces(const char *directory, struct table *table)
{
    static struct limit_world world;
    uint64_t seed = 0;

    for (size_t gpu = 0; gpu < sizeof gpus / sizeof gpus[0]; gpu++) {
        struct trace trace;
        struct fly_error error;

        if (trace_open(&trace, directory, gpus[gpu], &error) < 0)
            die(error.text);
        for (size_t job = 0; job < known_job_count; job++) {
            struct workload workload;

            if (!workload_in_trace(&trace, &known_jobs[job]))
                continue;
            if (workload_open(&workload, &trace, &known_jobs[job], &error) < 0)
                die(error.text);
            limit_world_of(&world, &workload);
            live_all(&world, seed++, table);
            workload_close(&workload);
        }
        trace_close(&trace);
    }
}

int main(int argc, char **argv)
{
    static struct table synthetic, traces;
    size_t jobs = argc > 2 ? strtoul(argv[2], NULL, 10) : JOBS;

    if (jobs == 0 || jobs > JOBS_MAX)
        die("JOBS has to be from 1 to 100");
    printf("%-12s %6s  %-4s %6s %9s %8s %7s %7s %7s %11s %9s\n", "limits", "noise", "eta", "cases",
           "measured", "mean, %", "p95", "p99", "worst", "above 1 %", "all, %");
    bench_families(jobs, &synthetic);
    print_table("synthetic", &synthetic, true);
    if (argc < 2 || access(argv[1], R_OK) != 0) {
        printf("the public traces are left out: there are none\n");
        return 0;
    }
    bench_traces(argv[1], &traces);
    print_table("traces", &traces, true);
    return 0;
}
