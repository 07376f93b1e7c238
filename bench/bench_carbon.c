/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carbon plan: plans a year of five-minute periods at once, and plans anew in each period of a week-long
 * job, compared with sorting the same weights by qsort.
 *
 *     bench_carbon
 *
 * Processor time of one thread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/math/order.h"
#include "grid/forecast.h"
#include "model/grid_series.h"
#include "policy/carbon/carbon_plan.h"

enum {
    STEP_S = 300,
    WEEK = 7 * 86400 / STEP_S,
    YEAR = 365 * 86400 / STEP_S,
    ROUNDS = 31,
    HISTORY = 15 * 288
};

/* One run of ResNet-50 on an A40 under each limit, as published with Zeus's test data. */
static const struct fly_power_point points[] = {
    {100, 115.8, 69.36}, {125, 125.2, 56.48}, {150, 149.6, 36.85}, {175, 174.2, 27.94}, {200, 199.2, 25.19},
    {225, 224.0, 24.55}, {250, 244.8, 24.16}, {275, 254.4, 24.06}, {300, 259.2, 24.01}};

static volatile double sink;

static double processor_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void die(const char *text)
{
    fprintf(stderr, "bench_carbon: %s\n", text);
    exit(1);
}

/* A day's course with noise; the same in every run. */
static double weight_at(size_t period)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return 300.0 + 150.0 * sin((double)period * 6.283185307179586 / 288.0) +
           (double)(state >> 40) * 0x1p-24 * 60.0;
}

static void print(const char *what, double *values_s, double unit_s, const char *unit, double reference_s)
{
    qsort(values_s, ROUNDS, sizeof values_s[0], order_doubles);
    printf("%-48s %8.3f %s (%.3f to %.3f), %.2f times qsort\n", what, values_s[ROUNDS / 2] / unit_s, unit,
           values_s[0] / unit_s, values_s[ROUNDS - 1] / unit_s, values_s[ROUNDS / 2] / reference_s);
}

static double time_sorting(const struct carbon_span *spans, size_t count)
{
    double values_s[ROUNDS], *weights = malloc(count * sizeof *weights);

    if (weights == NULL)
        die("out of memory");
    for (int i = 0; i < ROUNDS; i++) {
        double begin_s;

        for (size_t p = 0; p < count; p++)
            weights[p] = spans[p].weight;
        begin_s = processor_s();
        qsort(weights, count, sizeof *weights, order_doubles);
        values_s[i] = processor_s() - begin_s;
    }
    sink = weights[0];
    free(weights);
    qsort(values_s, ROUNDS, sizeof values_s[0], order_doubles);
    return values_s[ROUNDS / 2];
}

static void bench_year(const struct carbon_profile *profile, const struct carbon_span *spans,
                       double reference_s)
{
    static const double slowdowns[] = {1.03, 1.2, 1.5};
    struct carbon_workspace workspace;
    struct fly_error error;

    if (carbon_workspace_init(&workspace, YEAR, &error) < 0)
        die(error.text);
    for (size_t s = 0; s < sizeof slowdowns / sizeof slowdowns[0]; s++) {
        const struct carbon_problem problem = {.profile = profile,
                                               .spans = spans,
                                               .span_count = YEAR,
                                               .work_s = YEAR * (double)STEP_S / slowdowns[s],
                                               .idle_w = NAN};
        double values_s[ROUNDS];
        char what[64];

        for (int i = 0; i < ROUNDS; i++) {
            struct carbon_solution solution;
            double begin_s = processor_s();

            if (carbon_solve(&workspace, &problem, &solution, &error) < 0)
                die(error.text);
            values_s[i] = processor_s() - begin_s;
            sink = solution.cost;
        }
        snprintf(what, sizeof what, "a year of 5 min, 9 limits, +%.0f %%", 100 * (slowdowns[s] - 1));
        print(what, values_s, 1e-3, "ms", reference_s);
    }
    carbon_workspace_deinit(&workspace);
}

/* Makes forecast and plan, as a training does in each period. */
static void bench_week(const struct carbon_profile *profile, const struct grid_series *history,
                       double reference_s)
{
    const struct carbon_plan_settings settings = {.least_gain = 0.002, .dwell_s = 300};
    static struct grid_period forecast[WEEK + 300];
    static struct carbon_span outlook[WEEK + 300];
    double values_s[ROUNDS], sum_s = 0.0;
    struct carbon_plan plan;
    struct fly_error error;
    int64_t now_s = history->periods[history->count - 1].end_s;

    if (carbon_plan_init(&plan, &settings, WEEK + 300, &error) < 0)
        die(error.text);
    for (int i = 0; i < ROUNDS; i++) {
        double left = 1.0 - (double)i / ROUNDS, begin_s = processor_s();
        struct grid_forecast_request request = {.actual = history,
                                                .now_s = now_s,
                                                .until_s = now_s + (int64_t)(left * WEEK * STEP_S),
                                                .yearly_mean = NAN};
        size_t count = grid_forecast(&request, forecast, WEEK + 300);
        struct carbon_question question = {.profile = profile,
                                           .outlook = outlook,
                                           .outlook_count = count,
                                           .work_s = left * WEEK * STEP_S / 1.03,
                                           .time_s = left * WEEK * STEP_S,
                                           .limit_w = 225,
                                           .held_s = 1e6};
        struct carbon_decision decision;

        for (size_t p = 0; p < count; p++)
            outlook[p] =
                (struct carbon_span){(double)(forecast[p].end_s - forecast[p].start_s), forecast[p].value};
        if (carbon_plan_decide(&plan, &question, &decision, &error) < 0)
            die(error.text);
        values_s[i] = processor_s() - begin_s;
        sum_s += values_s[i];
        sink = decision.cost;
    }
    print("forecast and plan anew, a week of 5 min", values_s, 1e-3, "ms", reference_s);
    printf("%-48s %8.5f %% of a core\n", "the same every 5 min of a week-long job",
           100 * sum_s / ROUNDS / STEP_S);
    carbon_plan_deinit(&plan);
}

int main(void)
{
    const struct carbon_surroundings surroundings = {.host_w = 0.0, .pue = 1.0};
    const struct grid_kind kind = {.quantity = GRID_CARBON, .provider = "bench"};
    struct carbon_span *spans = malloc(YEAR * sizeof *spans);
    struct carbon_profile profile;
    struct grid_series history;
    struct fly_error error;

    if (spans == NULL)
        die("out of memory");
    if (carbon_profile_init(&profile, points, sizeof points / sizeof points[0], &surroundings, &error) < 0)
        die(error.text);
    for (size_t i = 0; i < YEAR; i++)
        spans[i] = (struct carbon_span){STEP_S, weight_at(i)};
    grid_series_init(&history, &kind, HISTORY);
    for (int64_t i = 0; i < HISTORY; i++) {
        const struct grid_period period = {i * STEP_S, (i + 1) * STEP_S, weight_at((size_t)i), GRID_MEASURED,
                                           0};

        if (grid_series_add(&history, &period, &error) < 0)
            die(error.text);
    }
    if (grid_series_settle(&history, &error) < 0)
        die(error.text);
    bench_year(&profile, spans, time_sorting(spans, YEAR));
    bench_week(&profile, &history, time_sorting(spans, WEEK));
    grid_series_deinit(&history);
    free(spans);
    return 0;
}
