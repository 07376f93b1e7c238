/* SPDX-License-Identifier: Apache-2.0 */
/* flyballd's record as windows of meters and energies of processes: borders, newest rows, damage. */
#include "test.h"

#include <stdio.h>

#include "meter/tally/used.h"

#define LINE(what, gpu, rest)                                                                             \
    "{\"schema\":\"flyball.usage.line/1\",\"what\":\"" what "\",\"gpu\":0,\"uuid\":\"GPU-" gpu "\"," rest \
    "}\n"
#define GPU(gpu, at_s, uj) \
    LINE("gpu", gpu, "\"unix_ms\":" #at_s "000,\"energy_uj\":" #uj "000000,\"source\":\"emulated\"")
#define ROW(what, pid, start_s, told_s, energy, rest)                                                     \
    LINE(what, "a",                                                                                       \
         "\"kind\":\"process\",\"pid\":" #pid ",\"started_unix_ms\":" #start_s "000,\"unix_ms\":" #told_s \
         "000,\"energy_j\":" #energy ",\"half_width_j\":2,\"time_s\":50,\"user\":\"ada\"" rest)

static void take(struct used *used, const char *text, double since_s, double until_s)
{
    struct fly_error error = {.text = ""};

    used_init(used);
    if (used_take(used, text, strlen(text), "node1", &error) < 0 ||
        used_end(used, since_s, until_s, &error) < 0)
        fail_msg("%s", error.text);
}

static void test_windows(void **state)
{
    static const struct {
        const char *text;
        double since_s, until_s;
        size_t count;
        struct {
            double start_s, time_s, energy_j;
        } windows[2];
    } cases[] = {
        {GPU("a", 1000, 100), 0, 9000, 0, {{0, 0, 0}}},
        {GPU("a", 1000, 100) GPU("a", 1600, 700), 0, 9000, 1, {{1000, 600, 600}}},
        /* In any order, as files are read; each moment once. */
        {GPU("a", 1600, 700) GPU("a", 1000, 100) GPU("a", 1600, 700), 0, 9000, 1, {{1000, 600, 600}}},
        {GPU("a", 1000, 100) GPU("a", 1600, 700) GPU("a", 2200, 760),
         1300,
         1900,
         2,
         {{1300, 300, 300}, {1600, 300, 30}}},
        {GPU("a", 1000, 100) GPU("b", 1600, 700), 0, 9000, 0, {{0, 0, 0}}},
        /* A record that was begun anew says nothing of the time between. */
        {GPU("a", 1000, 100) GPU("a", 1600, 40) GPU("a", 1700, 50), 0, 9000, 1, {{1600, 100, 10}}},
        {GPU("a", 1000, 100) GPU("a", 1600, 700), 2000, 9000, 0, {{0, 0, 0}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct used used;

        take(&used, cases[i].text, cases[i].since_s, cases[i].until_s);
        if (used.window_count != cases[i].count)
            fail_msg("case %zu: %zu windows", i, used.window_count);
        for (size_t w = 0; w < used.window_count; w++) {
            check_close(used.windows[w].start_unix_s, cases[i].windows[w].start_s, 1e-12);
            check_close(used.windows[w].time_s, cases[i].windows[w].time_s, 1e-12);
            check_close(used.windows[w].energy_j, cases[i].windows[w].energy_j, 1e-12);
            assert_string_equal(used.windows[w].node, "node1");
        }
        assert_int_equal(used.emulated, used.window_count);
        used_deinit(&used);
    }
}

static void test_processes(void **state)
{
    static const struct {
        const char *text;
        double since_s, until_s;
        size_t count;
        double energy_j, half_width_j, time_s;
        const char *job;
    } cases[] = {
        {ROW("end", 7, 1000, 1100, 40, ",\"ended_unix_ms\":1100000"), 0, 9000, 1, 40, 2, 50, ""},
        {ROW("end", 7, 1000, 1100, 40, ",\"ended_unix_ms\":1100000"), 1050, 9000, 1, 20, 1, 25, ""},
        {ROW("end", 7, 1000, 1100, 40, ",\"ended_unix_ms\":1100000"), 1100, 9000, 0, 0, 0, 0, ""},
        /* The newest row has all of its energy, and is not added to those before. */
        {ROW("end", 7, 1000, 1100, 40, ",\"ended_unix_ms\":1100000")
             ROW("row", 7, 1000, 1200, 90, ",\"training_job\":\"resnet\"") ROW("row", 7, 1000, 1150, 60, ""),
         0, 9000, 1, 90, 2, 50, "resnet"},
        /* Without a start, it was there for its time before it was told. */
        {LINE("row", "a",
              "\"kind\":\"process\",\"pid\":7,\"unix_ms\":1100000,\"energy_j\":40,\"time_s\":100,\"half_"
              "width_j\":2"),
         1000, 1050, 1, 20, 1, 50, ""},
        {ROW("end", 7, 1000, 1100, null, ""), 0, 9000, 1, NAN, 2, 50, ""},
        /* What is of no single process is in the windows alone. */
        {LINE("row", "a", "\"kind\":\"idle\",\"unix_ms\":1100000,\"energy_j\":40")
             ROW("row", 0, 1000, 1100, 40, ""),
         0, 9000, 0, 0, 0, 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct used used;

        take(&used, cases[i].text, cases[i].since_s, cases[i].until_s);
        if (used.process_count != cases[i].count)
            fail_msg("case %zu: %zu processes", i, used.process_count);
        if (used.process_count > 0) {
            check_same(used.processes[0].energy_j, cases[i].energy_j, 1e-12);
            check_close(used.processes[0].half_width_j, cases[i].half_width_j, 1e-12);
            check_close(used.processes[0].time_s, cases[i].time_s, 1e-12);
            assert_string_equal(used.processes[0].training_job, cases[i].job);
        }
        assert_int_equal(used.damaged, 0);
        used_deinit(&used);
    }
}

static void test_damage(void **state)
{
    static const char text[] =
        "{\"schema\":\"flyball.usage.line/1\",\"what\":\"en\n\n{}\n[1]\n"
        "{\"schema\":\"flyball.usage.line/9\",\"what\":\"gpu\",\"gpu\":0,\"uuid\":\"x\",\"unix_ms\":1}\n" //
        GPU("a", 1000, 100) GPU("a", 1600, 700) "{\"schema\":\"flyball.us";
    struct used used;

    (void)state;
    take(&used, text, 0, 9000);
    assert_int_equal(used.damaged, 5);
    assert_int_equal(used.window_count, 1);
    used_deinit(&used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
