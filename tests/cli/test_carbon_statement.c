/* SPDX-License-Identifier: Apache-2.0 */
/* What a run took and what it would have: hand-made ledgers. */
#include "statement_fixture.h"

/*
 * 1000 s at 250 W with 10 % more than the profile says, then 1000 s at 300 W: 909.09 + 1000 s at the
 * fastest. Hours are 100, 200 and 400 g/kWh; the run begins 800 s into the first.
 */
static void a_run_is_compared(void **state)
{
    struct statement_fixture fixture = {.statement.torn = false};
    const struct statement_figures *ways = fixture.statement.ways;
    double highest_s = 1000.0 / 1.1 + 1000.0, static_s = highest_s * 1.1;
    double first_j = 220e3 * (300.0 / 220.0), second_j = 330e3; /* at 300 W */

    (void)state;
    statement_begin(&fixture);
    statement_add_slice(&fixture, 0, 0, 1000, 220e3, 250.0);
    statement_add_slice(&fixture, 0, 1000, 1000, 330e3, 300.0);
    fixture.ledgers[0].head.max_slowdown = 1.1;
    statement_add_value(&fixture, CARBON_INTENSITY, statement_hours_s - STATEMENT_HOUR_S, statement_hours_s,
                        50.0);
    statement_add_value(&fixture, CARBON_INTENSITY, statement_hours_s, (int64_t)statement_start_s + 500,
                        100.0);
    statement_add_value(&fixture, CARBON_INTENSITY, (int64_t)statement_start_s + 500,
                        (int64_t)statement_start_s + 1500, 200.0);
    statement_add_value(&fixture, CARBON_INTENSITY, (int64_t)statement_start_s + 1500,
                        (int64_t)statement_start_s + 9999, 400.0);
    statement_make(&fixture);

    check_close(ways[STATEMENT_AS_RUN].time_s, 2000.0, 1e-12);
    check_close(ways[STATEMENT_AS_RUN].energy_j[STATEMENT_ALL], 550e3, 1e-12);
    check_close(ways[STATEMENT_AS_RUN].amount[0][STATEMENT_ALL],
                (110e3 * 100 + 110e3 * 200 + 165e3 * 200 + 165e3 * 400) / 3.6e6, 1e-12);
    check_double(ways[STATEMENT_HIGHEST].limit_w, 300.0);
    check_close(ways[STATEMENT_HIGHEST].time_s, highest_s, 1e-12);
    check_close(ways[STATEMENT_HIGHEST].end_s, statement_start_s + highest_s, 1e-15);
    check_close(ways[STATEMENT_HIGHEST].energy_j[STATEMENT_ALL], first_j + second_j, 1e-12);
    /* 330 W throughout: 500 s of 100, 1000 s of 200, the rest of 400. */
    check_close(ways[STATEMENT_HIGHEST].amount[0][STATEMENT_ALL],
                330.0 * (500 * 100 + 1000 * 200 + (highest_s - 1500) * 400) / 3.6e6, 1e-9);
    check_double(ways[STATEMENT_STATIC].limit_w, 250.0);
    check_close(ways[STATEMENT_STATIC].time_s, static_s, 1e-12);
    check_close(ways[STATEMENT_STATIC].amount[0][STATEMENT_ALL],
                220.0 * (500 * 100 + 1000 * 200 + (static_s - 1500) * 400) / 3.6e6, 1e-9);
    check_close(fixture.statement.measured_per_modelled, 1.1, 1e-12);
    check_close(fixture.statement.modelled_share, 1.0, 1e-12);
    check_close(fixture.statement.saved.amount[0],
                fixture.statement.by_limit.amount[0] + fixture.statement.by_grid.amount[0], 1e-9);
    assert_true(isnan(fixture.statement.saved.amount[1]));
    assert_int_equal(fixture.statement.changes, 1);
    assert_string_equal(fixture.statement.missing, "");
    assert_int_equal(fixture.statement.period_count, 3);
    check_close(fixture.statement.periods[1].limit_w, 275.0, 1e-12);
    check_double(fixture.statement.periods[1].first_limit_w, 250.0);
    check_double(fixture.statement.periods[1].last_limit_w, 300.0);
    check_close(fixture.statement.periods[1].amount[0], (110e3 + 165e3) * 200 / 3.6e6, 1e-12);
    statement_end(&fixture);
}

/* The site's share and the host's stand by themselves, and grow with the time. */
static void the_host_and_the_site_count(void **state)
{
    struct statement_fixture fixture = {.statement.torn = false};
    const struct statement_figures *ways = fixture.statement.ways;

    (void)state;
    statement_begin(&fixture);
    statement_add_slice(&fixture, 0, 0, 1100, 220e3, 250.0);
    fixture.slices[0][0].host_j = 11e3;
    fixture.ledgers[0].head.surroundings = (struct carbon_surroundings){0.0, 1.5};
    statement_add_value(&fixture, CARBON_INTENSITY, statement_hours_s,
                        statement_hours_s + 9 * STATEMENT_HOUR_S, 360.0);
    statement_add_value(&fixture, CARBON_PRICE, statement_hours_s, statement_hours_s + 9 * STATEMENT_HOUR_S,
                        -0.36);
    statement_make(&fixture);
    assert_int_equal(fixture.statement.host, STATEMENT_HOST_MEASURED);
    check_close(ways[0].energy_j[STATEMENT_HOST], 11e3, 1e-12);
    check_close(ways[0].energy_j[STATEMENT_PUE], 231e3 / 2, 1e-12);
    check_close(ways[0].energy_j[STATEMENT_ALL], 231e3 * 1.5, 1e-12);
    check_close(ways[0].amount[0][STATEMENT_PUE], 231e3 / 2 / 1e4, 1e-12);
    check_close(ways[0].amount[1][STATEMENT_ALL], -231e3 * 1.5 / 1e7, 1e-12);
    check_close(ways[STATEMENT_HIGHEST].energy_j[STATEMENT_HOST], 10e3, 1e-12);
    check_close(ways[STATEMENT_HIGHEST].energy_j[STATEMENT_ALL], 310e3 * 1.5, 1e-12);

    /* What is stated is in place of what was measured. */
    fixture.ledgers[0].head.surroundings = (struct carbon_surroundings){50.0, 1.0};
    statement_make(&fixture);
    assert_int_equal(fixture.statement.host, STATEMENT_HOST_STATED);
    check_close(ways[0].energy_j[STATEMENT_HOST], 55e3, 1e-12);
    check_close(ways[0].energy_j[STATEMENT_PUE], 0.0, 0.0);
    check_close(ways[STATEMENT_HIGHEST].energy_j[STATEMENT_HOST], 50e3, 1e-12);

    /* And what nobody knows is no part, and not 0. */
    fixture.ledgers[0].head.surroundings = (struct carbon_surroundings){0.0, 1.0};
    fixture.slices[0][0].host_j = NAN;
    statement_make(&fixture);
    assert_int_equal(fixture.statement.host, STATEMENT_HOST_LEFT_OUT);
    assert_true(isnan(ways[0].energy_j[STATEMENT_HOST]));
    check_close(ways[0].energy_j[STATEMENT_ALL], 220e3, 1e-12);
    statement_end(&fixture);
}

/* The bound decides which single limit is the best, and what is left of the work counts. */
static void the_single_limit_keeps_the_bound(void **state)
{
    static const struct {
        double max_slowdown;
        double finish_after_s; /* 0: no time to finish by */
        uint64_t steps;
        double limit_w;
    } cases[] = {
        {NAN, 0, 0, 300.0},     {1.09, 0, 0, 300.0},    {1.1, 0, 0, 250.0},       {1.25, 0, 0, 200.0},
        {NAN, 1249, 0, 250.0},  {NAN, 1251, 0, 200.0},  {1.25, 1101, 0, 250.0},   {NAN, 1251, 2000, 300.0},
        {NAN, 2210, 2000, 250}, {NAN, 2501, 2000, 200}, {NAN, 2501, 1000, 200.0}, {NAN, 1, 0, 300.0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct statement_fixture fixture;

        statement_begin(&fixture);
        statement_add_slice(&fixture, 0, 0, 1000, 300e3, 300.0);
        fixture.slices[0][0].steps = 1000.0;
        fixture.ledgers[0].head.max_slowdown = cases[i].max_slowdown;
        fixture.ledgers[0].head.finish_by_s =
            cases[i].finish_after_s > 0.0 ? (int64_t)(statement_start_s + cases[i].finish_after_s) : 0;
        fixture.ledgers[0].head.steps = cases[i].steps;
        statement_make(&fixture);
        if (fixture.statement.ways[STATEMENT_STATIC].limit_w != cases[i].limit_w)
            fail_msg("case %zu: %g W", i, fixture.statement.ways[STATEMENT_STATIC].limit_w);
        statement_end(&fixture);
    }
}

/* The highest limit is not always the fastest one. */
static void the_highest_limit_is_the_highest(void **state)
{
    struct statement_fixture fixture;

    (void)state;
    statement_begin(&fixture);
    fixture.points[2].time_s = 1.2; /* 300 W, beside 1.1 at 250 W */
    fixture.ledgers[0].head.max_slowdown = 1.0;
    statement_add_slice(&fixture, 0, 0, 1100, 220e3, 250.0);
    statement_make(&fixture);
    check_double(fixture.statement.ways[STATEMENT_HIGHEST].limit_w, 300.0);
    check_close(fixture.statement.ways[STATEMENT_HIGHEST].time_s, 1200.0, 1e-12);
    check_close(fixture.statement.ways[STATEMENT_HIGHEST].energy_j[STATEMENT_ALL], 360e3, 1e-12);
    check_double(fixture.statement.ways[STATEMENT_STATIC].limit_w, 250.0);
    statement_end(&fixture);
}

/* What is not known is said, and never 0. */
static void the_unknown_is_said(void **state)
{
    struct statement_fixture fixture = {.statement.torn = false};
    const struct statement_figures *ways = fixture.statement.ways;
    struct fly_error error = {.text = ""};
    int64_t from_s = 0, to_s = 0;

    (void)state;
    statement_begin(&fixture);
    assert_int_equal(carbon_statement_make(&fixture.request, &fixture.arena, &fixture.statement, &error),
                     FLY_EDATA);
    check_contains(error.text, "no energy yet");
    assert_false(carbon_statement_span(&fixture.request, &from_s, &to_s));

    statement_add_slice(&fixture, 0, 0, 100, 20e3, NAN);
    statement_make(&fixture);
    check_contains(fixture.statement.missing, "none of the energy");
    assert_false(ways[STATEMENT_HIGHEST].known);
    assert_true(isnan(ways[STATEMENT_HIGHEST].energy_j[STATEMENT_ALL]));
    assert_true(isnan(fixture.statement.saved.energy_j));
    assert_true(isnan(ways[0].amount[0][STATEMENT_ALL]));
    check_double(ways[0].share[0][GRID_UNKNOWN], 1.0);
    assert_int_equal(fixture.statement.period_count, 1);
    assert_true(fixture.statement.periods[0].start_s == (int64_t)statement_start_s);
    assert_true(fixture.statement.periods[0].end_s == (int64_t)statement_start_s + 100);
    assert_true(isnan(fixture.statement.periods[0].limit_w));

    fixture.ledgers[0].point_count = 0;
    statement_make(&fixture);
    check_contains(fixture.statement.missing, "no power profile");

    /* A slice whose energy is not known adds its time alone. */
    fixture.ledgers[0].point_count = 3;
    statement_add_slice(&fixture, 0, 100, 100, NAN, 250.0);
    statement_add_slice(&fixture, 0, 200, 110, 22e3, 250.0);
    statement_add_value(&fixture, CARBON_INTENSITY, (int64_t)statement_start_s + 150,
                        (int64_t)statement_start_s + 9999, 100.0);
    statement_make(&fixture);
    check_double(ways[0].unmeasured_s, 100.0);
    check_double(ways[0].energy_j[STATEMENT_ALL], 42e3);
    check_close(ways[0].share[0][GRID_UNKNOWN], 20.0 / 42.0, 1e-12);
    check_close(ways[0].share[0][GRID_MEASURED], 22.0 / 42.0, 1e-12);
    check_close(ways[0].amount[0][STATEMENT_ALL], 22e3 * 100 / 3.6e6, 1e-12);
    assert_true(isnan(fixture.statement.saved.amount[0]));
    check_close(fixture.statement.saved.energy_j, 8e3, 1e-9);
    check_close(fixture.statement.modelled_share, 22.0 / 42.0, 1e-12);
    assert_true(carbon_statement_span(&fixture.request, &from_s, &to_s));
    assert_true(from_s == (int64_t)statement_start_s && to_s == (int64_t)statement_start_s + 310);
    statement_end(&fixture);
}

/* Two ranks: energies add up, time does not; the profile of one speaks for both. */
static void ranks_add_up(void **state)
{
    struct statement_fixture fixture = {.statement.torn = false};
    const struct statement_figures *ways = fixture.statement.ways;

    (void)state;
    statement_begin(&fixture);
    fixture.request.ledger_count = 2;
    statement_add_slice(&fixture, 0, 0, 1100, 110e3, 250.0);
    fixture.slices[0][0].steps = 1000.0; /* rank 0 alone counts them */
    statement_add_slice(&fixture, 1, 5, 1105, 121e3, 250.0);
    statement_add_value(&fixture, CARBON_INTENSITY, statement_hours_s,
                        statement_hours_s + 9 * STATEMENT_HOUR_S, 360.0);
    statement_make(&fixture);
    check_close(ways[0].time_s, 1105.0, 1e-12);
    check_close(ways[0].energy_j[STATEMENT_ALL], 231e3, 1e-12);
    check_close(ways[STATEMENT_HIGHEST].energy_j[STATEMENT_ALL], 231e3 * 300 / 220, 1e-12);
    check_close(ways[STATEMENT_HIGHEST].time_s, 1105.0 / 1.1, 1e-12);
    check_close(fixture.statement.measured_per_modelled, 231e3 / (200.0 * (1100 + 1105) / 2), 1e-12);
    assert_int_equal(fixture.statement.gpus, 2);
    assert_int_equal(fixture.statement.period_count, 1);
    check_close(fixture.statement.periods[0].time_s, 1100.0, 1e-9);
    check_close(fixture.statement.periods[0].energy_j[STATEMENT_ALL], 231e3, 1e-12);
    statement_end(&fixture);
}

/* A machine without a clock of its own begins in 1970: what was used then has no figure. */
static void a_clock_that_was_not_set(void **state)
{
    struct statement_fixture fixture;
    int64_t from_s, to_s;

    (void)state;
    statement_begin(&fixture);
    statement_add_slice(&fixture, 0, 60 - statement_start_s, 100, 30e3, 300.0);
    statement_add_slice(&fixture, 0, 0, 300, 90e3, 300.0);
    statement_add_value(&fixture, CARBON_INTENSITY, statement_hours_s,
                        statement_hours_s + 9 * STATEMENT_HOUR_S, 360.0);
    assert_true(carbon_statement_span(&fixture.request, &from_s, &to_s));
    assert_true(from_s == (int64_t)statement_start_s);
    statement_make(&fixture);
    check_close(fixture.statement.ways[0].share[0][GRID_UNKNOWN], 0.25, 1e-12);
    check_close(fixture.statement.ways[0].amount[0][STATEMENT_ALL], 9.0, 1e-12);
    assert_int_equal(fixture.statement.period_count, 2);
    assert_true(fixture.statement.periods[0].start_s == 60);
    statement_end(&fixture);
}

/* Where the GPUs' energy is not known the host's is, with its PUE: in the rows as in the sums. */
static void rows_have_what_the_sums_have(void **state)
{
    struct statement_fixture fixture = {.statement.torn = false};
    const struct statement_figures *run = &fixture.statement.ways[STATEMENT_AS_RUN];
    const struct statement_period *rows;
    double energy_j = 0.0, pue_j = 0.0, grams = 0.0;

    (void)state;
    statement_begin(&fixture);
    statement_add_slice(&fixture, 0, 0, 500, 100e3, 250.0);
    statement_add_slice(&fixture, 0, 500, 1000, NAN, 250.0);
    statement_add_slice(&fixture, 0, 1500, 500, 100e3, 250.0);
    fixture.ledgers[0].head.surroundings = (struct carbon_surroundings){60.0, 1.5};
    for (int i = 0; i < 3; i++)
        statement_add_value(&fixture, CARBON_INTENSITY,
                            (int64_t)statement_start_s + (i == 0   ? -500
                                                          : i == 1 ? 500
                                                                   : 1500),
                            (int64_t)statement_start_s + (i == 0   ? 500
                                                          : i == 1 ? 1500
                                                                   : 9999),
                            100.0 * (i + 1));
    statement_make(&fixture);
    rows = fixture.statement.periods;
    assert_int_equal(fixture.statement.period_count, 3);
    assert_true(isnan(rows[1].energy_j[STATEMENT_GPUS]));
    check_close(rows[1].energy_j[STATEMENT_HOST], 60e3, 1e-12);
    check_close(rows[1].energy_j[STATEMENT_PUE], 30e3, 1e-12);
    check_close(rows[1].energy_j[STATEMENT_ALL], 90e3, 1e-12);
    check_close(rows[1].amount[0], 90e3 / 3.6e6 * 200.0, 1e-12);
    for (int i = 0; i < 3; i++) {
        energy_j += rows[i].energy_j[STATEMENT_ALL];
        pue_j += rows[i].energy_j[STATEMENT_PUE];
        grams += rows[i].amount[0];
    }
    check_close(energy_j, run->energy_j[STATEMENT_ALL], 1e-12);
    check_close(pue_j, run->energy_j[STATEMENT_PUE], 1e-12);
    check_close(grams, run->amount[0][STATEMENT_ALL], 1e-12);
    check_double(run->unmeasured_s, 1000.0);
    statement_end(&fixture);
}

/* Two limits in turns use the bound up, where one of them does not. */
static void the_best_mixture_uses_the_bound_up(void **state)
{
    struct statement_fixture fixture = {.statement.torn = false};
    const struct statement_figures *ways = fixture.statement.ways;
    double mean_w, share;

    (void)state;
    statement_begin(&fixture);
    statement_add_slice(&fixture, 0, 0, 1000, 300e3, 300.0);
    fixture.ledgers[0].head.max_slowdown = 1.15;
    statement_make(&fixture);
    check_double(fixture.statement.mix.low.limit_w, 200.0);
    check_double(fixture.statement.mix.high.limit_w, 250.0);
    check_close(ways[STATEMENT_MIX].time_s, 1150.0, 1e-12);
    share = fixture.statement.mix.high_share;
    mean_w = (1.0 - share) * fixture.statement.mix.low.power_w + share * fixture.statement.mix.high.power_w;
    check_close(ways[STATEMENT_MIX].energy_j[STATEMENT_GPUS], 1150.0 * mean_w, 1e-12);
    assert_true(ways[STATEMENT_MIX].energy_j[STATEMENT_GPUS] <
                ways[STATEMENT_STATIC].energy_j[STATEMENT_GPUS]);
    statement_end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_compared),
        cmocka_unit_test(the_host_and_the_site_count),
        cmocka_unit_test(rows_have_what_the_sums_have),
        cmocka_unit_test(the_best_mixture_uses_the_bound_up),
        cmocka_unit_test(the_single_limit_keeps_the_bound),
        cmocka_unit_test(the_highest_limit_is_the_highest),
        cmocka_unit_test(the_unknown_is_said),
        cmocka_unit_test(ranks_add_up),
        cmocka_unit_test(a_clock_that_was_not_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
