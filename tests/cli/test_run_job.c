/* SPDX-License-Identifier: Apache-2.0 */
/* What `flyball run --job` reads: lines of a program, times to finish by, its output on the way. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/measure/run_capture.h"
#include "cli/options/carbon_options.h"
#include "train/program/step_lines.h"

static void test_lines(void **state)
{
    static const struct {
        const char *line;
        enum step_event event;
        uint32_t epoch;
        double metric;
    } cases[] = {
        {"", STEP_BEGIN, 0, 0},
        {"step 3", STEP_BEGIN, 0, 0},
        {"sessions", STEP_BEGIN, 0, 0},
        {"epoch 3", STEP_EPOCH_BEGIN, 0, 0},
        {"epoch end", STEP_EPOCH_END, 0, 0},
        {"epoch 3 metric 0.61", STEP_REPORT, 3, 0.61},
        {"epoch 0 metric -1e-3", STEP_REPORT, 0, -1e-3},
        {"epoch 4294967295 metric nan", STEP_REPORT, UINT32_MAX, NAN},
        {"epoch 4294967296 metric 1", STEP_MALFORMED, 0, 0},
        {"epoch 3 metric", STEP_MALFORMED, 0, 0},
        {"epoch 3 metric inf", STEP_MALFORMED, 0, 0},
        {"epoch 3 metric 0.6 ", STEP_MALFORMED, 0, 0},
        {"epoch  3", STEP_MALFORMED, 0, 0},
        {"epoch", STEP_MALFORMED, 0, 0},
        {"epoch three", STEP_MALFORMED, 0, 0},
        {"epoch 3 loss 0.6", STEP_MALFORMED, 0, 0},
        {"session", STEP_SESSION, 0, 0},
        {"out of memory", STEP_OUT_OF_MEMORY, 0, 0},
        {"a\x01z", STEP_MALFORMED, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct step_report report = {.epoch = 77, .metric = 77.0};
        struct step_sender sender;
        enum step_event event = step_line_event(cases[i].line, strlen(cases[i].line), &sender, &report);

        if (event != cases[i].event)
            fail_msg("'%s' is %d, expected %d", cases[i].line, (int)event, (int)cases[i].event);
        if (event != STEP_REPORT) {
            assert_int_equal(report.epoch, 77);
            continue;
        }
        assert_int_equal(report.epoch, cases[i].epoch);
        if (isnan(cases[i].metric))
            assert_true(isnan(report.metric));
        else
            check_double(report.metric, cases[i].metric);
    }
}

/* From Tuesday 2026-11-10T12:00 universal time. */
static void test_finish_times(void **state)
{
    static const int64_t now_s = 1794312000;
    static const struct {
        const char *text;
        int64_t after_s; /* now; 0: refused */
    } cases[] = {
        {"12:01", 60},
        {"12:00", 86400},
        {"07:30", 70200},
        {"2026-11-10T13:00", 3600},
        {"2026-11-10 13:00:05", 3605},
        {"2026-11-10T13:00Z", 3600},
        {"24:00", 0},
        {"7:30", 0},
        {"12:60", 0},
        {"12-01", 0},
        {"2026-02-30T12:00", 0},
        {"2026-13-01T12:00", 0},
        {"2026-11-10", 0},
        {"2026-11-10T13:60", 0},
        {"2026-11-10T25:00", 0},
        {"2026-11-10T13:00:01+01:00", 1},
        {"2026-W46-2T13:00Z", 3600},
        {"20261110T1300", 3600},
        {"2026-11-10T24:00", 43200},
        {"12:0a", 0},
        {"1a:00", 0},
        {"", 0},
        {"tomorrow", 0},
    };

    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t then_s = -1;
        bool read = finish_time_parse(cases[i].text, now_s, &then_s);

        if (read != (cases[i].after_s != 0) || (read && then_s != now_s + cases[i].after_s))
            fail_msg("'%s' is %s, %lld s from now; expected %lld", cases[i].text, read ? "read" : "refused",
                     (long long)(then_s - now_s), (long long)cases[i].after_s);
    }
}

/* Clocks in Berlin show 02:30 twice on 2026-10-25, and never on 2026-03-29. */
static void test_finish_times_of_a_zone(void **state)
{
    static const struct {
        const char *text;
        int64_t now_s, then_s;
    } cases[] = {
        {"2026-11-10T13:00", 0, 1794312000},  {"2026-07-10T13:00", 0, 1783681200},
        {"2026-07-10T13:00Z", 0, 1783688400}, {"07:30", 1792879200, 1792909800},
        {"07:30", 1774738800, 1774762200},    {"23:59", 1792879140, 1792969140},
    };

    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t then_s = -1;

        if (!finish_time_parse(cases[i].text, cases[i].now_s, &then_s) || then_s != cases[i].then_s)
            fail_msg("'%s' from %lld is %lld; expected %lld", cases[i].text, (long long)cases[i].now_s,
                     (long long)then_s, (long long)cases[i].then_s);
    }
    setenv("TZ", "UTC", 1);
    tzset();
}

static void note(void *state, const char *line)
{
    char *lines = state;

    strncat(lines, line, 200);
    strncat(lines, "|", 2);
}

/* What is written comes out as it was, and its lines are seen; a last one without end too. */
static void test_capture(void **state)
{
    static const char text[] = "one\nbar 1\rbar 2\r\n\n\ntwo\xff\nlast";
    char lines[1024] = "", copy[64] = "";
    struct run_capture capture;
    int ends[2], own;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    own = dup(ends[1]);
    assert_int_equal(capture_open(&capture, own, NULL), 0);
    capture_put(&capture);
    assert_int_equal(write(own, text, sizeof text - 1), sizeof text - 1);
    capture_take_back(&capture);
    assert_true(capture_pass(&capture, note, lines));
    assert_false(capture_pass(&capture, note, lines));
    assert_string_equal(lines, "one|bar 1|bar 2|two\xff|");
    capture_end(&capture, note, lines);
    assert_string_equal(lines, "one|bar 1|bar 2|two\xff|last|");
    capture_flush(&capture);
    assert_int_equal(read(ends[0], copy, sizeof copy), sizeof text - 1);
    assert_string_equal(copy, text);
    capture_close(&capture);
    capture_close(&capture);
    close(own);
    close(ends[0]);
    close(ends[1]);
}

struct reading {
    int source;
    size_t sum;
};

static void *read_all(void *state)
{
    struct reading *reading = state;
    char bytes[1 << 12];
    ssize_t count;

    while ((count = read(reading->source, bytes, sizeof bytes)) > 0)
        reading->sum += (size_t)count;
    return NULL;
}

/* A reader that does not read: lines are seen all the same, and everything is there once it does. */
static void test_capture_slow_reader(void **state)
{
    static char wide[300000];
    char lines[1024] = "";
    struct run_capture capture;
    struct reading reading = {.sum = 0};
    pthread_t reader;
    int ends[2], own;

    (void)state;
    memset(wide, '\r', sizeof wide);
    assert_int_equal(pipe(ends), 0);
    own = dup(ends[1]);
    assert_int_equal(capture_open(&capture, own, NULL), 0);
    capture_put(&capture);
    assert_int_equal(write(own, wide, sizeof wide), sizeof wide);
    assert_int_equal(write(own, "seen\n", 5), 5);
    capture_take_back(&capture);
    while (capture_pass(&capture, note, lines))
        ;
    assert_string_equal(lines, "seen|");
    assert_true(capture_waits(&capture));
    reading.source = ends[0];
    assert_int_equal(pthread_create(&reader, NULL, read_all, &reading), 0);
    capture_flush(&capture);
    assert_false(capture_waits(&capture));
    capture_close(&capture);
    close(own);
    close(ends[1]);
    pthread_join(reader, NULL);
    assert_int_equal(reading.sum, sizeof wide + 5);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_finish_times),
        cmocka_unit_test(test_finish_times_of_a_zone),
        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_capture_slow_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
