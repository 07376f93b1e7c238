/* SPDX-License-Identifier: Apache-2.0 */
/* The bound on the slowdown that the policy bayes keeps with pairs of batch size and power limit. */
#include <math.h>

#include "decider_life.h"

#include "policy/bayes_choice.h"
#include "policy/pair_bound.h"

/* ---- the bound itself ---- */

enum { SIZES = 4, BASE = 1 };

/* A batch size takes 100, 105 or 120 s an epoch at 200, 150 or 100 W, times `slower`. */
static void fill_points(double slower, struct fly_power_point *points)
{
    points[0] = (struct fly_power_point){100, 90, 120 * slower};
    points[1] = (struct fly_power_point){150, 120, 105 * slower};
    points[2] = (struct fly_power_point){200, 190, 100 * slower};
}

struct scene {
    struct arena arena;
    struct fly_objective objective;
    struct job_spec spec;
    struct batch_choice batches[SIZES];
    struct fly_power_point points[SIZES][LIMITS];
    struct belief belief;
    struct pair_bound bound;
};

static void set_scene(struct scene *scene, double max_slowdown)
{
    static const uint32_t sizes[SIZES] = {16, 32, 64, 128};

    *scene = (struct scene){.objective = {FLY_OBJECTIVE_ENERGY, 1.0, max_slowdown}};
    for (size_t i = 0; i < SIZES; i++)
        scene->batches[i] = (struct batch_choice){sizes[i], limits_w, LIMITS};
    scene->spec = (struct job_spec){.name = "job",
                                    .batches = scene->batches,
                                    .batch_count = SIZES,
                                    .default_batch = BASE,
                                    .max_epochs = 50,
                                    .max_power_w = 200,
                                    .eta = 1.0,
                                    .objective = &scene->objective};
    arena_init(&scene->arena, 1 << 20);
    assert_true(belief_init(&scene->belief, &belief_prior_default, sizes, SIZES, BASE, &scene->arena));
    assert_true(pair_bound_init(&scene->bound, &scene->spec, &scene->arena));
}

static void take_profile(struct scene *scene, size_t batch, double slower, double units, uint64_t running)
{
    const struct profile_measured measured = {.batch = batch,
                                              .points = scene->points[batch],
                                              .count = LIMITS,
                                              .units_per_epoch = units,
                                              .best = LIMITS - 1};

    fill_points(slower / (units > 0.0 ? units : 1.0), scene->points[batch]);
    pair_bound_take_profile(&scene->bound, &measured, running);
    belief_take_cost(&scene->belief, batch, pair_bound_least_cost(&scene->bound, &measured), true);
    belief_fit_cost(&scene->belief);
}

static void take_end(struct scene *scene, size_t batch, enum trial_outcome outcome, double epochs,
                     double epoch_s)
{
    pair_bound_take_ended(&scene->bound, &(struct fly_trial){.batch = batch,
                                                             .limit_w = 200,
                                                             .outcome = outcome,
                                                             .epochs = epochs,
                                                             .energy_j = 1.0,
                                                             .time_s = epochs * epoch_s});
    if (outcome == TRIAL_REACHED)
        belief_take_reached(&scene->belief, batch, epochs);
    belief_fit_epochs(&scene->belief);
}

/* The batch size is profiled, and reaches its target so often, in as many epochs. */
static void know(struct scene *scene, size_t batch, double slower, uint32_t runs, double epochs)
{
    take_profile(scene, batch, slower, 1.0, 1);
    take_end(scene, batch, TRIAL_CRASHED, 0.0, 1.0); /* the trial that profiled */
    for (uint32_t i = 0; i < runs; i++)
        take_end(scene, batch, TRIAL_REACHED, epochs, 100 * slower);
}

static struct pair pair_at(const struct scene *scene, size_t batch)
{
    return pair_bound_of(&scene->bound, &scene->belief, batch, NULL);
}

/* Nothing is held against a default that has not reached its target; the default keeps the bound for certain.
 */
static void test_default(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, 1.06);
    know(&scene, 2, 3.0, 2, 10);
    assert_false(pair_at(&scene, 2).held);
    assert_true(pair_at(&scene, 2).keeps);
    know(&scene, BASE, 1.0, 1, 10);
    assert_false(pair_at(&scene, BASE).held);
    assert_true(pair_at(&scene, BASE).keeps);
    assert_true(pair_at(&scene, 2).held);
    assert_false(pair_at(&scene, 2).keeps);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* The limit is the least that the epochs surely allow: what few runs leave open, more runs give away. */
static void test_limits(void **state)
{
    static const struct {
        double slower; /* an epoch, times that of the default */
        uint32_t runs;
        bool keeps;
        size_t point;
    } rows[] = {
        {0.95, 40, true, 1},  /* 0.9975 of the default's time at 150 W */
        {0.85, 40, true, 0},  /* 1.02 at 100 W */
        {0.85, 2, true, 1},   /* likewise, but from two runs only the faster ones are sure enough */
        {1.02, 6, false, 2},  /* within 1.03, but not surely */
        {1.20, 40, false, 2}, /* beyond */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct scene scene;
        struct pair pair;

        set_scene(&scene, 1.03);
        know(&scene, BASE, 1.0, rows[i].runs, 10);
        know(&scene, 2, rows[i].slower, rows[i].runs, 10);
        pair = pair_at(&scene, 2);
        if (pair.keeps != rows[i].keeps || pair.point != rows[i].point)
            fail_msg("row %zu: keeps %d at point %zu, over %g with %g", i, pair.keeps, pair.point,
                     pair.log_over, sqrt(pair.variance));
        belief_deinit(&scene.belief);
        arena_deinit(&scene.arena);
    }
}

/* Fewer epochs make up for slower ones. */
static void test_epochs(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, 1.03);
    know(&scene, BASE, 1.0, 40, 20);
    know(&scene, 2, 1.2, 40, 20);
    know(&scene, 3, 1.2, 40, 16);
    assert_false(pair_at(&scene, 2).keeps);
    assert_true(pair_at(&scene, 3).keeps);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* What may still turn out to keep the bound has a chance, the better the more trials; what cannot has none.
 */
static void test_chances(void **state)
{
    struct scene scene;
    struct pair near, far, kept;
    double one, eight;

    (void)state;
    set_scene(&scene, 1.03);
    know(&scene, BASE, 1.0, 20, 10);
    know(&scene, 0, 2.0, 4, 10);
    know(&scene, 2, 1.02, 1, 10);
    know(&scene, 3, 0.6, 10, 10);
    near = pair_at(&scene, 2);
    far = pair_at(&scene, 0);
    kept = pair_at(&scene, 3);
    one = pair_chance(&near, &scene.belief, 2, BASE, 1);
    eight = pair_chance(&near, &scene.belief, 2, BASE, 8);
    assert_false(near.keeps);
    assert_true(one > 0.0 && one < eight && eight < 1.0);
    check_double(pair_chance(&far, &scene.belief, 0, BASE, 8), 0.0);
    check_double(pair_chance(&kept, &scene.belief, 3, BASE, 1), 1.0);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* A batch size that takes less energy and too much time is not run again and again for what it saves. */
static void test_saves_beyond_the_bound(void **state)
{
    static const bool cannot_run[SIZES] = {false, false, true, true};
    static struct choice_room room;
    struct pair pairs[SIZES];
    struct choice_question question = {
        .cannot_run = cannot_run, .prospect.horizon = 30, .default_batch = BASE};
    struct trial_worth worth;
    struct choice choice;
    struct scene scene;

    (void)state;
    set_scene(&scene, 1.03);
    know(&scene, BASE, 1.0, 8, 20);
    know(&scene, 0, 1.4, 8, 20);
    for (size_t i = 0; i < LIMITS; i++)
        scene.points[0][i].power_w *= 0.4;
    belief_take_cost(&scene.belief, 0, 100.0 * 1.4 * 0.4 * 100.0, true);
    belief_fit_cost(&scene.belief);
    scene.belief.arms[BASE].tried = scene.belief.arms[0].tried = true;
    question.belief = &scene.belief;
    question.pairs = pair_bound_open(&scene.bound, &scene.belief, NULL, pairs);
    choice = choice_open(&question, &room);
    worth = choice_worth(&choice, 0);
    assert_false(pairs[0].keeps);
    assert_int_equal(choice.best, BASE);
    assert_true(worth.expected_cost < choice.best_cost);
    assert_true(worth.net <= 0.0);
    assert_int_equal(choice_most_worth(&choice), BASE);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* Expected time counts tries that did all their epochs in vain, and not those that were stopped. */
static void test_tries_in_vain(void **state)
{
    struct scene scene;
    double before;

    (void)state;
    set_scene(&scene, 1.03);
    know(&scene, BASE, 1.0, 20, 10);
    know(&scene, 2, 1.0, 4, 10);
    before = pair_at(&scene, 2).log_over;
    take_end(&scene, 2, TRIAL_STOPPED, 20, 100);
    check_double(pair_at(&scene, 2).log_over, before);
    take_end(&scene, 2, TRIAL_NOT_REACHED, 50, 100);
    check_close(pair_at(&scene, 2).log_over, before + log((40.0 + 50.0) / 40.0), 1e-9);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* The level of whole trials counts, not what a trial took that profiled; units come from it if need be. */
static void test_levels(void **state)
{
    static const double units[] = {1.0, 7.0, 0.0};

    (void)state;
    for (size_t i = 0; i < COUNT(units); i++) {
        struct scene scene;
        double before;

        set_scene(&scene, 1.03);
        know(&scene, BASE, 1.0, 20, 10);
        take_profile(&scene, 2, 1.1, units[i], 1);
        take_end(&scene, 2, TRIAL_REACHED, 10, 900); /* it profiled */
        take_end(&scene, 2, TRIAL_REACHED, 10, 110);
        before = pair_at(&scene, 2).log_over;
        take_end(&scene, 2, TRIAL_REACHED, 10, 121); /* an epoch takes 115.5 s in the mean */
        know(&scene, 3, 1.155, 3, 10);
        assert_true(pair_at(&scene, 2).log_over > before);
        check_close(exp(pair_at(&scene, 2).log_over - pair_at(&scene, 3).log_over), 1.0, 0.02);
        belief_deinit(&scene.belief);
        arena_deinit(&scene.arena);
    }
}

/* Without a profile there is a guess: the default's profile, slower as the cost of an epoch is believed to
 * be. */
static void test_guess(void **state)
{
    struct scene scene;
    struct pair guessed, measured;
    struct fly_power_point points[LIMITS];
    const struct profile_measured profile = {
        .batch = 2, .points = points, .count = LIMITS, .units_per_epoch = 1.0};

    (void)state;
    set_scene(&scene, 1.03);
    know(&scene, BASE, 1.0, 20, 10);
    guessed = pair_at(&scene, 2);
    assert_true(guessed.held && !guessed.has_point && guessed.resolved > 0.0);
    fill_points(0.5, points);
    measured = pair_bound_of(&scene.bound, &scene.belief, 2, &profile);
    assert_true(measured.has_point && measured.resolved == 0.0);
    assert_true(measured.variance < guessed.variance);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* Where limits cannot be set there are no profiles: what runs took is held against what the default's took.
 */
static void test_no_limits(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, 1.1);
    for (uint32_t i = 0; i < 30; i++) {
        take_end(&scene, BASE, TRIAL_REACHED, 20, 100);
        take_end(&scene, 2, TRIAL_REACHED, 20, 104);
        take_end(&scene, 3, TRIAL_REACHED, 20, 120);
    }
    assert_true(pair_at(&scene, 2).held && pair_at(&scene, 2).keeps);
    assert_false(pair_at(&scene, 3).keeps);
    assert_false(pair_at(&scene, 2).has_point);
    check_close(pair_at(&scene, 3).log_over, log(1.2 / 1.1), 0.01);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* ---- the policy ---- */

/* Runs recurrences of a world in which each batch size always needs as many epochs; gives the last pair. */
static void settle(const struct job_spec *job, const double *epochs, const double *slower, size_t recurrences,
                   size_t *out_batch, double *out_limit_w)
{
    struct life life;

    begin(&life, job, &batch_policy_bayes);
    for (size_t recurrence = 0; recurrence < recurrences; recurrence++) {
        bool reached = false;

        tell(&life, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
        for (uint32_t number = 0; !reached; number++) {
            struct fly_power_point points[LIMITS];
            struct proposal proposal;
            size_t point = 0;
            uint32_t most;

            assert_int_equal(decider_propose(&life.decider, recurrence, number, &proposal, NULL), 0);
            tell(&life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
            fill_points(slower[proposal.batch], points);
            if (decider_wants_profile(&life.decider, &proposal))
                tell(&life, &(struct event){.kind = EVENT_PROFILE_MEASURED,
                                            .measured = &(struct profile_measured){.batch = proposal.batch,
                                                                                   .points = points,
                                                                                   .count = LIMITS,
                                                                                   .units_per_epoch = 1.0}});
            *out_batch = proposal.batch;
            *out_limit_w = decider_limit_w(&life.decider, &proposal);
            while (points[point].limit_w != *out_limit_w)
                point++;
            assert_int_equal(decider_epoch_cap(&life.decider, proposal.batch,
                                               points[point].time_s * points[point].power_w,
                                               points[point].time_s, &most, NULL),
                             0);
            reached = epochs[proposal.batch] <= (double)most;
            tell(&life, &(struct event){
                            .kind = EVENT_TRIAL_ENDED,
                            .ended = &(struct fly_trial){
                                .trial = life.decider.trials - 1,
                                .recurrence = recurrence,
                                .batch = proposal.batch,
                                .limit_w = *out_limit_w,
                                .outcome = reached ? TRIAL_REACHED : TRIAL_NOT_REACHED,
                                .epochs = reached ? epochs[proposal.batch] : most,
                                .energy_j = 1e4,
                                .time_s = (reached ? epochs[proposal.batch] : most) * points[point].time_s}});
        }
    }
    assert_true(decider_keeps_bound(&life.decider, *out_batch));
    finish(&life);
}

/* The default runs first and to its end, whatever is known of others, unless it has failed; a retry is safe
 * all the same. */
static void test_reference(void **state)
{
    struct fly_trial ended = {
        .batch = 2, .limit_w = 200, .outcome = TRIAL_REACHED, .epochs = 10, .energy_j = 1e5, .time_s = 1000};
    struct proposal proposal;
    struct scene scene;
    struct life life;
    uint32_t most;

    (void)state;
    set_scene(&scene, 1.03);
    begin(&life, &scene.spec, &batch_policy_bayes);
    for (uint32_t i = 0; i < 10; i++)
        tell(&life, &(struct event){.kind = EVENT_TRIAL_SEEN, .ended = &ended});
    assert_int_equal(decider_propose(&life.decider, 0, 1, &proposal, NULL), 0);
    assert_int_equal(proposal.batch, 2);
    assert_int_equal(decider_propose(&life.decider, 0, 0, &proposal, NULL), 0);
    assert_int_equal(proposal.batch, BASE);
    tell(&life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
    /* However dear an epoch of it is: nothing can be held against a default that was stopped. */
    assert_int_equal(decider_epoch_cap(&life.decider, BASE, 1e6, 1000, &most, NULL), 0);
    assert_int_equal(most, 50);
    assert_int_equal(decider_propose(&life.decider, 1, 0, &proposal, NULL), 0);
    assert_int_not_equal(proposal.batch, BASE);
    ended.batch = BASE;
    ended.outcome = TRIAL_NOT_REACHED;
    ended.epochs = 50;
    tell(&life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
    assert_int_equal(decider_propose(&life.decider, 1, 0, &proposal, NULL), 0);
    assert_int_not_equal(proposal.batch, BASE);
    finish(&life);
    belief_deinit(&scene.belief);
    arena_deinit(&scene.arena);
}

/* The bound is one over batch size and limit: a faster batch size leaves room for a lower limit. */
static void test_settles(void **state)
{
    static const double epochs[SIZES] = {20, 20, 20, 40}, slower[SIZES] = {1.5, 1.0, 0.82, 0.8};
    static const struct {
        double max_slowdown;
        size_t batch;
        double limit_w;
    } rows[] = {{1.0, 2, 100}, {1.03, 2, 100}, {1.3, 2, 100}};
    static const struct {
        double max_slowdown;
        double limit_w;
    } alone[] = {{1.0, 200}, {1.04, 200}, {1.06, 150}, {1.25, 100}};
    static const double slow[SIZES] = {1.5, 1.0, 1.5, 1.5};
    struct scene scene;
    double limit_w;
    size_t batch;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        set_scene(&scene, rows[i].max_slowdown);
        settle(&scene.spec, epochs, slower, 40, &batch, &limit_w);
        assert_int_equal(batch, rows[i].batch);
        check_double(limit_w, rows[i].limit_w);
        belief_deinit(&scene.belief);
        arena_deinit(&scene.arena);
    }
    for (size_t i = 0; i < COUNT(alone); i++) {
        set_scene(&scene, alone[i].max_slowdown);
        settle(&scene.spec, epochs, slow, 40, &batch, &limit_w);
        assert_int_equal(batch, BASE);
        check_double(limit_w, alone[i].limit_w);
        belief_deinit(&scene.belief);
        arena_deinit(&scene.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_chances),
        cmocka_unit_test(test_tries_in_vain),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_no_limits),
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_settles),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_saves_beyond_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
