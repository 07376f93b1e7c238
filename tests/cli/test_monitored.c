/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor makes of readings: energy since the first, power, and what is unknown; and amounts as
 * text. */
#include "cli/machine/monitored.h"

#include <stdio.h>

#include "cli/kit/amount.h"
#include "shapes/json_place.h"
#include "test.h"

enum { NONE = -1 };

/* A reading at a second: the counter in J and the power in W, or NONE. */
struct step {
    double at_s;
    double counter_j, power_w;
    double expected_j, expected_w; /* NAN: not known */
};

struct watch_case {
    const char *name;
    uint64_t modulus_uj;
    const char *source;
    size_t count;
    struct step steps[5];
};

static const struct watch_case cases[] = {
    {"a counter and a power",
     0,
     "counter",
     3,
     {{0, 500, 100, 0, 100}, {1, 620, 90, 120, 90}, {3, 700, 80, 200, 80}}},
    {"a counter alone",
     0,
     "counter",
     3,
     {{0, 500, NONE, 0, NAN}, {2, 620, NONE, 120, 60}, {3, 700, NONE, 200, 80}}},
    {"a counter that wraps", 1000000000, "counter", 2, {{0, 990, NONE, 0, NAN}, {1, 10, NONE, 20, 20}}},
    {"a counter that is reset",
     0,
     "counter",
     3,
     {{0, 500, 100, 0, 100}, {1, 5, 100, 100, 100}, {2, 105, 100, 200, 100}}},
    {"a counter that is reset, with no power beside it",
     0,
     "counter",
     3,
     {{0, 5000, NONE, 0, NAN}, {1, 5, NONE, NAN, NAN}, {2, 105, NONE, NAN, 100}}},
    {"a counter with one wrong reading",
     0,
     "counter",
     3,
     {{0, 5000, NONE, 0, NAN}, {1, 0, NONE, NAN, NAN}, {2, 5200, NONE, 200, NAN}}},
    {"a counter that fails once",
     0,
     "counter",
     3,
     {{0, 500, 100, 0, 100}, {1, NONE, 100, NAN, 100}, {2, 700, 100, 200, 100}}},
    {"a counter that is slower than we",
     0,
     "counter",
     4,
     {{0, 500, NONE, 0, NAN}, {1, 500, NONE, NAN, NAN}, {2, 620, NONE, 120, 60}, {3, 620, NONE, 120, NAN}}},
    {"a power alone",
     0,
     "integrated",
     3,
     {{0, NONE, 100, 0, 100}, {1, NONE, 200, 150, 200}, {3, NONE, 0, 350, 0}}},
    {"a power that fails once",
     0,
     "integrated",
     3,
     {{0, NONE, 100, 0, 100}, {1, NONE, NONE, NAN, NAN}, {2, NONE, 100, NAN, 100}}},
    {"nothing", 0, NULL, 2, {{0, NONE, NONE, NAN, NAN}, {1, NONE, NONE, NAN, NAN}}},
};

static struct device_reading reading_of(const struct step *step)
{
    struct device_reading reading = {.before = {(int64_t)(step->at_s * 1e9) - 1000},
                                     .after = {(int64_t)(step->at_s * 1e9) + 1000}};

    readings_fail(reading.values, QUANTITY_ALL, READING_UNSUPPORTED, 0);
    if (step->counter_j != NONE)
        reading.values[QUANTITY_ENERGY] =
            (struct reading){.value = (int64_t)(step->counter_j * 1e6), .state = READING_OK};
    if (step->power_w != NONE)
        reading.values[QUANTITY_POWER_INSTANT] =
            (struct reading){.value = (int64_t)(step->power_w * 1e3), .state = READING_OK};
    return reading;
}

static bool same(double found, double expected)
{
    return isnan(found) ? isnan(expected) : fabs(found - expected) < 1e-6;
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct device device = {.info.energy_modulus_uj = cases[i].modulus_uj};
        struct monitored watch;

        monitored_init(&watch, &device);
        assert_true(isnan(watch.energy_j));
        for (size_t j = 0; j < cases[i].count; j++) {
            const struct step *step = &cases[i].steps[j];
            struct device_reading reading = reading_of(step);

            monitored_take(&watch, &reading);
            if (!same(watch.energy_j, step->expected_j) || !same(watch.power_w, step->expected_w))
                fail_msg("%s, step %zu: %g J and %g W, expected %g J and %g W", cases[i].name, j,
                         watch.energy_j, watch.power_w, step->expected_j, step->expected_w);
            if (isnan(watch.energy_j))
                assert_true(watch.energy_reason[0] != '\0');
            assert_true(same(monitored_history_w(&watch, 0), watch.power_w));
        }
        if (cases[i].source == NULL)
            assert_null(watch.source);
        else
            assert_string_equal(watch.source, cases[i].source);
    }
}

static void test_history(void **state)
{
    struct device device = {.info.kind = DEVICE_GPU};
    struct monitored watch;

    (void)state;
    monitored_init(&watch, &device);
    for (int i = 0; i < MONITORED_HISTORY + 10; i++) {
        struct step step = {.at_s = i, .counter_j = NONE, .power_w = i};
        struct device_reading reading = reading_of(&step);

        assert_true(isnan(monitored_history_w(&watch, (size_t)i)));
        monitored_take(&watch, &reading);
    }
    check_double(monitored_history_w(&watch, 0), MONITORED_HISTORY + 9);
    check_double(monitored_history_w(&watch, MONITORED_HISTORY - 1), 10);
    assert_true(isnan(monitored_history_w(&watch, MONITORED_HISTORY)));
}

static void test_amounts(void **state)
{
    static const struct {
        double energy_j, uncertainty_j;
        const char *text;
    } energies[] = {
        {1402000, 2000, "1402.0 kJ +- 2.0 kJ"},
        {1402000, 4000, "1402 kJ +- 4 kJ"},
        {4.2, 0.31, "4.2 J +- 0.3 J"},
        {9999, NAN, "9999 J"},
        {10000, NAN, "10.00 kJ"},
        {12.345, NAN, "12.35 J"},
        {3.4e9, 5e6, "3400 MJ +- 5 MJ"},
        {NAN, 1, "unknown"},
        {0.5, 0.0001, "0.50000 J +- 0.00010 J"},
        {5e13, NAN, "50000 GJ"},
        {0, NAN, "0 J"},
        {-0.0, NAN, "0 J"},
    };
    static const struct {
        double time_s;
        const char *text;
    } times[] = {
        {0.5031, "0.503 s"},
        {12.34, "12.3 s"},
        {59.96, "1 min 00 s"},
        {3599.4, "59 min 59 s"},
        {3599.6, "1 h 00 min 00 s"},
        {4328, "1 h 12 min 08 s"},
        {NAN, "unknown"},
        {-1, "unknown"},
    };
    char text[AMOUNT_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(energies); i++)
        assert_string_equal(amount_energy(energies[i].energy_j, energies[i].uncertainty_j, "+-", text),
                            energies[i].text);
    for (size_t i = 0; i < COUNT(times); i++)
        assert_string_equal(amount_time(times[i].time_s, text), times[i].text);
    assert_string_equal(amount_power(324.4, text), "324 W");
    assert_string_equal(amount_power(32.44, text), "32.4 W");
    assert_string_equal(amount_power(NAN, text), "unknown");
    assert_string_equal(amount_share(0.61, text), "61 %");
    assert_string_equal(amount_share(0.004, text), "0.4 %");
    assert_string_equal(amount_share(0, text), "0 %");
    assert_string_equal(amount_share(NAN, text), "unknown");
}

static void test_throttle(void **state)
{
    char text[THROTTLE_TEXT_MAX];

    (void)state;
    assert_string_equal(throttle_text(0, text), "none");
    assert_string_equal(throttle_text(THROTTLE_IDLE | THROTTLE_APPLICATION_CLOCKS, text), "none");
    assert_string_equal(throttle_text(THROTTLE_POWER_CAP, text), "power cap");
    assert_string_equal(throttle_text(THROTTLE_HEAT_HARDWARE | THROTTLE_POWER_CAP | THROTTLE_IDLE, text),
                        "power cap, heat");
    assert_true(strlen(throttle_text(-1, text)) < THROTTLE_TEXT_MAX - 1);
}

static void test_places(void **state)
{
    static const char text[] = "{\n \"a\": \"}]\\\"{\",\n \"list\": [\n  {\"x\": 1},\n  {\"y\": [1, {}, "
                               "[]],\n   \"x\": -2e5\n  }],\n"
                               " \"b\": null}";
    static const struct {
        const char *path;
        size_t line;
    } places[] = {
        {"/a", 2}, {"/list", 3}, {"/list/0", 4}, {"/list/0/x", 4}, {"/list/1", 5},      {"/list/1/x", 6},
        {"/b", 8}, {"", 1},      {"/none", 1},   {"/list/7", 3},   {"/list/1/none", 5}, {"/a/b", 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++) {
        if (json_place_line(text, places[i].path) != places[i].line)
            fail_msg("'%s': line %zu, expected %zu", places[i].path, json_place_line(text, places[i].path),
                     places[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),    cmocka_unit_test(test_history), cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_throttle), cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
