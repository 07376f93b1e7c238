/* SPDX-License-Identifier: Apache-2.0 */
/* The carbon plan: the hull, the exact solution, and what is decided by them. */
#include "carbon_fixture.h"

#include <stdlib.h>

#include "policy/carbon_plan.h"
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

static struct carbon_plan make_plan(const struct carbon_plan_settings *settings)
{
    struct carbon_plan plan;

    assert_int_equal(carbon_plan_init(&plan, settings, 4096, NULL), 0);
    return plan;
}

static const struct carbon_plan_settings usual = {
    .least_gain = 0.002, .dwell_s = 300, .doubt = CARBON_USUAL_DOUBT};

/* Whatever the outlook says, and however the machine's speed differs from the profile's, the deadline is
 * kept. */
static void test_deadline_is_never_missed(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_plan_settings settings = usual;
    uint64_t seed = 5;

    (void)state;
    for (int round = 0; round < 60; round++) {
        struct carbon_plan plan;
        double work_s = 3600 * (1 + 30 * test_uniform(&seed)),
               time_s = work_s * (1 + 0.3 * test_uniform(&seed));
        double limit_w = NAN, held_s = 0.0, step_s = 300 + 3300 * test_uniform(&seed), paused_s = 0.0;

        settings.pause = (struct carbon_pause){.allowed = round % 6 == 0,
                                               .idle_w = 20,
                                               .checkpoint_s = 120,
                                               .least_on_s = 3600 * test_uniform(&seed),
                                               .least_off_s = 3600 * test_uniform(&seed)};
        plan = make_plan(&settings);
        for (int asked = 0; work_s > 1e-6; asked++) {
            struct carbon_span outlook[600];
            struct carbon_question question = {.profile = &profile,
                                               .outlook = outlook,
                                               .work_s = work_s,
                                               .time_s = time_s,
                                               .limit_w = limit_w,
                                               .held_s = held_s};
            struct carbon_decision decision;
            struct fly_error error;

            for (size_t i = 0; i < COUNT(outlook); i++)
                outlook[i] = (struct carbon_span){
                    step_s, test_uniform(&seed) < 0.05 ? NAN : 10 + 600 * test_uniform(&seed)};
            question.outlook_count = test_uniform(&seed) < 0.1 ? 0 : COUNT(outlook);
            question.stale = test_uniform(&seed) < 0.1;
            if (carbon_plan_decide(&plan, &question, &decision, &error) < 0)
                fail_msg("%s", error.text);
            assert_true(decision.valid_s > 0.0);
            assert_true(asked < 5000);
            if (limit_w == 0.0 && decision.first.limit_w > 0.0) {
                time_s -= settings.pause.checkpoint_s;
                decision.first_s = fmax(decision.first_s - settings.pause.checkpoint_s, 0.0);
                decision.valid_s = fmax(decision.valid_s - settings.pause.checkpoint_s, 0.0);
            }
            paused_s += decision.first.limit_w == 0.0 ? decision.first_s : 0.0;
            for (int part = 0; part < 2; part++) {
                const struct carbon_point *point = part == 0 ? &decision.first : &decision.second;
                double run_s = part == 0 ? decision.first_s : decision.valid_s - decision.first_s;

                if (run_s <= 0.0)
                    continue;
                run_s = point->rate > 0.0 ? fmin(run_s, work_s / point->rate) : run_s;
                held_s = point->limit_w == limit_w ? held_s + run_s : run_s;
                limit_w = point->limit_w;
                work_s -= run_s * point->rate;
                time_s -= run_s;
            }
        }
        if (time_s < -1e-3)
            fail_msg("round %d: %g s too late (paused for %g s)", round, -time_s, paused_s);
        carbon_plan_deinit(&plan);
    }
}

static void test_answers_without_a_grid_to_follow(void **state)
{
    static const struct carbon_span flat[] = {{50000, 300}, {80000, 300.1}},
                                    unknown[] = {{50000, NAN}, {80000, NAN}},
                                    steep[] = {{50000, 500}, {80000, 100}};
    const struct {
        const struct carbon_span *spans;
        size_t count;
        bool stale;
        double work_s, time_s;
        enum carbon_reason reason;
        double limit_w;
    } cases[] = {
        {flat, 2, false, 100000, 102260, CARBON_FLAT_GRID, 225},
        {flat, 2, false, 100000, 103000, CARBON_TAKES_TURNS, 225},
        {unknown, 2, false, 100000, 103000, CARBON_UNKNOWN_GRID, 225},
        {NULL, 0, false, 100000, 103000, CARBON_UNKNOWN_GRID, 225},
        {steep, 2, true, 100000, 103000, CARBON_STALE_GRID, 225},
        {steep, 2, false, 100000, 99000, CARBON_BEHIND, 300},
        {steep, 2, false, 100000, 100000, CARBON_BEHIND, 300},
        {steep, 2, false, 100000, 105100, CARBON_FOLLOWS, 175},
    };
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_plan plan = make_plan(&usual);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct carbon_question question = {.profile = &profile,
                                           .outlook = cases[i].spans,
                                           .outlook_count = cases[i].count,
                                           .stale = cases[i].stale,
                                           .work_s = cases[i].work_s,
                                           .time_s = cases[i].time_s,
                                           .limit_w = NAN};
        struct carbon_decision decision;

        carbon_plan_restart(&plan);
        assert_int_equal(carbon_plan_decide(&plan, &question, &decision, NULL), 0);
        if (decision.reason != cases[i].reason)
            fail_msg("case %zu: '%s'", i, carbon_reason_text(decision.reason));
        check_double(decision.first.limit_w, cases[i].limit_w);
    }
    carbon_plan_deinit(&plan);
}

/* A static limit is held to the end, though what it leaves of the time would allow a lower one. */
static void test_static_limit_is_held(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_plan plan = make_plan(&usual);
    double work_s = 360000, time_s = 360000 * 1.03;

    (void)state;
    while (work_s > 1.0) {
        struct carbon_question question = {
            .profile = &profile, .work_s = work_s, .time_s = time_s, .limit_w = 225, .held_s = 1e6};
        struct carbon_decision decision;

        assert_int_equal(carbon_plan_decide(&plan, &question, &decision, NULL), 0);
        check_double(decision.first.limit_w, 225);
        work_s -= 3600 * decision.first.rate;
        time_s -= 3600;
    }
    carbon_plan_deinit(&plan);
}

/* What stands is kept where another gains little, and longer where it was set only now. */
static void test_limits_are_not_changed_for_little(void **state)
{
    static const struct {
        double first_weight, held_s;
        enum carbon_reason reason;
        double limit_w;
    } cases[] = {
        {2, 1e6, CARBON_FOLLOWS, 300},  /* clean */
        {2, 100, CARBON_FOLLOWS, 300},  /* and worth a change at once */
        {30, 1e6, CARBON_FOLLOWS, 300}, /* a little cleaner than what comes */
        {30, 100, CARBON_DWELLS, 200},  /* but not worth a change so soon */
        {50, 1e6, CARBON_KEPT, 200},    /* worth none */
    };
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_plan_settings settings = usual;

    (void)state;
    settings.doubt = 0.0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct carbon_plan plan = make_plan(&settings);
        const struct carbon_span spans[] = {{200, cases[i].first_weight}, {18000, 290}, {18000, 291}};
        struct carbon_question question = {.profile = &profile,
                                           .outlook = spans,
                                           .outlook_count = 3,
                                           .work_s = 33304,
                                           .time_s = 36200,
                                           .limit_w = 200,
                                           .held_s = cases[i].held_s};
        struct carbon_decision decision;

        assert_int_equal(carbon_plan_decide(&plan, &question, &decision, NULL), 0);
        if (decision.reason != cases[i].reason || decision.first.limit_w != cases[i].limit_w)
            fail_msg("case %zu: %s at %g W", i, carbon_reason_text(decision.reason), decision.first.limit_w);
        carbon_plan_deinit(&plan);
    }
}

/* A course of one-limit stretches along an outlook that comes true. */
struct walk {
    double work_s, time_s, limit_w, held_s, cost;
};

/* What the weights are worth while a limit stands; spans are used up. */
static void walk_at(struct walk *walk, const struct carbon_point *point, double run_s, double weight)
{
    run_s = fmin(run_s, walk->work_s / point->rate);
    if (run_s <= 0.0)
        return;
    walk->held_s = point->limit_w == walk->limit_w ? walk->held_s + run_s : run_s;
    walk->limit_w = point->limit_w;
    walk->work_s -= run_s * point->rate;
    walk->time_s -= run_s;
    walk->cost += weight * point->power_w * run_s / 3.6e6;
}

/* The plan asked at each border, everything known. */
static struct walk walk_known(const struct carbon_profile *profile, struct carbon_span *spans, size_t count,
                              double work_s, double time_s)
{
    struct carbon_plan plan = make_plan(&usual);
    struct walk walk = {work_s, time_s, NAN, 0.0, 0.0};

    while (walk.work_s > 1e-6) {
        struct carbon_question question = {.profile = profile,
                                           .outlook = spans,
                                           .outlook_count = count,
                                           .work_s = walk.work_s,
                                           .time_s = walk.time_s,
                                           .limit_w = walk.limit_w,
                                           .held_s = walk.held_s};
        struct carbon_decision decision;

        assert_int_equal(carbon_plan_decide(&plan, &question, &decision, NULL), 0);
        walk_at(&walk, &decision.first, decision.first_s, spans->weight);
        walk_at(&walk, &decision.second, decision.valid_s - decision.first_s, spans->weight);
        spans->duration_s -= decision.valid_s;
        if (spans->duration_s < 1e-6 && count > 1) {
            spans++;
            count--;
        }
    }
    carbon_plan_deinit(&plan);
    return walk;
}

static double known_alone(const struct carbon_profile *profile, const struct carbon_span *spans,
                          double work_s, double time_s)
{
    const struct carbon_point *point = &profile->points[carbon_profile_static(profile, work_s, time_s)];
    double left_s = work_s / point->rate, cost = 0.0;

    for (; left_s > 0.0; spans++) {
        cost += spans->weight * point->power_w * fmin(left_s, spans->duration_s) / 3.6e6;
        left_s -= spans->duration_s;
    }
    return cost;
}

/* Where the outlook comes true no job, however short, does worse than at the best static limit. */
static void test_known_grids_are_never_worse_than_static(void **state)
{
    static const double steps_s[] = {60, 300, 1800, 3600}, rest[] = {1.02, 1.05, 1.1, 1.2, 2.0};
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_span spans[400];
    uint64_t seed = 23;
    int gains = 0, rounds = 0;

    (void)state;
    for (; rounds < 600; rounds++) {
        double step_s = steps_s[rounds % 4], work_s = step_s * (0.3 + 12 * test_uniform(&seed));
        double time_s = work_s * rest[rounds % 5], base = 20 + 400 * test_uniform(&seed), alone;
        double spread = test_uniform(&seed);
        struct walk walk;

        for (size_t i = 0; i < COUNT(spans); i++)
            spans[i] = (struct carbon_span){i == 0 ? step_s * (0.05 + 0.9 * test_uniform(&seed)) : step_s,
                                            base * (1 + spread * (2 * test_uniform(&seed) - 1))};
        alone = known_alone(&profile, spans, work_s, time_s);
        walk = walk_known(&profile, spans, COUNT(spans), work_s, time_s);
        if (walk.cost > alone * (1 + 1e-7) || walk.time_s < -1e-6)
            fail_msg("round %d: %.9g, %.9g at the static limit, %g s left", rounds, walk.cost, alone,
                     walk.time_s);
        gains += walk.cost < alone * 0.995;
    }
    assert_true(gains > rounds / 4);
}

/* A dirty period of five minutes takes effect at once, however short a time ago the limit was set. */
static void test_dirty_five_minutes_take_effect_at_once(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    const struct carbon_span spans[] = {{300, 500}, {300, 200}, {3600, 201}};

    (void)state;
    for (double held_s = 10; held_s < 300; held_s += 20) {
        struct carbon_plan plan = make_plan(&usual);
        struct carbon_question question = {.profile = &profile,
                                           .outlook = spans,
                                           .outlook_count = COUNT(spans),
                                           .work_s = 3400,
                                           .time_s = 3485,
                                           .limit_w = 250,
                                           .held_s = held_s};
        struct carbon_decision decision;

        assert_int_equal(carbon_plan_decide(&plan, &question, &decision, NULL), 0);
        /* Some seconds are waited for rather than paid for. */
        if (decision.first.limit_w != 200 && (decision.first_s > 60 || decision.second.limit_w != 200))
            fail_msg("%g W for %g s, then %g W", decision.first.limit_w, decision.first_s,
                     decision.second.limit_w);
        carbon_plan_deinit(&plan);
    }
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
        cmocka_unit_test(test_deadline_is_never_missed),
        cmocka_unit_test(test_answers_without_a_grid_to_follow),
        cmocka_unit_test(test_static_limit_is_held),
        cmocka_unit_test(test_limits_are_not_changed_for_little),
        cmocka_unit_test(test_known_grids_are_never_worse_than_static),
        cmocka_unit_test(test_dirty_five_minutes_take_effect_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
