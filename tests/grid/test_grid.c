/* SPDX-License-Identifier: Apache-2.0 */
/* Series and forecasts of the grid's figures, and the providers that need no network. */
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "grid/forecast.h"
#include "grid/providers.h"
#include "model/grid_series.h"
#include "test_data.h"

enum { HOUR_S = 3600, DAY_S = 86400 };

static const struct grid_kind direct = {
    .quantity = GRID_CARBON, .signal = GRID_AVERAGE, .scope = GRID_DIRECT, .provider = "test"};

static void add(struct grid_series *series, int64_t start_s, int64_t end_s, double value, int64_t issued_s)
{
    const struct grid_period period = {start_s, end_s, value, GRID_MEASURED, issued_s};

    assert_int_equal(grid_series_add(series, &period, NULL), 0);
}

static void check_series(const struct grid_series *series, const char *expected)
{
    char text[512] = "";
    size_t length = 0;

    for (size_t i = 0; i < series->count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld-%lld=%g", i > 0 ? " " : "",
                                   (long long)series->periods[i].start_s, (long long)series->periods[i].end_s,
                                   series->periods[i].value);
    assert_string_equal(text, expected);
}

static void test_series_settle(void **state)
{
    static const struct {
        struct {
            int64_t start_s, end_s;
            double value;
            int64_t issued_s;
        } periods[5];
        const char *expected;
    } cases[] = {
        {{{10, 20, 2, 0}, {0, 10, 1, 0}}, "0-10=1 10-20=2"},
        {{{0, 10, 1, 0}, {0, 10, 3, 0}}, "0-10=3"},
        {{{0, 10, 1, 5}, {0, 10, 3, 2}}, "0-10=1"},
        {{{0, 10, 1, 0}, {0, 10, NAN, 9}}, "0-10=1"},
        {{{0, 60, 1, 0}, {20, 40, 2, 0}}, "0-20=1 20-40=2 40-60=1"},
        {{{0, 60, 1, 9}, {20, 40, 2, 0}}, "0-60=1"},
        {{{0, 30, 1, 0}, {20, 50, 2, 0}}, "0-20=1 20-50=2"},
        {{{0, 10, 0, 0}, {10, 20, -4, 0}, {20, 30, 6000, 0}, {30, 40, INFINITY, 0}, {40, 50, 7, 0}},
         "0-10=nan 10-20=nan 20-30=nan 30-40=nan 40-50=7"},
        {{{0, 10, 1, 0}, {90, 100, 2, 0}}, "0-10=1 90-100=2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct grid_series series;

        grid_series_init(&series, &direct, 100);
        for (size_t p = 0; p < COUNT(cases[i].periods) && cases[i].periods[p].end_s > 0; p++)
            add(&series, cases[i].periods[p].start_s, cases[i].periods[p].end_s, cases[i].periods[p].value,
                cases[i].periods[p].issued_s);
        assert_int_equal(grid_series_settle(&series, NULL), 0);
        check_series(&series, cases[i].expected);
        grid_series_deinit(&series);
    }
}

/* At every moment the period counts that a plain search over all of them finds. */
static void test_settling_is_that_of_a_plain_search(void **state)
{
    uint64_t seed = 31;

    (void)state;
    for (int round = 0; round < 100; round++) {
        struct grid_period all[24];
        size_t count = 1 + test_below(&seed, COUNT(all));
        struct grid_series series;

        grid_series_init(&series, &direct, 100);
        for (size_t i = 0; i < count; i++) {
            int64_t start_s = test_below(&seed, 50);

            all[i] = (struct grid_period){start_s, start_s + 1 + test_below(&seed, 20),
                                          test_below(&seed, 5) == 0 ? NAN : 1.0 + (double)i, GRID_MEASURED,
                                          test_below(&seed, 3)};
            assert_int_equal(grid_series_add(&series, &all[i], NULL), 0);
        }
        assert_int_equal(grid_series_settle(&series, NULL), 0);
        for (int64_t time_s = -1; time_s < 75; time_s++) {
            const struct grid_period *best = NULL, *found = grid_series_at(&series, time_s);

            for (size_t i = 0; i < count; i++) {
                int64_t length_s = all[i].end_s - all[i].start_s;

                if (time_s < all[i].start_s || time_s >= all[i].end_s || isnan(all[i].value))
                    continue;
                if (best == NULL || all[i].issued_s > best->issued_s ||
                    (all[i].issued_s == best->issued_s && length_s <= best->end_s - best->start_s))
                    best = &all[i];
            }
            if (best == NULL)
                assert_true(found == NULL || isnan(found->value));
            else
                check_double(found->value, best->value);
        }
        grid_series_deinit(&series);
    }
}

static void test_kinds_are_never_mixed(void **state)
{
    struct grid_kind other = direct;
    struct grid_series a, b;
    struct fly_error error;
    const struct grid_period backwards = {10, 10, 1, GRID_MEASURED, 0};

    (void)state;
    other.scope = GRID_LIFE_CYCLE;
    grid_series_init(&a, &direct, 2);
    grid_series_init(&b, &other, 10);
    add(&b, 0, 10, 1, 0);
    assert_int_equal(grid_series_merge(&a, &b, &error), FLY_ECONFLICT);
    check_contains(error.text, "life cycle");
    b.kind = direct;
    assert_int_equal(grid_series_merge(&a, &b, &error), 0);
    assert_int_equal(grid_series_add(&a, &backwards, &error), FLY_EDATA);
    grid_series_deinit(&a);
    grid_series_deinit(&b);
}

static void test_means_say_what_they_cover(void **state)
{
    struct grid_series series;
    double coverage;

    (void)state;
    grid_series_init(&series, &direct, 10);
    add(&series, 0, 10, 100, 0);
    add(&series, 10, 20, NAN, 0);
    add(&series, 30, 40, 400, 0);
    assert_int_equal(grid_series_settle(&series, NULL), 0);
    check_close(grid_series_mean(&series, 5, 35, &coverage), 250, 1e-15);
    check_close(coverage, 1.0 / 3.0, 1e-15);
    assert_true(isnan(grid_series_mean(&series, 12, 29, &coverage)));
    check_double(coverage, 0);
    grid_series_deinit(&series);
}

/* Twenty days of a daily course, with noise from day to day where there is some. */
static void make_days(struct grid_series *series, double course, double noise, uint64_t *seed)
{
    grid_series_init(series, &direct, 1000);
    for (int64_t day = 0; day < 20; day++) {
        for (int64_t hour = 0; hour < 24; hour++)
            add(series, day * DAY_S + hour * HOUR_S, day * DAY_S + (hour + 1) * HOUR_S,
                300 + course * sin(2 * 3.14159265358979 * (double)hour / 24) +
                    noise * (test_uniform(seed) - 0.5),
                0);
    }
    assert_int_equal(grid_series_settle(series, NULL), 0);
}

static size_t foretell(const struct grid_series *actual, const struct grid_series *published, int64_t now_s,
                       int64_t until_s, struct grid_period *out, size_t capacity)
{
    const struct grid_forecast_request request = {.actual = actual,
                                                  .published = published,
                                                  .published_until_s = now_s + 1,
                                                  .now_s = now_s,
                                                  .until_s = until_s,
                                                  .yearly_mean = NAN};

    return grid_forecast(&request, out, capacity);
}

static void test_forecast_knows_the_course_of_a_day(void **state)
{
    struct grid_series series;
    struct grid_period out[200];
    uint64_t seed = 1;
    int64_t now_s = 16 * DAY_S + 7 * HOUR_S + 600;
    size_t count;

    (void)state;
    make_days(&series, 100, 0, &seed);
    count = foretell(&series, NULL, now_s, now_s + 3 * DAY_S, out, COUNT(out));
    assert_int_equal(count, 73);
    assert_int_equal(out[0].start_s, now_s);
    assert_int_equal(out[0].end_s, 16 * DAY_S + 8 * HOUR_S);
    assert_int_equal(out[72].end_s, now_s + 3 * DAY_S);
    for (size_t i = 0; i < count; i++) {
        const struct grid_period *actual = grid_series_at(&series, out[i].start_s);

        assert_int_equal(out[i].quality, GRID_OWN_FORECAST);
        check_close(out[i].value, actual->value, 1e-9);
        assert_true(i == 0 || out[i].start_s == out[i - 1].end_s);
    }
    grid_series_deinit(&series);
}

/* What comes later must not change what is foretold. */
static void test_forecast_does_not_peek(void **state)
{
    struct grid_series series;
    struct grid_period before[100], after[100];
    uint64_t seed = 2;
    int64_t now_s = 16 * DAY_S + 7 * HOUR_S + 1;

    (void)state;
    make_days(&series, 60, 80, &seed);
    assert_int_equal(foretell(&series, NULL, now_s, now_s + 2 * DAY_S, before, COUNT(before)), 49);
    for (size_t i = 0; i < series.count; i++) {
        if (series.periods[i].end_s > now_s)
            series.periods[i].value = 4000;
    }
    assert_int_equal(foretell(&series, NULL, now_s, now_s + 2 * DAY_S, after, COUNT(after)), 49);
    for (size_t i = 0; i < 49; i++)
        check_double(after[i].value, before[i].value);
    grid_series_deinit(&series);
}

/* Chance is no course: where days have none in common the forecast is near their mean. */
static void test_forecast_shrinks_chance(void **state)
{
    struct grid_series series;
    struct grid_period out[100];
    uint64_t seed = 3;
    int64_t now_s = 16 * DAY_S;
    double squares = 0.0;

    (void)state;
    make_days(&series, 0, 200, &seed);
    assert_int_equal(foretell(&series, NULL, now_s + DAY_S * 0, now_s + 2 * DAY_S, out, COUNT(out)), 48);
    for (size_t i = 24; i < 48; i++)
        squares += (out[i].value - 300) * (out[i].value - 300) / 24;
    /* A plain mean of the same hours would scatter by 20. */
    if (squares > 10.0 * 10.0)
        fail_msg("scatters by %g", sqrt(squares));
    grid_series_deinit(&series);
}

static void test_fallbacks_in_their_order(void **state)
{
    struct grid_series series, published;
    struct grid_period out[100];

    (void)state;
    grid_series_init(&series, &direct, 10);
    grid_series_init(&published, &direct, 10);
    add(&series, 0, HOUR_S, 200, 0);
    add(&series, HOUR_S, 2 * HOUR_S, NAN, 0);
    add(&published, HOUR_S, 2 * HOUR_S, 250, 0);
    assert_int_equal(grid_series_settle(&series, NULL), 0);
    assert_int_equal(grid_series_settle(&published, NULL), 0);
    assert_int_equal(foretell(&series, &published, HOUR_S, 8 * HOUR_S, out, COUNT(out)), 7);
    check_double(out[0].value, 250);
    assert_int_equal(out[0].quality, GRID_FORECAST);
    check_double(out[1].value, 200);
    assert_int_equal(out[1].quality, GRID_FALL_BACK);
    assert_int_equal(out[6].quality, GRID_FALL_BACK);
    /* Before there is anything. */
    assert_int_equal(foretell(&series, NULL, 0, HOUR_S, out, COUNT(out)), 1);
    assert_true(isnan(out[0].value));
    assert_int_equal(out[0].quality, GRID_UNKNOWN);
    grid_series_deinit(&series);
    grid_series_deinit(&published);
}

static void read_text(const char *text, struct grid_request *request, struct grid_answer *out_answer,
                      int expected, const char *says)
{
    char path[] = "/tmp/flyball-test-grid-XXXXXX";
    int code, file = mkstemp(path);
    struct fly_error error = {0};

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    code = grid_read(path, request, out_answer, &error);
    unlink(path);
    if (code != expected)
        fail_msg("%d: %s", code, error.text);
    if (code < 0)
        check_contains(error.text, says);
}

static void test_csv_files(void **state)
{
    static const struct {
        const char *text;
        enum grid_quantity quantity;
        enum grid_scope scope;
        int code;
        const char *expected;
    } cases[] = {
        {"timestamp,g_per_kwh\n1970-01-01T00:00Z,5\n1970-01-01T00:01Z,6\n", GRID_CARBON, 0, 0,
         "0-60=5 60-120=6"},
        {"timestamp,lbs_co2_per_mwh\n1970-01-01T00:00Z,1000\n1970-01-01T00:01Z,\n", GRID_CARBON, 0, 0,
         "0-60=453.592 60-120=nan"},
        {"timestamp,price_per_mwh\n1970-01-01T00:00Z,-50\n1970-01-01T00:01Z,0\n", GRID_PRICE, 0, 0,
         "0-60=-0.05 60-120=0"},
        {"timestamp,end,g_per_kwh\n1970-01-01T00:00Z,1970-01-01T00:00:30Z,5\n", GRID_CARBON, 0, 0, "0-30=5"},
        {"timestamp,actual_g_per_kwh,lifecycle_g_per_kwh\n1970-01-01T00:00Z,5,7\n1970-01-01T00:01Z,6,8\n",
         GRID_CARBON, GRID_LIFE_CYCLE, 0, "0-60=7 60-120=8"},
        {"timestamp,actual_g_per_kwh,quality\n1970-01-01T00:01Z,6,measured\n1970-01-01T00:00Z,0,suspect\n"
         "1970-01-01T00:03Z,9,missing\n1970-01-01T00:02Z,9,estimated\n",
         GRID_CARBON, GRID_DIRECT, 0, "0-60=nan 60-120=6 120-180=9 180-240=nan"},
        {"timestamp,price_per_kwh,forecast_g_per_kwh\n1970-01-01T00:00Z,4,9\n", GRID_PRICE, 0, FLY_EDATA,
         "expected a forecast of a value that the file has"},
        {"timestamp,price_per_kwh,forecast_g_per_kwh\n1970-01-01T00:00Z,4,\n1970-01-01T00:01Z,4,\n",
         GRID_PRICE, 0, 0, "0-60=4 60-120=4"},
        {"timestamp,g_per_kwh,forecast_price_per_mwh\n1970-01-01T00:00Z,4,9\n", GRID_CARBON, 0, FLY_EDATA,
         "forecast_price_per_mwh"},
        {"timestamp,g_per_kwh,forecast_eur_per_mwh\n1970-01-01T00:00Z,4,9\n", GRID_CARBON, 0, FLY_EDATA,
         "column 'forecast_eur_per_mwh': expected a forecast of a value that the file has"},
        {"timestamp,forecast,g_per_kwh\n1970-01-01T00:00Z,,4\n1970-01-01T00:01Z,9,4\n", GRID_CARBON, 0,
         FLY_EDATA, ":3: column 'forecast': expected a forecast"},
        {"timestamp,g_per_kwh,Forecast g/kWh\n1970-01-01T00:00Z,4,9\n", GRID_CARBON, 0, FLY_EDATA,
         "Forecast g/kWh"},
        {"timestamp,g_per_kwh,forecast,forecaster\n1970-01-01T00:00Z,4,,\n1970-01-01T00:01Z,5,nan,null\n",
         GRID_CARBON, 0, 0, "0-60=4 60-120=5"},
        {"timestamp,kg_per_mwh,forecast_g_per_kwh,forecast_kg_per_mwh\n1970-01-01T00:00Z,4,9,9\n",
         GRID_CARBON, 0, FLY_EDATA, "two forecasts"},
        {"timestamp,g_per_kwh\n1970-01-01T00:00Z,x\n", GRID_CARBON, 0, FLY_EDATA, "g_per_kwh"},
        {"timestamp,g_per_kwh\nyesterday,4\n", GRID_CARBON, 0, FLY_EDATA, "timestamp"},
        {"timestamp,g_per_kwh\n1970-01-01T00:00Z,4\n", GRID_CARBON, 0, FLY_EDATA, "two rows"},
        {"time,g\n1,2\n", GRID_CARBON, 0, FLY_EDATA, "header"},
        {"timestamp,g_per_kwh\n1970-01-01T00:00Z,4\n", GRID_PRICE, 0, FLY_EDATA, "price_per_kwh"},
        {"timestamp,g_per_kwh,quality\n1970-01-01T00:00Z,4,measured\n1970-01-01T00:01Z,4,marginal\n",
         GRID_CARBON, 0, FLY_EDATA, "quality"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct grid_request request = {.quantity = cases[i].quantity, .scope = cases[i].scope};
        struct grid_answer answer;

        read_text(cases[i].text, &request, &answer, cases[i].code, cases[i].expected);
        if (cases[i].code < 0)
            continue;
        check_series(&answer.actual, cases[i].expected);
        grid_answer_deinit(&answer);
    }
}

/* A forecast beside any column of values is one of them. */
static void test_forecast_columns(void **state)
{
    static const struct {
        const char *columns;
        enum grid_quantity quantity;
        enum grid_scope scope;
        const char *published;
    } cases[] = {
        {"actual_g_per_kwh,forecast_g_per_kwh", GRID_CARBON, 0, "0-60=10 60-120=30"},
        {"g_per_kwh,forecast_g_per_kwh", GRID_CARBON, 0, "0-60=10 60-120=30"},
        {"kg_per_mwh,forecast_kg_per_mwh", GRID_CARBON, 0, "0-60=10 60-120=30"},
        {"kg_per_mwh,forecast_g_per_kwh", GRID_CARBON, 0, "0-60=10 60-120=30"},
        {"lbs_co2_per_mwh,forecast_lbs_co2_per_mwh", GRID_CARBON, 0, "0-60=4.53592 60-120=13.6078"},
        {"lifecycle_g_per_kwh,forecast_g_per_kwh", GRID_CARBON, GRID_LIFE_CYCLE, "0-60=10 60-120=30"},
        {"lifecycle_g_per_kwh,forecast_lifecycle_g_per_kwh", GRID_CARBON, GRID_LIFE_CYCLE,
         "0-60=10 60-120=30"},
        {"price_per_kwh,forecast_price_per_kwh", GRID_PRICE, 0, "0-60=10 60-120=30"},
        {"price_per_mwh,forecast_price_per_mwh", GRID_PRICE, 0, "0-60=0.01 60-120=0.03"},
        /* It is of the other value. */
        {"actual_g_per_kwh,forecast_g_per_kwh,lifecycle_g_per_kwh", GRID_CARBON, GRID_LIFE_CYCLE, ""},
        {"g_per_kwh,forecast_g_per_kwh,price_per_kwh", GRID_PRICE, 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct grid_request request = {.quantity = cases[i].quantity, .scope = cases[i].scope};
        struct grid_answer answer;
        char text[256];

        snprintf(text, sizeof text, "timestamp,%s\n1970-01-01T00:00Z,5,10,5\n1970-01-01T00:01Z,6,30,6\n",
                 cases[i].columns);
        if (strchr(strchr(cases[i].columns, ',') + 1, ',') == NULL)
            snprintf(text, sizeof text, "timestamp,%s\n1970-01-01T00:00Z,5,10\n1970-01-01T00:01Z,6,30\n",
                     cases[i].columns);
        read_text(text, &request, &answer, 0, cases[i].columns);
        check_series(&answer.published, cases[i].published);
        grid_answer_deinit(&answer);
    }
}

/* Periods that a file leaves out are missing as those are that have no value. */
static void test_absent_periods_are_missing(void **state)
{
    struct grid_request request = {.quantity = GRID_CARBON};
    struct grid_answer answer;

    (void)state;
    read_text("timestamp,g_per_kwh\n1970-01-01T00:00Z,5\n1970-01-01T00:01Z,\n1970-01-01T00:02Z,7\n"
              "1970-01-01T00:05Z,5\n1970-01-01T00:06Z,5\n1970-01-01T00:07Z,5\n",
              &request, &answer, 0, "");
    assert_int_equal(answer.actual.remarks.missing, 3);
    grid_answer_deinit(&answer);
}

static void test_unknown_provider(void **state)
{
    static const struct {
        const char *source, *says;
    } cases[] = {
        {"foo:bar", "unknown provider 'foo'"},
        {"foo:", "unknown provider 'foo'"},
        {"electricitymaps:DE", "did you mean 'electricity-maps'?"},
        {"GB:national", "unknown provider 'GB'"},
        {"/nowhere/foo:bar", "opening failed"},
        {"nowhere.csv", "opening failed"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct grid_request request = {.quantity = GRID_CARBON};
        struct grid_answer answer;
        struct fly_error error = {.text = ""};

        assert_true(grid_read(cases[i].source, &request, &answer, &error) < 0);
        check_contains(error.text, cases[i].says);
    }
}

static void test_recorded_series(void **state)
{
    static const struct {
        const char *name;
        size_t count, zero;
        int64_t step_s;
        enum grid_signal signal;
        size_t published;
    } cases[] = {
        {"gb_2023h1", 8688, 5, 1800, GRID_AVERAGE, 8688},
        {"us_ciso_2022", 8760, 0, 3600, GRID_AVERAGE, 0},
        {"es_2023", 8760, 0, 3600, GRID_AVERAGE, 0},
        {"miso_chase_2022-10", 167, 0, 1800, GRID_MARGINAL, 167},
    };
    char path[TEST_PATH_MAX], name[64];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct grid_request request = {.quantity = GRID_CARBON};
        struct grid_answer answer;
        struct fly_error error;

        snprintf(name, sizeof name, "carbon/%s.csv", cases[i].name);
        test_data_need(name, path);
        if (grid_read(path, &request, &answer, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(answer.actual.count, cases[i].count);
        assert_int_equal(answer.actual.remarks.zero, cases[i].zero);
        assert_int_equal(grid_series_step(&answer.actual), cases[i].step_s);
        assert_int_equal(answer.actual.kind.signal, cases[i].signal);
        assert_int_equal(answer.published.count, cases[i].published);
        grid_answer_deinit(&answer);
    }
}

static void test_constant(void **state)
{
    struct grid_request request = {.quantity = GRID_CARBON};
    struct grid_answer answer;
    struct fly_error error;

    (void)state;
    assert_int_equal(grid_read("constant:380", &request, &answer, &error), 0);
    check_double(grid_series_at(&answer.actual, 1700000000)->value, 380);
    grid_answer_deinit(&answer);
    assert_int_equal(grid_read("constant:-3", &request, &answer, &error), FLY_EDATA);
    assert_int_equal(grid_read("constant:", &request, &answer, &error), FLY_EDATA);
    assert_int_equal(grid_read("/nowhere/at/all.csv", &request, &answer, &error), FLY_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series_settle),
        cmocka_unit_test(test_settling_is_that_of_a_plain_search),
        cmocka_unit_test(test_kinds_are_never_mixed),
        cmocka_unit_test(test_means_say_what_they_cover),
        cmocka_unit_test(test_forecast_knows_the_course_of_a_day),
        cmocka_unit_test(test_forecast_does_not_peek),
        cmocka_unit_test(test_forecast_shrinks_chance),
        cmocka_unit_test(test_fallbacks_in_their_order),
        cmocka_unit_test(test_csv_files),
        cmocka_unit_test(test_forecast_columns),
        cmocka_unit_test(test_absent_periods_are_missing),
        cmocka_unit_test(test_unknown_provider),
        cmocka_unit_test(test_recorded_series),
        cmocka_unit_test(test_constant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
