/* SPDX-License-Identifier: Apache-2.0 */
/* What recordings say that devices took: counters, wraps, resets, power, silence, borders; and moments in
 * words. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/report/report_rows.h"
#include "meter/tally/recorded.h"

/* Begins at 1970-01-01T00:16:40.25Z, which is 1000.25 s. */
#define HEAD                                                                                   \
    "{\"schema\":\"flyball.recording/1\",\"flyball\":\"1\",\"date\":\"1970-01-01T00:16:40Z\"," \
    "\"unix_us\":1000250000,\"interval_s\":1,\"devices\":1}\n"
#define DEVICE(modulus)                                                                                   \
    "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"GPU-a\",\"emulated\":false,\"energy_modulus_uj\":" modulus \
    ",\"sensor\":{}}\n"
#define COUNTER(t, j) "{\"t\":" #t "000000000,\"d\":0,\"energy_uj\":" #j "000000}\n"
#define POWER(t, w) "{\"t\":" #t "000000000,\"d\":0,\"power_average_mw\":" #w "000}\n"

struct window {
    double start_s, time_s, energy_j;
};

static struct recorded read_text(const char *text, double since_s, double until_s)
{
    char path[] = "/tmp/flyball-recorded-XXXXXX";
    int file = mkstemp(path);
    struct recorded recorded;
    struct fly_error error = {.text = ""};

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    recorded_init(&recorded);
    if (recorded_read(&recorded, path, "node1", since_s, until_s, &error) < 0)
        fail_msg("%s", error.text);
    unlink(path);
    return recorded;
}

static void test_windows(void **state)
{
    static const struct {
        const char *text;
        double since_s, until_s;
        size_t count;
        struct window windows[3];
    } cases[] = {
        /* A counter; a reading in between without a change; cut by a border of the period. */
        {HEAD DEVICE("null") COUNTER(10, 100)
             COUNTER(12, 140) "{\"t\":13000000000,\"d\":0}\n" COUNTER(14, 150),
         0,
         9000,
         1,
         {{1010.25, 4, 50}}},
        {HEAD DEVICE("null") COUNTER(10, 100) COUNTER(12, 140) COUNTER(14, 150),
         1011.25,
         1013.25,
         1,
         {{1011.25, 2, 20 + 5}}},
        {HEAD DEVICE("null") COUNTER(10, 100) COUNTER(12, 140), 1012.25, 9000, 0, {{0, 0, 0}}},
        /* A wrap counts; a counter that was reset ends a window, as does a reading that failed. */
        {HEAD DEVICE("1000000000") COUNTER(10, 990) COUNTER(12, 10), 0, 9000, 1, {{1010.25, 2, 20}}},
        {HEAD DEVICE("null") COUNTER(10, 100) COUNTER(12, 140) COUNTER(14, 5) COUNTER(16, 25),
         0,
         9000,
         2,
         {{1010.25, 2, 40}, {1014.25, 2, 20}}},
        {HEAD DEVICE("null") COUNTER(10, 100) COUNTER(
             12, 140) "{\"t\":14000000000,\"d\":0,\"energy_uj\":[\"device_lost\",15]}\n" COUNTER(16, 200)
             COUNTER(18, 210),
         0,
         9000,
         2,
         {{1010.25, 2, 40}, {1016.25, 2, 10}}},
        /* Power alone, which says nothing across a long silence. */
        {HEAD DEVICE("null") POWER(10, 100) POWER(12, 200) POWER(14, 200),
         0,
         9000,
         1,
         {{1010.25, 4, 300 + 400}}},
        {HEAD DEVICE("null") POWER(10, 100) POWER(12, 100) POWER(100, 100) POWER(101, 300),
         0,
         9000,
         2,
         {{1010.25, 2, 200}, {1100.25, 1, 200}}},
        {HEAD DEVICE("null") COUNTER(10, 100), 0, 9000, 0, {{0, 0, 0}}},
        {HEAD DEVICE("null"), 0, 9000, 0, {{0, 0, 0}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recorded recorded = read_text(cases[i].text, cases[i].since_s, cases[i].until_s);

        assert_int_equal(recorded.count, cases[i].count);
        for (size_t k = 0; k < recorded.count; k++) {
            const struct tally_window *window = &recorded.windows[k];

            assert_string_equal(window->uuid, "GPU-a");
            assert_string_equal(window->node, "node1");
            check_close(window->start_unix_s, cases[i].windows[k].start_s, 1e-12);
            check_close(window->time_s, cases[i].windows[k].time_s, 1e-9);
            check_close(window->energy_j, cases[i].windows[k].energy_j, 1e-9);
        }
        recorded_deinit(&recorded);
    }
}

static void test_no_recording(void **state)
{
    struct recorded recorded;
    struct fly_error error;

    (void)state;
    recorded_init(&recorded);
    assert_int_equal(recorded_read(&recorded, "/nonexistent", "", 0, 1, &error), FLY_ENOTFOUND);
    check_contains(error.text, "'/nonexistent' cannot be read");
    recorded_deinit(&recorded);
}

static void test_moments(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } cases[] = {
        {"30d", 1000000000 - 30 * 86400},
        {"12h", 1000000000 - 12 * 3600},
        {"90m", 1000000000 - 90 * 60},
        {"0s", 1000000000},
        {"2w", 1000000000 - 14 * 86400},
        {"2001-09-09", 999993600},
        {"2001-09-09T01:46:40Z", 1000000000},
        {"2001-09-09T01:46", 999999960},
        {"07:30", -1},
        {"30", -1},
        {"d", -1},
        {"", -1},
        {"30x", -1},
        {"-30d", -1},
        {"9999999d", -1},
        {"2001-02-30", -1},
        {"2001-09-09T", -1},
    };

    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t found = -1000000;

        assert_int_equal(report_moment_parse(cases[i].text, INT64_C(1000000000) * 1000000, &found),
                         cases[i].seconds >= 0);
        assert_int_equal(found / 1000000, cases[i].seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_no_recording),
        cmocka_unit_test(test_moments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
