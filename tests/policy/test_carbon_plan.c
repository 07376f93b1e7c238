/* SPDX-License-Identifier: Apache-2.0 */
/* The carbon plan: what is decided from the solution, along outlooks that come true and that do not. */
#include "carbon_fixture.h"

#include "policy/carbon/carbon_plan.h"

static struct carbon_plan make_plan(const struct carbon_plan_settings *settings)
{
    struct carbon_plan plan;

    assert_int_equal(carbon_plan_init(&plan, settings, 4096, NULL), 0);
    return plan;
}

static const struct carbon_plan_settings usual = {
    .least_gain = 0.002, .dwell_s = 300, .doubt = CARBON_USUAL_DOUBT};

/* A job that does as it is told, until its work is done. */
struct obedient {
    double work_s, time_s, limit_w, held_s, paused_s;
};

static void hold(struct obedient *job, const struct carbon_point *point, double run_s)
{
    if (run_s <= 0.0)
        return;
    run_s = point->rate > 0.0 ? fmin(run_s, job->work_s / point->rate) : run_s;
    job->held_s = point->limit_w == job->limit_w ? job->held_s + run_s : run_s;
    job->limit_w = point->limit_w;
    job->work_s -= run_s * point->rate;
    job->time_s -= run_s;
}

/* Going on after a pause takes time in which nothing is done. */
static void follow(struct obedient *job, struct carbon_decision decision, double checkpoint_s)
{
    if (job->limit_w == 0.0 && decision.first.limit_w > 0.0) {
        job->time_s -= checkpoint_s;
        decision.first_s = fmax(decision.first_s - checkpoint_s, 0.0);
        decision.valid_s = fmax(decision.valid_s - checkpoint_s, 0.0);
    }
    job->paused_s += decision.first.limit_w == 0.0 ? decision.first_s : 0.0;
    hold(job, &decision.first, decision.first_s);
    hold(job, &decision.second, decision.valid_s - decision.first_s);
}

/* With an outlook that has nothing to do with the one before, is stale, or is not there. */
static struct carbon_decision decide_at_random(struct carbon_plan *plan, const struct carbon_profile *profile,
                                               const struct obedient *job, double step_s, uint64_t *seed)
{
    struct carbon_span outlook[600];
    struct carbon_question question = {.profile = profile,
                                       .outlook = outlook,
                                       .work_s = job->work_s,
                                       .time_s = job->time_s,
                                       .limit_w = job->limit_w,
                                       .held_s = job->held_s};
    struct carbon_decision decision;
    struct fly_error error;

    for (size_t i = 0; i < COUNT(outlook); i++)
        outlook[i] =
            (struct carbon_span){step_s, test_uniform(seed) < 0.05 ? NAN : 10 + 600 * test_uniform(seed)};
    question.outlook_count = test_uniform(seed) < 0.1 ? 0 : COUNT(outlook);
    question.stale = test_uniform(seed) < 0.1;
    if (carbon_plan_decide(plan, &question, &decision, &error) < 0)
        fail_msg("%s", error.text);
    assert_true(decision.valid_s > 0.0);
    return decision;
}

/* Whatever the outlook says, and whether it may pause or not, the deadline is kept. */
static void test_deadline_is_never_missed(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_plan_settings settings = usual;
    uint64_t seed = 5;

    (void)state;
    for (int round = 0; round < 60; round++) {
        struct carbon_plan plan;
        struct obedient job = {.work_s = 3600 * (1 + 30 * test_uniform(&seed)), .limit_w = NAN};
        double step_s;

        job.time_s = job.work_s * (1 + 0.3 * test_uniform(&seed));
        step_s = 300 + 3300 * test_uniform(&seed);
        settings.pause = (struct carbon_pause){.allowed = round % 6 == 0, .idle_w = 20, .checkpoint_s = 120};
        settings.pause.least_on_s = 3600 * test_uniform(&seed);
        settings.pause.least_off_s = 3600 * test_uniform(&seed);
        plan = make_plan(&settings);
        for (int asked = 0; job.work_s > 1e-6; asked++) {
            assert_true(asked < 5000);
            follow(&job, decide_at_random(&plan, &profile, &job, step_s, &seed), settings.pause.checkpoint_s);
        }
        if (job.time_s < -1e-3)
            fail_msg("round %d: %g s too late (paused for %g s)", round, -job.time_s, job.paused_s);
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
        bool stale, scarce;
        double work_s, time_s;
        enum carbon_reason reason;
        double limit_w;
    } cases[] = {
        {flat, 2, false, false, 100000, 102260, CARBON_FLAT_GRID, 225},
        {flat, 2, false, false, 100000, 103000, CARBON_TAKES_TURNS, 225},
        {unknown, 2, false, false, 100000, 103000, CARBON_UNKNOWN_GRID, 225},
        {NULL, 0, false, false, 100000, 103000, CARBON_UNKNOWN_GRID, 225},
        {steep, 2, true, false, 100000, 103000, CARBON_STALE_GRID, 225},
        {steep, 2, true, true, 100000, 103000, CARBON_SCARCE_GRID, 225},
        {steep, 2, false, false, 100000, 99000, CARBON_BEHIND, 300},
        {steep, 2, false, false, 100000, 100000, CARBON_BEHIND, 300},
        {steep, 2, false, false, 100000, 105100, CARBON_FOLLOWS, 175},
    };
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_plan plan = make_plan(&usual);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct carbon_question question = {.profile = &profile,
                                           .outlook = cases[i].spans,
                                           .outlook_count = cases[i].count,
                                           .stale = cases[i].stale,
                                           .scarce = cases[i].scarce,
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
        cmocka_unit_test(test_deadline_is_never_missed),
        cmocka_unit_test(test_answers_without_a_grid_to_follow),
        cmocka_unit_test(test_static_limit_is_held),
        cmocka_unit_test(test_limits_are_not_changed_for_little),
        cmocka_unit_test(test_known_grids_are_never_worse_than_static),
        cmocka_unit_test(test_dirty_five_minutes_take_effect_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
