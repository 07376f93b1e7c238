/* SPDX-License-Identifier: Apache-2.0 */
/* Times, durations and units as providers of the grid's figures write them. */
#include "test.h"

#include "base/text/iso_time.h"
#include "model/grid_units.h"
#include "model/units.h"

static void test_iso_times(void **state)
{
    static const struct {
        const char *text;
        int64_t s;
        uint32_t nanosecond;
        bool zoned;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0, 0, true},
        {"2023-01-01T00:30:00Z", 1672533000, 0, true},
        {"2018-01-20T12:00Z", 1516449600, 0, true},
        {"2018-01-20t12:00z", 1516449600, 0, true},
        {"2018-01-20 12:00", 1516449600, 0, false},
        {"2018-01-20T13:00+01:00", 1516449600, 0, true},
        {"2018-01-20T13:00+01", 1516449600, 0, true},
        {"2018-01-20T13:00+0100", 1516449600, 0, true},
        {"2018-01-20T06:30-05:30", 1516449600, 0, true},
        {"20180120T120000Z", 1516449600, 0, true},
        {"20180120T12Z", 1516449600, 0, true},
        {"2018-W03-6T12:00Z", 1516449600, 0, true},
        {"2018W036T1200Z", 1516449600, 0, true},
        {"2018-020T12:00Z", 1516449600, 0, true},
        {"2018020T1200Z", 1516449600, 0, true},
        {"2024-11-30T06:00:00.125Z", 1732946400, 125000000, true},
        {"2024-11-30T06:00:00,5Z", 1732946400, 500000000, true},
        {"2024-11-30T06,5Z", 1732948200, 0, true},
        {"2024-11-30T06:00:00.1234567891Z", 1732946400, 123456789, true},
        {"2024-02-29", 1709164800, 0, false},
        {"2024-02", 1706745600, 0, false},
        {"2024", 1704067200, 0, false},
        {"2024-12-31T24:00:00Z", 1735689600, 0, true},
        {"2016-12-31T23:59:60Z", 1483228800, 0, true},
        {"2020-W53-7", 1609632000, 0, false},
        {"2026-W01", 1766966400, 0, false},
        {"0001-01-01T00:00:00Z", -62135596800, 0, true},
        {"9999-12-31T23:59:59Z", 253402300799, 0, true},
    };
    static const char *const bad[] = {"",
                                      "2018-1-20",
                                      "2018-13-01",
                                      "2018-02-29",
                                      "2018-01-20T",
                                      "2018T00:00Z",
                                      "2018-01T00:00Z",
                                      "2018-W03T00:00Z",
                                      "2018-01-20T25:00Z",
                                      "2018-01-20T12:60Z",
                                      "2018-01-20T12:00:61Z",
                                      "2018-01-20T24:00:01Z",
                                      "2018-01-20T12:00+24:00",
                                      "2018-01-20T12:00+1",
                                      "2018-01-20T12:00Zx",
                                      "2018-01-20T12:00:00.Z",
                                      "2018-W54-1",
                                      "2018-W00-1",
                                      "2018-366",
                                      "2018-01-20Z",
                                      "201801",
                                      "-2018-01-20",
                                      "12:00",
                                      "2018-01-20T12:0000Z",
                                      "0000-01-01"};

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct iso_time time;

        if (!iso_time_parse(good[i].text, &time))
            fail_msg("'%s' was refused", good[i].text);
        if (time.s != good[i].s || time.nanosecond != good[i].nanosecond || time.zoned != good[i].zoned)
            fail_msg("'%s' is %lld.%09u, zoned %d", good[i].text, (long long)time.s, time.nanosecond,
                     time.zoned);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct iso_time time = {.s = 42};

        if (iso_time_parse(bad[i], &time))
            fail_msg("'%s' was taken for %lld", bad[i], (long long)time.s);
    }
}

static void test_iso_times_are_written_as_read(void **state)
{
    uint64_t seed = 9;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        int64_t s = (int64_t)(test_uniform(&seed) * 315537897599.0) - INT64_C(62135596800), again;
        char text[ISO_TIME_TEXT_MAX];

        assert_true(iso_time_parse_utc(iso_time_format(s, text), false, &again));
        assert_int_equal(again, s);
    }
}

static void test_iso_durations(void **state)
{
    static const struct {
        const char *text;
        double s; /* NaN: refused */
    } cases[] = {{"PT30M", 1800},
                 {"PT0.5H", 1800},
                 {"P1DT12H", 129600},
                 {"P2W", 1209600},
                 {"PT1H30M5S", 5405},
                 {"00:05:00", 300},
                 {"1.02:30:00", 95400},
                 {"00:00:01.5", 1.5},
                 {"PT0S", 0},
                 {"P", NAN},
                 {"PT", NAN},
                 {"P1Y", NAN},
                 {"P1M", NAN},
                 {"PT1M1H", NAN},
                 {"PT1H1H", NAN},
                 {"1H", NAN},
                 {"PT-1H", NAN},
                 {"24:00:00", NAN},
                 {"00:05", NAN},
                 {"00:60:00", NAN},
                 {"P999999999999D", NAN},
                 {"", NAN}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double s = NAN;

        if (iso_duration_parse(cases[i].text, &s) == isnan(cases[i].s))
            fail_msg("'%s' gives %g", cases[i].text, s);
        if (!isnan(cases[i].s))
            check_double(s, cases[i].s);
    }
}

static void test_units_are_exact(void **state)
{
    static const struct {
        const char *unit;
        double value, expected;
    } cases[] = {{"g/kWh", 302, 302},         {"kg/MWh", 302, 302},
                 {"t/MWh", 0.5, 500},         {"lbs_co2_per_mwh", 870, 394.6253619},
                 {"LB/MWH", 1000, 453.59237}, {"g/MJ", 100, 360},
                 {"gCO2eq/kWh", 12, 12},      {"price_per_mwh", 85.5, 0.0855},
                 {"money/kWh", 0.3, 0.3}};
    enum grid_unit unit;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(grid_unit_parse(cases[i].unit, &unit));
        check_close(grid_unit_convert(unit, cases[i].value), cases[i].expected, 1e-15);
    }
    assert_false(grid_unit_parse("g/lb", &unit));
    check_double(units_kwh_from_j(3.6e6), 1.0);
    check_double(units_g_from_j(7.2e6, 250.0), 500.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iso_times),
        cmocka_unit_test(test_iso_times_are_written_as_read),
        cmocka_unit_test(test_iso_durations),
        cmocka_unit_test(test_units_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
