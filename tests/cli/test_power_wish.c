/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and durations as people write them. */
#include "cli/options/knob_options.h"
#include "test.h"

static void test_wishes(void **state)
{
    static const struct {
        const char *text;
        int64_t limit_mw; /* with a highest limit of 300 W; 0: refused */
    } cases[] = {
        {"150", 150000},   {"150W", 150000},
        {"150w", 150000},  {"150 W", 150000},
        {"187.5", 187500}, {"187.0004W", 187000},
        {"1", 1000},       {"100000", 100000000},
        {"60%", 180000},   {"100%", 300000},
        {"33.3%", 100000}, {"0.2%", 1000},
        {"", 0},           {"W", 0},
        {"0", 0},          {"0%", 0},
        {"0.9", 0},        {"-150", 0},
        {"+150", 0},       {"1e2", 0},
        {"150kW", 0},      {"150 ", 0},
        {"150  W", 0},     {" 150", 0},
        {"101%", 0},       {"100001", 0},
        {"60 %", 0},       {"60%%", 0},
        {"1.2.3", 0},      {".", 0},
        {"inf", 0},        {"11111111111111111111111111111111111111111", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct power_wish wish;
        int64_t limit_mw = power_wish_parse(cases[i].text, &wish) ? power_wish_limit_mw(&wish, 300000) : 0;

        if (limit_mw != cases[i].limit_mw)
            fail_msg("'%s': expected %lld mW, got %lld mW", cases[i].text, (long long)cases[i].limit_mw,
                     (long long)limit_mw);
    }
}

static void test_spans(void **state)
{
    static const struct {
        const char *text;
        double time_s; /* 0: refused */
    } cases[] = {
        {"90", 90},     {"90s", 90},       {"0.5", 0.5},    {"15min", 900}, {"15m", 900},       {"2h", 7200},
        {"1.5h", 5400}, {"1h30min", 5400}, {"1h30s", 3630}, {"1d", 86400},  {"365d", 31536000}, {"366d", 0},
        {"", 0},        {"0", 0},          {"0s", 0},       {"-1", 0},      {"2 h", 0},         {"h", 0},
        {"30min1h", 0}, {"1h1h", 0},       {"1h30", 0},     {"1m1min", 0},  {"2hours", 0},      {"1e3", 0},
        {"1.1.1s", 0},  {"2h ", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double time_s = 0;

        span_parse(cases[i].text, &time_s);
        if (time_s != cases[i].time_s)
            fail_msg("'%s': expected %g s, got %g s", cases[i].text, cases[i].time_s, time_s);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_wishes), cmocka_unit_test(test_spans)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
