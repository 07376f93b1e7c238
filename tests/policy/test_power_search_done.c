/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "policy/power_search_done.h"

/* When no lower limit can win; points are (limit, power, time), binds, error. */
static void test_power_search_done(void **state)
{
    static const struct {
        struct fly_objective objective;
        struct power_search_point points[4];
        size_t count;
        bool stops;
    } rows[] = {
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY}, {{{300, 280, 1.0}, true, 0}}, 1, false},
        /* 280, 310 J: worse by 11 %, and both bind. */
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.55}, true, 0}},
         2,
         true},
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, false, 0}, {{200, 200, 1.55}, true, 0}},
         2,
         false},
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.55}, false, 0}},
         2,
         false},
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0.08}, {{200, 200, 1.55}, true, 0.08}},
         2,
         false},
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, NAN}, {{200, 200, 1.55}, true, 0}},
         2,
         false},
        /* By 7 %: it may be chance, which a second one is not. */
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.5}, true, 0}},
         2,
         false},
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.5}, true, 0}, {{175, 175, 1.73}, true, 0}},
         3,
         true},
        {{FLY_OBJECTIVE_ENERGY, 0, 1.1},
         {{{300, 280, 1.0}, true, 0}, {{200, 180, 1.17}, true, 0}, {{175, 160, 1.18}, true, 0}},
         3,
         true},
        /* By 4 %. */
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.456}, true, 0}},
         2,
         false},
        /* Worse than the best, but no longer rising. */
        {{FLY_OBJECTIVE_ENERGY, 0, INFINITY},
         {{{300, 200, 1.0}, true, 0}, {{250, 250, 1.0}, true, 0}, {{200, 200, 1.2}, true, 0}},
         3,
         false},
        {{FLY_OBJECTIVE_TIME, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.11}, true, 0}},
         2,
         true},
        {{FLY_OBJECTIVE_COST, 0.5, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 200, 1.55}, true, 0}},
         2,
         true},
        /* Beyond the bound, and clearly so. */
        {{FLY_OBJECTIVE_ENERGY, 0, 1.1}, {{{300, 280, 1.0}, true, 0}, {{200, 180, 1.22}, true, 0}}, 2, true},
        {{FLY_OBJECTIVE_ENERGY, 0, 1.1}, {{{300, 280, 1.0}, true, 0}, {{200, 180, 1.15}, true, 0}}, 2, false},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0, 1.1},
         {{{300, 280, 1.0}, true, 0}, {{200, 180, 1.22}, true, 0}},
         2,
         true},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0, INFINITY},
         {{{300, 280, 1.0}, true, 0}, {{200, 180, 9}, true, 0}},
         2,
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (power_search_done(rows[i].points, rows[i].count, &rows[i].objective, 300.0) != rows[i].stops)
            fail_msg("row %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_power_search_done)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
