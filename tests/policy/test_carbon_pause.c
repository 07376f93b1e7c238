/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses against every way to make them, and the published rule. */
#include "carbon_fixture.h"

#include <stdlib.h>

#include "policy/carbon/carbon_pause.h"
#include "policy/carbon/carbon_rule.h"

/* All patterns of running and pausing that keep the least times, each solved exactly. */
static double best_of_all_patterns(const struct carbon_problem *problem, const struct carbon_pause *pause)
{
    double best = INFINITY;
    struct carbon_workspace workspace;
    size_t n = problem->span_count;

    assert_int_equal(carbon_workspace_init(&workspace, n, NULL), 0);
    for (unsigned mask = 1; mask < 1u << n; mask++) {
        struct carbon_span spans[16];
        double fixed[16], cost = 0.0, run_s = 0.0;
        bool allowed = true, on = true;
        size_t count = 0;
        struct carbon_solution solution;
        struct carbon_problem rates = {.profile = problem->profile,
                                       .spans = spans,
                                       .fixed = fixed,
                                       .work_s = problem->work_s,
                                       .idle_w = NAN};

        run_s = INFINITY; /* what it did before has lasted long enough */
        for (size_t i = 0; i < n; i++) {
            const struct carbon_span *span = &problem->spans[i];
            bool now = (mask >> i & 1u) != 0;
            double lost_s = 0.0;

            if (now != on) {
                allowed = allowed && run_s >= (on ? pause->least_on_s : pause->least_off_s);
                lost_s = now ? pause->checkpoint_s : 0.0;
                run_s = 0.0;
            }
            run_s += span->duration_s;
            on = now;
            if (!now) {
                cost += span->weight * problem->idle_w * span->duration_s / 3.6e6;
                continue;
            }
            cost +=
                span->weight * problem->profile->points[problem->profile->fastest].power_w * lost_s / 3.6e6;
            fixed[count] = cost;
            spans[count++] = (struct carbon_span){span->duration_s - lost_s, span->weight};
        }
        rates.span_count = count;
        if (allowed && carbon_solve(&workspace, &rates, &solution, NULL) == 0)
            best = fmin(best, solution.cost);
    }
    carbon_workspace_deinit(&workspace);
    return best;
}

static void test_pauses_against_all_patterns(void **state)
{
    enum { SPANS = 10, ROUNDS = 40 };
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    struct carbon_workspace workspace;
    struct carbon_pauser pauser;
    uint64_t seed = 23;
    double worst = 0.0;
    int same = 0, paused = 0;

    (void)state;
    assert_int_equal(carbon_workspace_init(&workspace, SPANS, NULL), 0);
    assert_int_equal(carbon_pauser_init(&pauser, SPANS, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct carbon_span spans[SPANS];
        struct carbon_problem problem = {
            .profile = &profile, .spans = spans, .span_count = SPANS, .idle_w = 30 * test_uniform(&seed)};
        const struct carbon_pause pause = {.allowed = true,
                                           .checkpoint_s = 300 * test_uniform(&seed),
                                           .least_on_s = 3600 * (double)test_below(&seed, 3),
                                           .least_off_s = 3600 * (double)test_below(&seed, 3)};
        const struct carbon_pause_now now = {.paused = false, .held_s = INFINITY};
        double best;

        for (int i = 0; i < SPANS; i++)
            spans[i] = (struct carbon_span){3600, 50 + 500 * test_uniform(&seed)};
        problem.work_s = 3600 * SPANS * (0.3 + 0.6 * test_uniform(&seed));
        assert_int_equal(carbon_pause_solve(&pauser, &workspace, &problem, &pause, &now, NULL), 0);
        best = best_of_all_patterns(&problem, &pause);
        if (pauser.best.cost < best * (1 - 1e-9))
            fail_msg("round %d: %.12g is below the best of all, %.12g", round, pauser.best.cost, best);
        if (pauser.least_cost > best * (1 + 1e-9))
            fail_msg("round %d: the bound %.12g is above the best of all, %.12g", round, pauser.least_cost,
                     best);
        worst = fmax(worst, pauser.best.cost / best - 1.0);
        same += pauser.best.cost <= best * (1 + 1e-9);
        for (int i = 0; i < SPANS; i++)
            paused += !pauser.best.on[i];
    }
    print_message("# pauses: %d of %d optimal, at worst %.2f %% above\n", same, ROUNDS, 100 * worst);
    assert_true(paused > ROUNDS);
    assert_true(same > ROUNDS / 2);
    assert_true(worst < 0.1);
    carbon_pauser_deinit(&pauser);
    carbon_workspace_deinit(&workspace);
}

static void test_published_rule(void **state)
{
    struct carbon_profile profile = profile_of(a40, COUNT(a40), 0.0, 1.0);
    double last_w = 0.0;

    (void)state;
    check_double(carbon_rule_original.eta, 0.24);
    check_double(carbon_rule_original.max_carbon, 750);
    check_double(carbon_rule_original.max_power_w, 300);
    /* By hand: (0.24 * 259.2 * 600 + 0.76 * 225000) / 1 = 208324.8; at 250 W 35251.2 and 171000 at 24.01
     * / 24.16: 207532; at 225 W 32256 and 171000 at 24.01 / 24.55: 207828. */
    check_double(profile.points[carbon_rule_choose(&carbon_rule_original, &profile, 600)].limit_w, 250);
    /* The dirtier the lower, and never below the limit of least energy. */
    for (double intensity = 1e6; intensity > 0.1; intensity /= 1.5) {
        double limit_w =
            profile.points[carbon_rule_choose(&carbon_rule_original, &profile, intensity)].limit_w;

        assert_true(limit_w >= last_w);
        assert_true(limit_w >= 175);
        last_w = limit_w;
    }
    check_double(last_w, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_against_all_patterns),
        cmocka_unit_test(test_published_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
