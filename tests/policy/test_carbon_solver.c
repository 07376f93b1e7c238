/* SPDX-License-Identifier: Apache-2.0 */
/* What the carbon plan stands on: hulls of a power profile, an order, and the exact solution. */
#include "carbon_fixture.h"

#include "policy/carbon/carbon_solver.h"
#include "policy/radix_order.h"

static void test_hull_is_convex_and_below_all_points(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);

    (void)state;
    assert_true(profile.lower.count >= 3);
    for (size_t i = 0; i + 2 < profile.lower.count; i++)
        assert_true(carbon_hull_slope(&profile.lower, i) < carbon_hull_slope(&profile.lower, i + 1));
    for (size_t i = 0; i + 2 < profile.upper.count; i++)
        assert_true(carbon_hull_slope(&profile.upper, i) > carbon_hull_slope(&profile.upper, i + 1));
    for (size_t p = 0; p < profile.count; p++) {
        const struct carbon_point *point = &profile.points[p];

        for (size_t i = 0; i + 1 < profile.lower.count; i++) {
            const struct carbon_point *edge = &profile.lower.points[i];

            if (point->rate < edge[0].rate || point->rate > edge[1].rate)
                continue;
            assert_true(point->power_w >=
                        edge->power_w + carbon_hull_slope(&profile.lower, i) * (point->rate - edge->rate) -
                            1e-9);
        }
    }
    check_double(profile.points[profile.fastest].limit_w, 300);
    check_double(profile.points[profile.fastest].rate, 1.0);
}

static void test_surroundings_raise_power(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 100.0, 1.5);

    (void)state;
    check_close(profile.points[8].power_w, (259.2 + 100.0) * 1.5, 1e-15);
}

static void test_bad_profiles_are_refused(void **state)
{
    static const struct {
        struct fly_power_point points[2];
        size_t count;
        double host_w, pue;
        const char *says;
    } cases[] = {
        {{{0}}, 0, 0, 1, "is empty"},
        {{{100, 90, 1}, {100, 80, 2}}, 2, 0, 1, "twice"},
        {{{100, NAN, 1}}, 1, 0, 1, "above 0"},
        {{{100, 90, 0}}, 1, 0, 1, "above 0"},
        {{{100, 90, 1}}, 1, -1, 1, "host power"},
        {{{100, 90, 1}}, 1, 0, 0.9, "PUE"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct carbon_surroundings surroundings = {cases[i].host_w, cases[i].pue};
        struct carbon_profile profile;
        struct fly_error error = {0};

        assert_int_equal(
            carbon_profile_init(&profile, cases[i].points, cases[i].count, &surroundings, &error),
            FLY_EUSAGE);
        check_contains(error.text, cases[i].says);
    }
}

static void test_static_limit_keeps_the_bound(void **state)
{
    static const struct {
        double slowdown, limit_w;
    } cases[] = {{1.0, 300}, {1.0021, 275}, {1.025, 225}, {1.03, 225}, {1.05, 200}, {1.2, 175}, {9.0, 175}};
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        check_double(profile.points[carbon_profile_static(&profile, 1000, 1000 * cases[i].slowdown)].limit_w,
                     cases[i].limit_w);
    /* A bound that a limit keeps exactly. */
    check_double(profile.points[carbon_profile_static(&profile, 1000, 1000 / profile.points[5].rate)].limit_w,
                 225);
}

static void test_order_is_that_of_any_sort(void **state)
{
    enum { MOST = 20000 };
    static double sizes[MOST];
    static uint32_t order[MOST];
    static uint64_t memory[2 * MOST];
    uint64_t seed = 7;

    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        for (size_t count = 0; count < MOST; count = 3 * count + 1) {
            for (size_t i = 0; i < count; i++)
                sizes[i] = kind == 0   ? test_uniform(&seed) * 500
                           : kind == 1 ? test_below(&seed, 7)
                           : kind == 2 ? 1.0 + test_uniform(&seed) * 1e-9 /* differ in the lower half alone */
                           : kind == 3 ? (double)(count - i)
                                       : 0.0;
            radix_order(sizes, count, order, memory);
            for (size_t i = 1; i < count; i++)
                assert_true(sizes[order[i - 1]] < sizes[order[i]] ||
                            (sizes[order[i - 1]] == sizes[order[i]] && order[i - 1] < order[i]));
        }
    }
}

struct tried {
    double work_s, cost;
};

/* Work and cost of a solution, added up span by span. */
static struct tried add_up(const struct carbon_problem *problem, const struct carbon_solution *solution)
{
    struct tried sum = {0};

    for (size_t i = 0; i <= solution->last; i++) {
        struct carbon_mix mix = carbon_solution_mix(problem, solution, i);
        double power_w = mix.low.power_w + (mix.high.power_w - mix.low.power_w) * mix.high_share;

        sum.work_s +=
            (mix.low.rate + (mix.high.rate - mix.low.rate) * mix.high_share) * problem->spans[i].duration_s;
        sum.cost += problem->spans[i].weight * power_w * problem->spans[i].duration_s / 3.6e6;
    }
    return sum;
}

/* The least cost of every way to run a grid of rates in each span, and to end anywhere. */
static double brute_force(const struct carbon_problem *problem, size_t span, double work_s, double idle_w)
{
    enum { STEPS = 12 };
    const struct carbon_hull *lower = &problem->profile->lower;
    double best = INFINITY;

    if (work_s <= 1e-9)
        return 0.0;
    if (span == problem->span_count)
        return INFINITY;
    for (size_t p = 0; p < lower->count; p++) {
        const struct carbon_point *point = &lower->points[p];

        for (int share = 0; share <= STEPS; share++) {
            const struct carbon_point *next = p + 1 < lower->count ? point + 1 : point;
            double part = (double)share / STEPS, rate = point->rate + part * (next->rate - point->rate);
            double power_w = point->power_w + part * (next->power_w - point->power_w);
            double duration_s = problem->spans[span].duration_s, run_s = fmin(duration_s, work_s / rate);
            double cost = problem->spans[span].weight * power_w * run_s / 3.6e6;

            best = fmin(best, cost + brute_force(problem, span + 1, work_s - rate * run_s, idle_w));
        }
    }
    if (!isnan(idle_w))
        best = fmin(best, problem->spans[span].weight * idle_w * problem->spans[span].duration_s / 3.6e6 +
                              brute_force(problem, span + 1, work_s, idle_w));
    return best;
}

static void test_solution_is_the_best_of_all(void **state)
{
    static const struct fly_power_point few[] = {{150, 150, 1.5}, {200, 200, 1.1}, {300, 280, 1.0}};
    struct carbon_profile profile = profile_of(few, COUNT(few), 20.0, 1.0);
    struct carbon_workspace workspace;
    uint64_t seed = 3;

    (void)state;
    assert_int_equal(carbon_workspace_init(&workspace, 8, NULL), 0);
    for (int round = 0; round < 60; round++) {
        struct carbon_span spans[3];
        struct carbon_problem problem = {.profile = &profile, .spans = spans, .span_count = 3, .idle_w = NAN};
        struct carbon_solution solution;
        struct tried sum;
        double time_s = 0.0, best;

        for (int i = 0; i < 3; i++) {
            spans[i] = (struct carbon_span){600 + 3000 * test_uniform(&seed), 50 + 400 * test_uniform(&seed)};
            time_s += spans[i].duration_s;
        }
        problem.work_s = time_s * (0.5 + 0.5 * test_uniform(&seed));
        problem.idle_w = round % 2 == 0 ? NAN : 15.0 * test_uniform(&seed);
        assert_int_equal(carbon_solve(&workspace, &problem, &solution, NULL), 0);
        sum = add_up(&problem, &solution);
        check_close(sum.work_s, problem.work_s, 1e-9);
        check_close(sum.cost, solution.cost, 1e-9);
        best = brute_force(&problem, 0, problem.work_s, problem.idle_w);
        if (solution.cost > best * (1.0 + 1e-9))
            fail_msg("round %d: %.12g, but there is %.12g", round, solution.cost, best);
        /* The search is over a grid of rates, so it comes near and not onto it. */
        assert_true(!isnan(problem.idle_w) || solution.cost > best * 0.98);
    }
    carbon_workspace_deinit(&workspace);
}

/* Prices below 0: more power is better there, and the upper hull counts. */
static void test_negative_weights(void **state)
{
    static const struct fly_power_point few[] = {{150, 150, 1.5}, {300, 280, 1.0}};
    struct carbon_profile profile = profile_of(few, COUNT(few), 0.0, 1.0);
    const struct carbon_span spans[] = {{3600, -50}, {3600, 100}, {3600, -20}};
    struct carbon_problem problem = {
        .profile = &profile, .spans = spans, .span_count = 3, .work_s = 9000, .idle_w = NAN};
    struct carbon_workspace workspace;
    struct carbon_solution solution;

    (void)state;
    assert_int_equal(carbon_workspace_init(&workspace, 3, NULL), 0);
    assert_int_equal(carbon_solve(&workspace, &problem, &solution, NULL), 0);
    check_close(add_up(&problem, &solution).work_s, 9000, 1e-9);
    check_close(add_up(&problem, &solution).cost, solution.cost, 1e-9);
    check_double(carbon_solution_mix(&problem, &solution, 0).high.limit_w, 300);
    check_double(carbon_solution_mix(&problem, &solution, 0).high_share, 1.0);
    /* What is left, 5400 s, is done most slowly where it costs. */
    check_double(carbon_solution_mix(&problem, &solution, 1).low.limit_w, 150);
    problem.work_s = 10800;
    assert_int_equal(carbon_solve(&workspace, &problem, &solution, NULL), 0);
    check_close(add_up(&problem, &solution).work_s, 10800, 1e-9);
    problem.work_s = 10801;
    assert_int_equal(carbon_solve(&workspace, &problem, &solution, NULL), FLY_EEXHAUSTED);
    carbon_workspace_deinit(&workspace);
}

/* Long problems go another way inside (a core of spans before every end). */
static void test_long_problems_add_up(void **state)
{
    enum { SPANS = 9000 };
    static struct carbon_span spans[SPANS];
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_problem problem = {.profile = &profile, .spans = spans, .span_count = SPANS, .idle_w = NAN};
    struct carbon_workspace workspace;
    struct carbon_solution solution;
    uint64_t seed = 11;

    (void)state;
    for (size_t i = 0; i < SPANS; i++)
        spans[i] = (struct carbon_span){300, test_uniform(&seed) * 500 - (i % 3 == 0 ? 100 : 0)};
    assert_int_equal(carbon_workspace_init(&workspace, SPANS, NULL), 0);
    for (int round = 0; round < 4; round++) {
        problem.work_s = SPANS * 300.0 / (1.0 + 0.04 * round);
        assert_int_equal(carbon_solve(&workspace, &problem, &solution, NULL), 0);
        check_close(add_up(&problem, &solution).work_s, problem.work_s, 1e-9);
        check_close(add_up(&problem, &solution).cost, solution.cost, 1e-9);
        assert_true(solution.finish_s <= SPANS * 300.0);
    }
    carbon_workspace_deinit(&workspace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hull_is_convex_and_below_all_points),
        cmocka_unit_test(test_surroundings_raise_power),
        cmocka_unit_test(test_bad_profiles_are_refused),
        cmocka_unit_test(test_static_limit_keeps_the_bound),
        cmocka_unit_test(test_order_is_that_of_any_sort),
        cmocka_unit_test(test_solution_is_the_best_of_all),
        cmocka_unit_test(test_negative_weights),
        cmocka_unit_test(test_long_problems_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
