/* SPDX-License-Identifier: Apache-2.0 */
/* Cost, objectives, selectors, frontier and conversions: golden values and properties. */
#include "test.h"

#include <flyball/flyball.h>

#include "model/units.h"

static void test_cost(void **state)
{
    static const struct {
        double eta, max_power_w, energy_j, time_s, cost_j;
    } rows[] = {
        {0.0, 250.0, 1000.0, 8.0, 2000.0},
        {1.0, 250.0, 1000.0, 8.0, 1000.0},
        {0.5, 250.0, 1000.0, 8.0, 1500.0},
        {0.25, 300.0, 400.0, 2.0, 550.0},
        {0.5, 250.0, 0.0, 0.0, 0.0},
        /* A recorded run: v100, cifar100, batch 1024 at 175 W, first try. */
        {0.5, 250.0, 79354.0693298096, 575.3380952380953, 111594.29656966671},
    };
    uint64_t random = 5;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_close(fly_cost(rows[i].eta, rows[i].max_power_w, rows[i].energy_j, rows[i].time_s),
                    rows[i].cost_j, 1e-15);
    for (int i = 0; i < 2000; i++) {
        double eta = test_uniform(&random), power_w = 1.0 + 400.0 * test_uniform(&random);
        double energy_j = 1e6 * test_uniform(&random), time_s = 1e4 * test_uniform(&random);
        double cost_j = fly_cost(eta, power_w, energy_j, time_s);

        assert_true(fly_cost(eta, power_w, energy_j * 1.1, time_s) >= cost_j);
        assert_true(fly_cost(eta, power_w, energy_j, time_s * 1.1) >= cost_j);
        /* kJ and ks instead of J and s: the same cost in kJ. */
        check_close(fly_cost(eta, power_w, energy_j / 1e3, time_s / 1e3) * 1e3, cost_j, 1e-14);
        /* Between the two ends of the knob. */
        assert_true(cost_j <= fmax(energy_j, power_w * time_s) * (1 + 1e-15));
        assert_true(cost_j >= fmin(energy_j, power_w * time_s) * (1 - 1e-15));
    }
}

static void test_pareto_golden(void **state)
{
    struct fly_operating_point points[] = {
        {32, 250, 10, 90}, {64, 250, 8, 120}, {64, 100, 20, 60}, {128, 250, 8, 110},
        {16, 150, 20, 60}, {16, 100, 25, 60}, {8, 200, 11, 91},
    };
    static const struct fly_operating_point frontier[] = {
        {128, 250, 8, 110}, {32, 250, 10, 90}, {64, 100, 20, 60}};
    size_t count = fly_pareto_frontier(points, COUNT(points));

    (void)state;
    assert_int_equal(count, COUNT(frontier));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(points[i].batch_size, frontier[i].batch_size);
        check_double(points[i].power_limit_w, frontier[i].power_limit_w);
    }
    assert_int_equal(fly_pareto_frontier(points, 0), 0);
    assert_null(fly_pareto_best(points, 0, 0.5, 250.0));
    assert_int_equal(fly_pareto_best(points, count, 0.0, 250.0)->batch_size, 128);
    assert_int_equal(fly_pareto_best(points, count, 1.0, 250.0)->batch_size, 64);
}

static bool dominates(const struct fly_operating_point *a, const struct fly_operating_point *b)
{
    return a->time_s <= b->time_s && a->energy_j <= b->energy_j &&
           (a->time_s < b->time_s || a->energy_j < b->energy_j);
}

static void test_pareto_properties(void **state)
{
    enum { MOST = 40 };
    uint64_t random = 11;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct fly_operating_point points[MOST], before[MOST];
        size_t count = 1 + test_below(&random, MOST - 1), length;

        for (size_t i = 0; i < count; i++)
            before[i] = points[i] =
                (struct fly_operating_point){1 + test_below(&random, 8), 100.0 + 25 * test_below(&random, 4),
                                             1.0 + test_below(&random, 12), 1.0 + test_below(&random, 12)};
        length = fly_pareto_frontier(points, count);
        assert_true(length >= 1);
        for (size_t i = 1; i < length; i++)
            assert_true(points[i].time_s > points[i - 1].time_s &&
                        points[i].energy_j < points[i - 1].energy_j);
        /* Nothing dominates the frontier, and the frontier covers everything. */
        for (size_t i = 0; i < count; i++) {
            bool covered = false;

            for (size_t j = 0; j < length; j++) {
                assert_false(dominates(&before[i], &points[j]));
                covered |= points[j].time_s <= before[i].time_s && points[j].energy_j <= before[i].energy_j;
            }
            assert_true(covered);
        }
        /* The best of the frontier is the best of all, for every eta. */
        for (double eta = 0.0; eta <= 1.0; eta += 0.125) {
            const struct fly_operating_point *best = fly_pareto_best(points, length, eta, 10.0);
            double cost_j = fly_cost(eta, 10.0, best->energy_j, best->time_s);

            for (size_t i = 0; i < count; i++)
                assert_true(fly_cost(eta, 10.0, before[i].energy_j, before[i].time_s) >= cost_j);
        }
    }
}

static void test_choice_golden(void **state)
{
    static const struct fly_operating_point points[] = {
        {128, 250, 8, 110}, {32, 250, 10, 90}, {64, 100, 20, 60},  {64, 150, 20, 60},
        {16, 100, 20, 60},  {8, 75, 30, 80},   {256, 250, 8, 120},
    };
    static const struct {
        struct fly_objective objective;
        uint32_t batch_size;
        double limit_w;
    } rows[] = {
        {{FLY_OBJECTIVE_TIME, 0.0, INFINITY}, 128, 250},  /* less energy in the same time */
        {{FLY_OBJECTIVE_ENERGY, 0.0, INFINITY}, 16, 100}, /* ties: the lower limit, then the smaller batch */
        {{FLY_OBJECTIVE_ENERGY, 0.0, 1.25}, 32, 250},
        {{FLY_OBJECTIVE_ENERGY, 0.0, 1.0}, 128, 250},
        {{FLY_OBJECTIVE_COST, 1.0, INFINITY}, 16, 100},
        {{FLY_OBJECTIVE_COST, 0.0, INFINITY}, 128, 250},
        {{FLY_OBJECTIVE_COST, 0.5, INFINITY}, 16, 100},
        {{FLY_OBJECTIVE_COST, 0.5, 1.25}, 32, 250},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, INFINITY}, 8, 75},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 2.5}, 16, 100},
        {{FLY_OBJECTIVE_CARBON, 0.0, 1.25}, 32, 250},
        {{FLY_OBJECTIVE_MONEY, 0.0, INFINITY}, 16, 100}, /* as energy */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t index;
        struct fly_error error;

        if (fly_pareto_choose(points, COUNT(points), &rows[i].objective, 1.0, 8.0, &index, &error) < 0)
            fail_msg("row %zu: %s", i, error.text);
        if (points[index].batch_size != rows[i].batch_size)
            fail_msg("row %zu: batch size %u, expected %u", i, points[index].batch_size, rows[i].batch_size);
        check_double(points[index].power_limit_w, rows[i].limit_w);
    }
}

static double score_of_kind(const struct fly_operating_point *point, const struct fly_objective *objective)
{
    const double scores[] = {point->energy_j, point->time_s,
                             fly_cost(objective->eta, 10.0, point->energy_j, point->time_s),
                             point->power_limit_w};

    return scores[objective->kind];
}

static void test_choice_properties(void **state)
{
    enum { MOST = 30 };
    uint64_t random = 29;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct fly_operating_point points[MOST], frontier[MOST];
        struct fly_objective objective = {.kind = (enum fly_objective_kind)(round % 4),
                                          .eta = 0.25 * test_below(&random, 5),
                                          .max_slowdown = round % 5 ? 1.0 + test_uniform(&random) : INFINITY};
        size_t count = 1 + test_below(&random, MOST - 1), chosen, again, length;
        double reference_s = 1.0 + test_below(&random, 12), allowed_s;
        bool on_frontier = false;

        for (size_t i = 0; i < count; i++)
            frontier[i] = points[i] = (struct fly_operating_point){
                1 + (uint32_t)i, 100.0 + 25 * test_below(&random, 4),
                i == 0 ? reference_s : 1.0 + test_below(&random, 12), 1.0 + test_below(&random, 12)};
        allowed_s = objective.max_slowdown * reference_s;
        /* The reference itself keeps the bound, so there is a choice. */
        assert_int_equal(fly_pareto_choose(points, count, &objective, 10.0, reference_s, &chosen, NULL), 0);
        assert_true(points[chosen].time_s <= allowed_s);
        for (size_t i = 0; i < count; i++)
            assert_true(points[i].time_s > allowed_s ||
                        score_of_kind(&points[i], &objective) >= score_of_kind(&points[chosen], &objective));
        /* A wider bound is never worse. */
        objective.max_slowdown *= 1.5;
        assert_int_equal(fly_pareto_choose(points, count, &objective, 10.0, reference_s, &again, NULL), 0);
        assert_true(score_of_kind(&points[again], &objective) <= score_of_kind(&points[chosen], &objective));
        objective.max_slowdown /= 1.5;
        /* The choice among the frontier alone is the same point, whatever the order. */
        length = fly_pareto_frontier(frontier, count);
        for (size_t i = 0; i < length; i++)
            on_frontier |= frontier[i].batch_size == points[chosen].batch_size;
        assert_true(on_frontier || objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT);
        assert_int_equal(fly_pareto_choose(frontier, count, &objective, 10.0, reference_s, &again, NULL), 0);
        assert_int_equal(frontier[again].batch_size, points[chosen].batch_size);
        /* Without a bound, the best of the frontier is the choice for a cost. */
        if (objective.kind == FLY_OBJECTIVE_COST && isinf(objective.max_slowdown))
            assert_int_equal(fly_pareto_best(frontier, length, objective.eta, 10.0)->batch_size,
                             points[chosen].batch_size);
    }
}

static void test_choice_refuses(void **state)
{
    static const struct fly_operating_point points[] = {{128, 250, 8, 110}, {32, 250, 10, 90}};
    static const struct fly_operating_point unknown[] = {{128, 250, 8, 110}, {32, 250, INFINITY, 90}};
    static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
    static const struct fly_objective bounded = {FLY_OBJECTIVE_ENERGY, 0.0, 1.5};
    static const struct fly_objective bad = {FLY_OBJECTIVE_COST, 1.5, INFINITY};
    size_t index = 99;
    struct fly_error error;

    (void)state;
    assert_int_equal(fly_pareto_choose(points, 0, &energy, 1.0, 8.0, &index, &error), FLY_EUSAGE);
    assert_int_equal(fly_pareto_choose(points, 2, &bad, 1.0, 8.0, &index, &error), FLY_EUSAGE);
    assert_int_equal(fly_pareto_choose(unknown, 2, &energy, 1.0, 8.0, &index, &error), FLY_EUSAGE);
    check_contains(error.text, "point 1");
    assert_int_equal(fly_pareto_choose(points, 2, &bounded, 1.0, NAN, &index, &error), FLY_EUSAGE);
    assert_int_equal(fly_pareto_choose(points, 2, &bounded, 1.0, 5.0, &index, &error), FLY_EEXHAUSTED);
    check_contains(error.text, "the fastest takes 8 s");
    assert_int_equal(index, 99);
    /* Without a bound there need be no reference. */
    assert_int_equal(fly_pareto_choose(points, 2, &energy, 1.0, NAN, &index, &error), 0);
    assert_int_equal(index, 1);
}

static const struct fly_power_point profile[] = {
    {100, 96, 1.60}, {150, 140, 1.12}, {200, 180, 1.02}, {250, 215, 1.00}, {300, 216, 1.00},
};

static void test_selectors_golden(void **state)
{
    static const struct {
        struct fly_objective objective;
        double limit_w;
    } rows[] = {
        {{FLY_OBJECTIVE_ENERGY, 0.0, INFINITY}, 100},
        {{FLY_OBJECTIVE_TIME, 0.0, INFINITY}, 300}, /* a tie, so the higher limit */
        {{FLY_OBJECTIVE_COST, 0.5, INFINITY}, 200},
        {{FLY_OBJECTIVE_COST, 0.0, INFINITY}, 300},
        {{FLY_OBJECTIVE_COST, 1.0, INFINITY}, 100},
        {{FLY_OBJECTIVE_ENERGY, 0.0, 1.03}, 200},
        {{FLY_OBJECTIVE_ENERGY, 0.0, 1.12}, 150},
        {{FLY_OBJECTIVE_ENERGY, 0.0, 1.0}, 250},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 1.0}, 250},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 1.15}, 150},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, INFINITY}, 100},
        {{FLY_OBJECTIVE_CARBON, 0.0, 1.03}, 200},
        {{FLY_OBJECTIVE_MONEY, 0.0, 1.12}, 150},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t index;
        struct fly_error error;

        if (fly_power_select(profile, COUNT(profile), &rows[i].objective, 300.0, &index, &error) < 0)
            fail_msg("row %zu: %s", i, error.text);
        check_double(profile[index].limit_w, rows[i].limit_w);
    }
}

static void test_selector_properties(void **state)
{
    enum { MOST = 12 };
    uint64_t random = 23;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct fly_power_point points[MOST];
        struct fly_objective objective = {.kind = (enum fly_objective_kind)(round % 4),
                                          .eta = test_uniform(&random),
                                          .max_slowdown = round % 5 ? 1.0 + test_uniform(&random) : INFINITY};
        size_t count = 1 + test_below(&random, MOST), chosen, again, highest = 0;

        for (size_t i = 0; i < count; i++) {
            points[i] = (struct fly_power_point){
                100.0 + 10.0 * (double)i, 50.0 + 200.0 * test_uniform(&random), 1.0 + test_uniform(&random)};
            highest = i;
        }
        assert_int_equal(fly_power_select(points, count, &objective, 300.0, &chosen, NULL), 0);
        assert_true(points[chosen].time_s <= objective.max_slowdown * points[highest].time_s);
        /* Minutes instead of seconds change nothing. */
        for (size_t i = 0; i < count; i++)
            points[i].time_s /= 64.0;
        assert_int_equal(fly_power_select(points, count, &objective, 300.0, &again, NULL), 0);
        assert_int_equal(again, chosen);
        /* Nor does the order of the points. */
        for (size_t i = 0; i < count / 2; i++) {
            struct fly_power_point swapped = points[i];

            points[i] = points[count - 1 - i];
            points[count - 1 - i] = swapped;
        }
        assert_int_equal(fly_power_select(points, count, &objective, 300.0, &again, NULL), 0);
        assert_int_equal(count - 1 - again, chosen);
    }
}

static void test_selector_refuses(void **state)
{
    static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
    static const struct fly_objective bad[] = {
        {(enum fly_objective_kind)17, 0.0, INFINITY},
        {FLY_OBJECTIVE_COST, 1.5, INFINITY},
        {FLY_OBJECTIVE_COST, NAN, INFINITY},
        {FLY_OBJECTIVE_ENERGY, 0.0, 0.9},
        {FLY_OBJECTIVE_ENERGY, 0.0, NAN},
    };
    static const struct fly_power_point unknown[] = {{100, 96, 1.0}, {150, 0, 1.0}};
    size_t index = 99;
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(fly_power_select(profile, COUNT(profile), &bad[i], 300.0, &index, &error),
                         FLY_EUSAGE);
    assert_int_equal(fly_power_select(profile, 0, &energy, 300.0, &index, &error), FLY_EUSAGE);
    assert_int_equal(fly_power_select(unknown, 2, &energy, 300.0, &index, &error), FLY_EUSAGE);
    check_contains(error.text, "point 1");
    assert_int_equal(index, 99);
}

static void test_spellings(void **state)
{
    static const struct {
        const char *text;
        double factor; /* 0: refused */
    } slowdowns[] = {{"3%", 1.03}, {"0%", 1.0}, {"1.03x", 1.03}, {"1x", 1.0}, {"2.5%", 1.025}, {"3", 0},
                     {"", 0},      {"0.9x", 0}, {"-1%", 0},      {"x", 0},    {"%", 0},        {"3 %", 0},
                     {"nan%", 0},  {"infx", 0}, {"1e999x", 0},   {"1,03x", 0}};
    static const struct {
        const char *text;
        int code;
        enum fly_objective_kind kind;
        double eta;
    } objectives[] = {
        {"energy", 0, FLY_OBJECTIVE_ENERGY, 0.5},
        {"time", 0, FLY_OBJECTIVE_TIME, 0.5},
        {"cost", 0, FLY_OBJECTIVE_COST, 0.5},
        {"cost:0.25", 0, FLY_OBJECTIVE_COST, 0.25},
        {"cost:1", 0, FLY_OBJECTIVE_COST, 1.0},
        {"lowest-limit", 0, FLY_OBJECTIVE_LOWEST_LIMIT, 0.5},
        {"carbon", 0, FLY_OBJECTIVE_CARBON, 0.5},
        {"money", 0, FLY_OBJECTIVE_MONEY, 0.5},
        {"carbon:0.5", FLY_EUSAGE, 0, 0},
        {"cost:1.1", FLY_EUSAGE, 0, 0},
        {"cost:", FLY_EUSAGE, 0, 0},
        {"energy:0.5", FLY_EUSAGE, 0, 0},
        {"enrgy", FLY_EUSAGE, 0, 0},
        {"", FLY_EUSAGE, 0, 0},
    };
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(slowdowns); i++) {
        double factor = -1.0;
        int code = fly_slowdown_parse(slowdowns[i].text, &factor, &error);

        assert_int_equal(code, slowdowns[i].factor > 0.0 ? 0 : FLY_EUSAGE);
        check_close(factor, code == 0 ? slowdowns[i].factor : -1.0, 1e-15);
    }
    {
        double factor = 1.0;

        assert_int_equal(fly_slowdown_parse("none", &factor, &error), 0);
        assert_true(isinf(factor));
        check_double(fly_objective_usual_bound(FLY_OBJECTIVE_ENERGY), 1.05);
        assert_true(isinf(fly_objective_usual_bound(FLY_OBJECTIVE_COST)));
    }
    for (size_t i = 0; i < COUNT(objectives); i++) {
        struct fly_objective objective = {.eta = -1.0};

        assert_int_equal(fly_objective_parse(objectives[i].text, &objective, &error), objectives[i].code);
        if (objectives[i].code < 0) {
            check_double(objective.eta, -1.0);
            continue;
        }
        assert_int_equal(objective.kind, objectives[i].kind);
        check_double(objective.eta, objectives[i].eta);
        assert_true(isinf(objective.max_slowdown));
    }
    fly_objective_parse("enrgy", &(struct fly_objective){0}, &error);
    check_contains(error.text, "did you mean 'energy'");
}

static void test_units(void **state)
{
    (void)state;
    check_double(units_w_from_mw(250500), 250.5);
    check_double(units_j_from_mj(1), 0.001);
    assert_int_equal(units_mw_from_w(0.0005), 1);
    check_double(units_kwh_from_j(3.6e6), 1.0);
    check_double(units_j_from_kwh(0.5), 1.8e6);
    check_double(units_g_from_j(7.2e6, 400.0), 800.0);
    for (uint64_t limit_mw = 1; limit_mw < 1000000; limit_mw += 997)
        assert_int_equal(units_mw_from_w(units_w_from_mw(limit_mw)), limit_mw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_pareto_golden),
        cmocka_unit_test(test_pareto_properties),
        cmocka_unit_test(test_choice_golden),
        cmocka_unit_test(test_choice_properties),
        cmocka_unit_test(test_choice_refuses),
        cmocka_unit_test(test_selectors_golden),
        cmocka_unit_test(test_selector_properties),
        cmocka_unit_test(test_selector_refuses),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
