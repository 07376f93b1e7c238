/* SPDX-License-Identifier: Apache-2.0 */
/* What a statement says, as lines and as an object, and above all what it does not claim to know. */
#include "test.h"

#include "cli/views/statement_view.h"

static const struct grid_kind intensity = {.quantity = GRID_CARBON,
                                           .signal = GRID_AVERAGE,
                                           .scope = GRID_DIRECT,
                                           .provider = "gb",
                                           .zone = "national"};
static const struct grid_kind price = {.quantity = GRID_PRICE, .provider = "csv", .currency = "EUR"};

/* 2 kWh of GPUs, a half of that by the host, and PUE 1.2; each kWh 100 g and 0.1 EUR. */
static struct statement_figures figures_of(double limit_w, double gpu_j)
{
    struct statement_figures figures = {
        .known = true, .limit_w = limit_w, .start_s = 1767225600.0, .end_s = 1767229200.0, .time_s = 3600.0};
    double all_j = 1.2 * 1.5 * gpu_j;
    const double energy_j[STATEMENT_PARTS] = {gpu_j, 0.5 * gpu_j, all_j - 1.5 * gpu_j, all_j};

    for (int part = 0; part < STATEMENT_PARTS; part++) {
        figures.energy_j[part] = energy_j[part];
        figures.amount[CARBON_INTENSITY][part] = energy_j[part] / 3.6e6 * 100.0;
        figures.amount[CARBON_PRICE][part] = energy_j[part] / 3.6e6 * 0.1;
    }
    figures.share[CARBON_INTENSITY][GRID_MEASURED] = 0.75;
    figures.share[CARBON_INTENSITY][GRID_FORECAST] = 0.25;
    figures.share[CARBON_PRICE][GRID_MEASURED] = 1.0;
    return figures;
}

static struct statement_saving saving_of(double energy_j)
{
    return (struct statement_saving){
        .energy_j = energy_j, .time_s = -60.0, .amount = {energy_j / 3.6e6 * 100.0, energy_j / 3.6e6 * 0.1}};
}

static struct carbon_statement whole(void)
{
    struct carbon_statement statement = {
        .kinds = {&intensity, &price},
        .host = STATEMENT_HOST_STATED,
        .pue = 1.2,
        .bound = 1.03,
        .modelled_share = 0.9,
        .measured_per_modelled = 1.01,
        .gpus = 1,
        .changes = 3,
        .saved = saving_of(1.8e6),
        .by_limit = saving_of(1.35e6),
        .by_grid = saving_of(0.45e6),
    };

    statement.ways[STATEMENT_AS_RUN] = figures_of(NAN, 7.2e6);
    statement.ways[STATEMENT_HIGHEST] = figures_of(400.0, 8.2e6);
    statement.ways[STATEMENT_STATIC] = figures_of(250.0, 7.5e6);
    statement.ways[STATEMENT_MIX] = figures_of(237.5, 7.4e6);
    statement.mix = (struct carbon_mix){{.limit_w = 225.0}, {.limit_w = 250.0}, 0.5};
    return statement;
}

/* Nothing but energy of GPUs is known. */
static struct carbon_statement bare(void)
{
    struct carbon_statement statement = {
        .pue = 1.0, .measured_per_modelled = NAN, .missing = "no profile was measured"};
    struct statement_figures figures = figures_of(NAN, 7.2e6);

    for (int part = 0; part < STATEMENT_PARTS; part++) {
        figures.energy_j[part] = part == STATEMENT_GPUS || part == STATEMENT_ALL ? 7.2e6 : NAN;
        figures.amount[CARBON_INTENSITY][part] = figures.amount[CARBON_PRICE][part] = NAN;
    }
    figures.unmeasured_s = 90.0;
    statement.ways[STATEMENT_AS_RUN] = figures;
    return statement;
}

static void check_lines(const struct carbon_statement *statement, const char *const *pieces,
                        const char *const *absent)
{
    struct buffer out;

    buffer_init(&out, 1 << 16);
    statement_lines(statement, "    ", &out);
    for (; *pieces != NULL; pieces++) {
        if (strstr(out.data, *pieces) == NULL)
            fail_msg("'%s' is not in\n%s", *pieces, out.data);
    }
    for (; *absent != NULL; absent++) {
        if (strstr(out.data, *absent) != NULL)
            fail_msg("'%s' is in\n%s", *absent, out.data);
    }
    buffer_deinit(&out);
}

static void test_lines(void **state)
{
    static const char *const pieces[] = {
        "as run ",
        "highest limit, 400 W ",
        "best single limit, 250 W",
        "energy saved: ",
        " GPUs ",
        " PUE ",
        "7200 kJ",
        "360 g",
        "0.36 EUR",
        "carbon saved: 50 g (12.2 %), 37.5 g by the lower limit and 12.5 g",
        "estimated",
        "money saved: 0.05 EUR",
        "figures of gb for national (average, direct): measured 75 %, forecast 25 %",
        "figures of csv: measured 100 %",
        NULL};
    static const char *const bare_pieces[] = {"as run", "7200 kJ",
                                              "nothing to compare with: no profile was measured",
                                              "GPU energy of 1 min 30 s is not known", NULL};
    static const char *const nothing[] = {"nothing to compare", "unknown", NULL};
    static const char *const too_much[] = {"host", "PUE", "carbon", "money", "highest", "saved", "0 g", NULL};
    struct carbon_statement statement = whole();

    (void)state;
    check_lines(&statement, pieces, nothing);
    statement = bare();
    check_lines(&statement, bare_pieces, too_much);
}

/* Savings are not claimed while a part has no figure. */
static void test_savings_that_are_not_known(void **state)
{
    static const char *const pieces[] = {"carbon saved: unknown", "money saved: 0.05 EUR", NULL};
    static const char *const absent[] = {"carbon saved: 0", NULL};
    struct carbon_statement statement = whole();

    (void)state;
    statement.saved.amount[CARBON_INTENSITY] = NAN;
    check_lines(&statement, pieces, absent);
}

static void test_object(void **state)
{
    struct carbon_statement statement = whole();
    json_t *object = statement_json(&statement), *ways, *way;
    double all_g, measured, by_grid_g;

    (void)state;
    ways = json_object_get(object, "ways");
    assert_int_equal(json_array_size(ways), 4);
    way = json_array_get(ways, 0);
    assert_true(json_is_null(json_object_get(way, "limit_w")));
    assert_int_equal(json_unpack(object, "{s:{s:F}}", "by_following", "carbon_g", &by_grid_g), 0);
    assert_int_equal(json_unpack(way, "{s:{s:F}, s:{s:{s:F}}}", "carbon_g", "all", &all_g, "coverage_percent",
                                 "intensity", "measured", &measured),
                     0);
    check_close(all_g, 360.0, 1e-12);
    check_double(measured, 75.0);
    check_double(by_grid_g, 12.5);
    json_decref(object);

    statement = bare();
    object = statement_json(&statement);
    ways = json_object_get(object, "ways");
    assert_int_equal(json_array_size(ways), 1);
    way = json_array_get(ways, 0);
    assert_true(json_is_null(json_object_get(way, "carbon_g")));
    assert_true(json_is_null(json_object_get(json_object_get(way, "energy_j"), "host")));
    assert_true(json_is_null(json_object_get(object, "intensity")));
    assert_true(json_is_null(json_object_get(object, "measured_per_modelled")));
    assert_string_equal(json_string_value(json_object_get(object, "nothing_to_compare")),
                        "no profile was measured");
    json_decref(object);
}

static void test_amounts(void **state)
{
    static const struct {
        int signal;
        double amount;
        const char *currency, *expected;
    } cases[] = {
        {CARBON_INTENSITY, 0.0, "", "0 g"},
        {CARBON_INTENSITY, 999.0, "", "999 g"},
        {CARBON_INTENSITY, -12.5, "", "-12.5 g"},
        {CARBON_INTENSITY, 1240.0, "", "1.24 kg"},
        {CARBON_INTENSITY, 2.5e6, "", "2.5 t"},
        {CARBON_INTENSITY, NAN, "", "unknown"},
        {CARBON_INTENSITY, INFINITY, "", "unknown"},
        {CARBON_PRICE, 0.2134, "EUR", "0.213 EUR"},
        {CARBON_PRICE, -3.0, "", "-3"},
        {CARBON_PRICE, NAN, "EUR", "unknown"},
    };
    char text[STATEMENT_AMOUNT_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(statement_amount(cases[i].signal, cases[i].amount, cases[i].currency, text),
                            cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_savings_that_are_not_known),
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_amounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
