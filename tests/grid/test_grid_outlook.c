/* SPDX-License-Identifier: Apache-2.0 */
/* What lies ahead, as the carbon plan takes it. */
#include "test.h"

#include "grid/forecast.h"
#include "model/grid_series.h"

enum { HOUR_S = 3600, DAY_S = 86400 };

static void add(struct grid_series *series, int64_t start_s, int64_t end_s, double value)
{
    const struct grid_period period = {start_s, end_s, value, GRID_MEASURED, 0};

    assert_int_equal(grid_series_add(series, &period, NULL), 0);
}

static void make_answer(struct grid_answer *answer, enum grid_quantity quantity, const char *provider)
{
    struct grid_kind kind = {.quantity = quantity};

    *answer = (struct grid_answer){.remark = ""};
    strncpy(kind.provider, provider, sizeof kind.provider - 1);
    grid_series_init(&answer->actual, &kind, 100000);
    grid_series_init(&answer->published, &kind, 100000);
    answer->actual.settled = answer->published.settled = true;
}

/* Periods from day 0 up to `until_s`, with a course over the day and noise. */
static void fill(struct grid_series *series, int64_t until_s, int64_t step_s, double mean, double noise,
                 uint64_t *seed)
{
    for (int64_t start_s = 0; start_s < until_s; start_s += step_s)
        add(series, start_s, start_s + step_s,
            mean * (1.0 + 0.3 * sin((double)start_s / DAY_S * 6.283185307179586) +
                    noise * (test_uniform(seed) - 0.5)));
    assert_int_equal(grid_series_settle(series, NULL), 0);
}

/* What a figure is expected to be at a moment; NaN without any. */
static double value_at(const struct grid_period *periods, size_t count, double time_s)
{
    for (size_t i = 0; i < count; i++) {
        if ((double)periods[i].start_s <= time_s && time_s < (double)periods[i].end_s)
            return periods[i].value;
    }
    return NAN;
}

/* Each span's weight is that of forecasts made by themselves, at both of its ends. */
static void check_outlook(const struct grid_outlook *outlook, const struct grid_outlook_request *request)
{
    static struct grid_period alone[CARBON_SIGNALS][4096];
    const double factors[CARBON_SIGNALS] = {request->objective.per_g, request->objective.per_money};
    double at_s = request->from_s;
    size_t counts[CARBON_SIGNALS] = {0};

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        struct grid_forecast_request wanted = {.published_until_s = request->published_until_s[i],
                                               .now_s = (int64_t)floor(request->from_s),
                                               .until_s = (int64_t)ceil(request->to_s),
                                               .yearly_mean = NAN};

        if (request->answers[i] == NULL)
            continue;
        wanted.actual = &request->answers[i]->actual;
        wanted.published = &request->answers[i]->published;
        counts[i] = grid_forecast(&wanted, alone[i], COUNT(alone[i]));
    }
    for (size_t s = 0; s < outlook->count; s++) {
        const struct carbon_span *span = &outlook->spans[s];
        const double moments[] = {at_s, at_s + 0.999 * span->duration_s};

        assert_true(span->duration_s > 0.0);
        for (size_t m = 0; m < COUNT(moments); m++) {
            double weight = request->objective.per_kwh;

            for (int i = 0; i < CARBON_SIGNALS; i++) {
                if (factors[i] != 0.0)
                    weight += factors[i] * value_at(alone[i], counts[i], moments[m]);
            }
            if (isnan(weight))
                assert_true(isnan(span->weight));
            else
                check_close(span->weight, weight, 1e-14);
        }
        at_s += span->duration_s;
    }
    check_close(at_s, request->to_s, 1e-15);
}

static void test_spans_are_what_each_figure_is_alone(void **state)
{
    static const int64_t steps[] = {300, 900, 1800, 3600};
    static const struct carbon_objective objectives[] = {{1, 0, 0}, {0, 1, 0}, {0.001, 2, 0.3}, {0, 0, 1}};
    uint64_t seed = 7;

    (void)state;
    for (int round = 0; round < 40; round++) {
        int64_t until_s = 16 * DAY_S + HOUR_S * test_below(&seed, 24);
        struct grid_answer answers[CARBON_SIGNALS];
        struct grid_outlook_request request = {
            .published_until_s = {INT64_MAX, INT64_MAX},
            .objective = objectives[round % 4],
            .from_s = (double)until_s + 5000 * test_uniform(&seed),
        };
        struct grid_outlook outlook;

        for (int i = 0; i < CARBON_SIGNALS; i++) {
            make_answer(&answers[i], i == 0 ? GRID_CARBON : GRID_PRICE, "test");
            fill(&answers[i].actual, until_s, steps[test_below(&seed, 4)], i == 0 ? 300 : 0.2, 0.3, &seed);
            if (test_below(&seed, 2) == 0)
                fill(&answers[i].published, until_s + DAY_S, steps[test_below(&seed, 4)], i == 0 ? 320 : 0.22,
                     0.2, &seed);
            request.answers[i] = test_below(&seed, 10) == 0 ? NULL : &answers[i];
        }
        request.to_s = request.from_s + 3 * DAY_S * test_uniform(&seed);
        assert_int_equal(grid_outlook_init(&outlook, grid_outlook_capacity(&request), NULL), 0);
        grid_outlook_foretell(&outlook, &request);
        check_outlook(&outlook, &request);
        grid_outlook_deinit(&outlook);
        for (int i = 0; i < CARBON_SIGNALS; i++)
            grid_answer_deinit(&answers[i]);
    }
}

/* What is known so late after the last actual value, with and without a forecast. */
static void test_stale_is_what_rests_on_nothing_better(void **state)
{
    static const struct {
        const char *what;
        int64_t days;   /* of actual values */
        double late_s;  /* after their end */
        bool published; /* that reaches so far */
        double per_g;
        const char *provider;
        bool stale, known, scarce;
    } cases[] = {
        {"fresh", 16, 60, false, 1, "test", false, true, false},
        {"an outage that the days before bridge", 16, 45 * HOUR_S, false, 1, "test", false, true, false},
        {"two hours of data, an hour old", 0, HOUR_S, false, 1, "test", true, true, true},
        {"two hours of data, a minute old", 0, 60, false, 1, "test", true, true, true},
        {"two hours of data, three days old", 0, 3 * DAY_S, false, 1, "test", true, true, false},
        {"the same, but published", 0, HOUR_S, true, 1, "test", false, true, false},
        {"three weeks of outage", 16, 21 * DAY_S, false, 1, "test", true, false, false},
        {"the same, where it does not count", 16, 21 * DAY_S, false, 0, "test", false, true, false},
        {"a constant", 16, 21 * DAY_S, false, 1, "constant", false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t until_s = cases[i].days * DAY_S + 2 * HOUR_S;
        struct grid_answer answer;
        struct grid_outlook_request request = {
            .published_until_s = {INT64_MAX},
            .objective = {.per_g = cases[i].per_g, .per_kwh = 1},
            .from_s = (double)until_s + cases[i].late_s,
        };
        struct grid_outlook outlook;
        uint64_t seed = 3;

        make_answer(&answer, GRID_CARBON, cases[i].provider);
        fill(&answer.actual, until_s, 1800, 300, 0.1, &seed);
        if (cases[i].published)
            fill(&answer.published, until_s + 2 * DAY_S, 1800, 300, 0.1, &seed);
        request.answers[0] = &answer;
        request.to_s = request.from_s + DAY_S;
        assert_int_equal(grid_outlook_init(&outlook, grid_outlook_capacity(&request), NULL), 0);
        grid_outlook_foretell(&outlook, &request);
        if (outlook.stale != cases[i].stale || outlook.scarce != cases[i].scarce ||
            isnan(outlook.spans[0].weight) == cases[i].known)
            fail_msg("%s: stale %d, weight %g", cases[i].what, outlook.stale, outlook.spans[0].weight);
        grid_outlook_deinit(&outlook);
        grid_answer_deinit(&answer);
    }
}

/* A figure that counts and that nobody gives is not known, and not 0. */
static void test_nothing_known_is_no_zero(void **state)
{
    const struct grid_outlook_request request = {
        .objective = {.per_g = 1, .per_kwh = 5}, .from_s = 0.5, .to_s = DAY_S};
    struct grid_outlook outlook;

    (void)state;
    assert_int_equal(grid_outlook_init(&outlook, grid_outlook_capacity(&request), NULL), 0);
    grid_outlook_foretell(&outlook, &request);
    assert_int_equal(outlook.count, 1);
    assert_true(isnan(outlook.spans[0].weight));
    assert_true(outlook.stale);
    grid_outlook_deinit(&outlook);
}

/* A place that has forecasts alone, as regions of Great Britain. */
static void test_forecasts_alone_are_enough(void **state)
{
    struct grid_answer answer;
    struct grid_outlook_request request = {.published_until_s = {INT64_MAX},
                                           .objective = {.per_g = 1},
                                           .from_s = 20 * 60 + 7,
                                           .to_s = 2 * DAY_S};
    struct grid_outlook outlook;
    double all_s = 0.0;

    (void)state;
    make_answer(&answer, GRID_CARBON, "test");
    add(&answer.published, -600, 1200, 100);
    add(&answer.published, 1200, 3000, 200);
    add(&answer.published, 3000, 4800, 300);
    assert_int_equal(grid_series_settle(&answer.published, NULL), 0);
    request.answers[0] = &answer;
    assert_int_equal(grid_outlook_init(&outlook, grid_outlook_capacity(&request), NULL), 0);
    grid_outlook_foretell(&outlook, &request);
    assert_false(outlook.stale);
    check_double(outlook.spans[0].duration_s, 1800 - 7);
    check_double(outlook.spans[0].weight, 200);
    check_double(outlook.spans[1].duration_s, 1800);
    check_double(outlook.spans[1].weight, 300);
    assert_true(isnan(outlook.spans[2].weight));
    for (size_t i = 0; i < outlook.count; i++)
        all_s += outlook.spans[i].duration_s;
    check_double(all_s, request.to_s - request.from_s);
    grid_outlook_deinit(&outlook);
    grid_answer_deinit(&answer);
}

static void test_too_little_room_shortens_it(void **state)
{
    struct grid_answer answer;
    struct grid_outlook_request request = {
        .objective = {.per_g = 1}, .from_s = 16 * DAY_S, .to_s = 18 * DAY_S};
    struct grid_outlook outlook;
    struct fly_error error;
    uint64_t seed = 1;

    (void)state;
    make_answer(&answer, GRID_CARBON, "test");
    fill(&answer.actual, 16 * DAY_S, HOUR_S, 300, 0.1, &seed);
    request.answers[0] = &answer;
    assert_int_equal(grid_outlook_init(&outlook, 5, NULL), 0);
    grid_outlook_foretell(&outlook, &request);
    assert_int_equal(outlook.count, 5);
    check_double(outlook.spans[4].duration_s, HOUR_S);
    grid_outlook_deinit(&outlook);
    grid_answer_deinit(&answer);
    grid_outlook_deinit(&outlook);
    assert_int_equal(grid_outlook_init(&outlook, (size_t)GRID_PERIODS_MAX + 1, &error), FLY_ELIMIT);
    request.to_s = INFINITY;
    assert_true(grid_outlook_capacity(&request) <= (size_t)GRID_PERIODS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_are_what_each_figure_is_alone),
        cmocka_unit_test(test_stale_is_what_rests_on_nothing_better),
        cmocka_unit_test(test_nothing_known_is_no_zero),
        cmocka_unit_test(test_forecasts_alone_are_enough),
        cmocka_unit_test(test_too_little_room_shortens_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
