/* SPDX-License-Identifier: Apache-2.0 */
/* What a governor says of a training that is told to it, without any machine. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fake_tree.h"
#include "train/carbon/carbon_governor.h"
#include "train/carbon/carbon_head.h"

enum { HOUR_S = 3600, DAY_S = 86400 };

/* 2022-06-10 00:10 UTC. */
static const int64_t begin_s = 1654819800;

static const struct fly_power_point points[] = {{100.0, 100.0, 6.86},
                                                {150.0, 150.0, 5.76},
                                                {200.0, 200.0, 5.31},
                                                {250.0, 250.0, 5.04},
                                                {300.0, 260.0, 5.0}};

/* A training that is nothing but time. */
struct desk {
    struct clock clock;
    double now_s, jump_s;
    char directory[64], grid[96];
    struct carbon_governor_options options;
    struct carbon_keeper *keeper;
    struct carbon_governor *governor;
    struct carbon_progress progress;
    double limit_w;
};

static struct mono_time desk_now(void *state)
{
    const struct desk *desk = state;

    return (struct mono_time){(int64_t)(desk->now_s * 1e9)};
}

static struct wall_time desk_date(void *state)
{
    const struct desk *desk = state;

    return (struct wall_time){(begin_s + (int64_t)desk->jump_s) * 1000000000 + (int64_t)(desk->now_s * 1e9)};
}

static double half_at_noon(double unix_s)
{
    return 400.0 - 200.0 * exp(-pow((fmod(unix_s / HOUR_S, 24.0) - 12.0) / 4.0, 2.0));
}

static void write_grid(const struct desk *desk, const char *column)
{
    FILE *file = fopen(desk->grid, "w");

    assert_non_null(file);
    fprintf(file, "timestamp,%s\n", column);
    for (int64_t at = begin_s / DAY_S * DAY_S - 16 * DAY_S; at < begin_s + 3 * DAY_S; at += HOUR_S) {
        time_t moment = (time_t)at;
        char text[32];

        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&moment, &(struct tm){0}));
        fprintf(file, "%s,%.6f\n", text, half_at_noon((double)at));
    }
    fclose(file);
}

static void start(struct desk *desk, double max_slowdown)
{
    *desk = (struct desk){.limit_w = NAN, .progress = {.steps_left = 15000.0}};
    desk->clock = (struct clock){.name = "desk", .now = desk_now, .date = desk_date, .state = desk};
    /* In memory where that can be: a disk that others keep busy takes seconds for a slice. */
    snprintf(desk->directory, sizeof desk->directory, "%s/flyball-test-governor-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(desk->directory));
    snprintf(desk->grid, sizeof desk->grid, "%s/grid.csv", desk->directory);
    write_grid(desk, "g_per_kwh");
    desk->options = (struct carbon_governor_options){
        .carbon = {.size = sizeof desk->options.carbon, .source = desk->grid, .directory = desk->directory},
        .clock = &desk->clock,
        .max_slowdown = max_slowdown,
        .gpus = 1};
}

static void open_governor(struct desk *desk)
{
    struct carbon_keeper_options wanted = {.clock = &desk->clock, .directory = desk->directory};

    assert_int_equal(carbon_governor_head(&desk->options, &wanted.head, NULL), 0);
    assert_int_equal(carbon_keeper_open(&wanted, &desk->keeper, NULL), 0);
    carbon_keeper_turn(desk->keeper);
    desk->options.keeper = desk->keeper;
    assert_int_equal(carbon_governor_open(&desk->options, &desk->governor, NULL), 0);
}

static void stop(struct desk *desk)
{
    carbon_governor_close(desk->governor);
    carbon_keeper_close(desk->keeper, NULL);
    fake_tree_remove_at(desk->directory);
}

/* Asks, and does what it says. */
static void ask(struct desk *desk)
{
    double limit_w = carbon_governor_decide(desk->governor, &desk->progress);

    if (!isfinite(limit_w))
        return;
    desk->limit_w = limit_w;
    carbon_governor_stands(desk->governor, limit_w);
}

static void run(struct desk *desk, int steps)
{
    for (int i = 0; i < steps; i++) {
        ask(desk);
        for (size_t k = 0; k < COUNT(points); k++) {
            if (points[k].limit_w != desk->limit_w)
                continue;
            desk->now_s += points[k].time_s;
            desk->progress.step_time_s += points[k].time_s;
        }
        desk->progress.steps_done += 1.0;
        desk->progress.steps_left -= 1.0;
    }
}

static struct fly_carbon_report report_of(const struct desk *desk)
{
    struct fly_carbon_report report = {.size = sizeof report};

    carbon_governor_report(desk->governor, &report);
    return report;
}

static void tell_profile(struct desk *desk)
{
    assert_int_equal(carbon_governor_profile(desk->governor, points, COUNT(points), NULL), 0);
}

/* Nothing is said before the profile; then the limits of a day follow its sun. */
static void test_follows(void **state)
{
    struct desk desk;
    double noon_w;

    (void)state;
    start(&desk, 1.05);
    open_governor(&desk);
    ask(&desk);
    assert_true(isnan(desk.limit_w));
    assert_string_equal(report_of(&desk).reason, "the power profile is not measured yet");
    assert_int_equal(carbon_governor_reason(desk.governor), CARBON_UNKNOWN_GRID);
    tell_profile(&desk);
    run(&desk, 1);
    assert_true(desk.limit_w < 250.0);
    assert_int_equal(carbon_governor_reason(desk.governor), CARBON_FOLLOWS);
    check_close(report_of(&desk).intensity_g_per_kwh, 400.0, 1e-2);
    check_close(report_of(&desk).finish_s, 1.05 * 15000.0 * 5.0, 1e-3);
    while (desk.now_s < 12.0 * HOUR_S)
        run(&desk, 1);
    noon_w = desk.limit_w;
    assert_true(noon_w >= 250.0);
    while (desk.now_s < 19.0 * HOUR_S)
        run(&desk, 1);
    assert_true(desk.limit_w < noon_w);
    while (desk.progress.steps_left > 0.0)
        run(&desk, 1);
    assert_true(desk.progress.step_time_s <= 1.05 * 15000.0 * 5.0);
    assert_true(report_of(&desk).changes >= 2);
    stop(&desk);
}

/* Prices alone are made small as intensities are, and a reference is the past week's mean. */
static void test_money(void **state)
{
    struct desk desk;
    double sum = 0.0;

    (void)state;
    start(&desk, 1.05);
    write_grid(&desk, "price_per_kwh");
    desk.options.carbon.source = NULL;
    desk.options.carbon.price = desk.grid;
    open_governor(&desk);
    tell_profile(&desk);
    run(&desk, 1);
    assert_int_equal(carbon_governor_reason(desk.governor), CARBON_FOLLOWS);
    assert_true(isnan(report_of(&desk).intensity_g_per_kwh));
    for (int i = 0; i < 24; i++)
        sum += half_at_noon(i * HOUR_S);
    assert_true(isnan(carbon_governor_reference(desk.governor, CARBON_INTENSITY)));
    check_close(carbon_governor_reference(desk.governor, CARBON_PRICE), sum / 24.0, 1e-3);
    stop(&desk);
}

/* Another bound, and a clock that was set, ask for another plan at once. */
static void test_asks_anew(void **state)
{
    struct desk desk;
    uint32_t decisions;
    double limit_w;

    (void)state;
    start(&desk, 1.02);
    open_governor(&desk);
    tell_profile(&desk);
    run(&desk, 100);
    decisions = report_of(&desk).decisions;
    run(&desk, 1);
    assert_int_equal(report_of(&desk).decisions, decisions);
    desk.jump_s = 3.0 * HOUR_S;
    run(&desk, 1);
    assert_int_equal(report_of(&desk).decisions, decisions + 1);
    limit_w = desk.limit_w;
    carbon_governor_bound(desk.governor, 0.5);
    run(&desk, 1);
    assert_int_equal(report_of(&desk).decisions, decisions + 1);
    carbon_governor_bound(desk.governor, 1.3);
    run(&desk, 1);
    assert_int_equal(report_of(&desk).decisions, decisions + 2);
    assert_true(desk.limit_w < limit_w);
    stop(&desk);
}

/* What the machine around the GPUs draws makes slowness dear. */
static void test_host_power(void **state)
{
    static const struct {
        double host_w, all_host_w, limit_w;
    } rows[] = {{0.0, 0.0, 100.0}, {300.0, 0.0, 150.0}, {300.0, 700.0, 200.0}, {2000.0, 0.0, 300.0}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct desk desk;

        start(&desk, 2.0);
        desk.options.carbon.host_w = rows[i].host_w;
        desk.options.all_host_w = rows[i].all_host_w;
        desk.progress.steps_left = NAN;
        open_governor(&desk);
        tell_profile(&desk);
        run(&desk, 10);
        check_double(desk.limit_w, rows[i].limit_w);
        assert_string_equal(report_of(&desk).reason, "static limit: how many steps are left is not known");
        stop(&desk);
    }
}

/* Other ranks say nothing, and know the same functions. */
static void test_other_rank(void **state)
{
    struct desk desk;

    (void)state;
    start(&desk, 1.05);
    desk.options.rank = 1;
    open_governor(&desk);
    tell_profile(&desk);
    run(&desk, 10);
    assert_true(isnan(desk.limit_w));
    assert_string_equal(report_of(&desk).reason, "as rank 0 says");
    stop(&desk);
}

/* How often it is asked. */
static void test_every(void **state)
{
    static const struct {
        double step_s;
        uint64_t steps;
    } rows[] = {{0.001, 5000}, {0.3, 16}, {4.9, 1}, {5.1, 1}, {1000.0, 1}, {1e-9, 1000000}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_true(carbon_governor_every(rows[i].step_s) == rows[i].steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows),    cmocka_unit_test(test_money),
        cmocka_unit_test(test_asks_anew),  cmocka_unit_test(test_host_power),
        cmocka_unit_test(test_other_rank), cmocka_unit_test(test_every),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
