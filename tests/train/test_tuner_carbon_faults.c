/* SPDX-License-Identifier: Apache-2.0 */
/* A training that follows the grid, in virtual time: what is not known, refused, or goes wrong. */
#include "test.h"

#include "carbon_scene.h"
#include "fake_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Figures of another year. */
static void write_old(const struct carbon_scene *scene)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/old.csv", scene->directory);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "timestamp,g_per_kwh\n2020-01-01T00:00:00Z,300\n2020-01-01T01:00:00Z,200\n");
    fclose(file);
}

/*
 * Where anything is not known, the best single limit within the bound stands, and the report says why. Along
 * a grid that is known to be flat two of them use the bound up, here that below it first or last.
 */
static void test_static_limit(void **state)
{
    static const struct {
        const char *source;
        double (*intensity)(double);
        uint64_t steps;
        int64_t finish_by_s;
        double limit_w;
        const char *reason;
    } rows[] = {
        {"old.csv", carbon_scene_sunny, 6000, 0, 200.0, "static limit: nothing is known of the grid"},
        {"grid.csv", carbon_scene_sunny, 0, 0, 200.0, "static limit: how many steps are left is not known"},
        {"grid.csv", carbon_scene_sunny, 0, 90000, 300.0,
         "fastest limit: how many steps are left is not known"},
        {"grid.csv", carbon_scene_constant, 6000, 0, 175.0,
         "two limits one after the other: the grid is the same all the time"},
        {"constant:300", carbon_scene_sunny, 6000, 0, 175.0,
         "two limits one after the other: the grid is the same all the time"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_carbon_report report;
        struct carbon_scene scene;
        char source[128];

        carbon_scene_start(&scene, 5.0, rows[i].steps, 1.10);
        carbon_scene_grid(&scene, rows[i].intensity, HOUR_S, 3.0 * DAY_S);
        write_old(&scene);
        snprintf(source, sizeof source, "%s/%s", scene.directory, rows[i].source);
        scene.carbon.source = strchr(rows[i].source, ':') != NULL ? rows[i].source : source;
        scene.carbon.finish_by_unix_s =
            rows[i].finish_by_s > 0 ? carbon_scene_begin_s + rows[i].finish_by_s : 0;
        carbon_scene_open(&scene);
        carbon_scene_run(&scene, 2500);
        report = carbon_scene_report(&scene);
        assert_string_equal(report.reason, rows[i].reason);
        check_double(report.limit_w, rows[i].limit_w);
        check_double(tuner_bench_limit_w(&scene.bench), rows[i].limit_w);
        assert_true(report.changes <= (strncmp(report.reason, "two", 3) == 0));
        carbon_scene_stop(&scene);
    }
}

/* Figures that stop coming in mid-training, and come again: no step fails, and the bound holds. */
static void test_outage(void **state)
{
    enum { STEPS = 12000 };
    struct carbon_scene scene;
    char away[128];

    (void)state;
    carbon_scene_start(&scene, 5.0, STEPS, 1.05);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, 3.0 * DAY_S);
    snprintf(away, sizeof away, "%s/away.csv", scene.directory);
    carbon_scene_open(&scene);
    carbon_scene_run(&scene, STEPS / 4);
    assert_int_equal(rename(scene.grid, away), 0);
    carbon_scene_run(&scene, STEPS / 2);
    assert_int_equal(rename(away, scene.grid), 0);
    carbon_scene_run(&scene, STEPS - scene.steps);
    assert_true(scene.step_time_s <= 1.05 * STEPS * 5.0);
    assert_true(scene.changes > 0);
    carbon_scene_stop(&scene);
}

/* A file that ends: what is usual at that time of day is followed on. */
static void test_figures_end(void **state)
{
    enum { STEPS = 12000 };
    struct carbon_scene scene;

    (void)state;
    carbon_scene_start(&scene, 5.0, STEPS, 1.05);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, 3.0 * HOUR_S);
    carbon_scene_open(&scene);
    carbon_scene_run(&scene, STEPS);
    assert_true(scene.step_time_s <= 1.05 * STEPS * 5.0);
    carbon_scene_stop(&scene);
}

/* What cannot follow the grid, and what nobody can have meant. */
static void test_refused(void **state)
{
    enum field { KNOB, KIND, PER_G, PER_MONEY, SOURCE, HOST, PUE, SIZE, FINISH, SLOWDOWN };
    static const struct {
        enum field field;
        double value;
        const char *text;
    } rows[] = {
        {KNOB, FLY_TUNER_CLOCK, "the knob is 'clock'"},
        {KIND, FLY_OBJECTIVE_TIME, "the objective 'time'"},
        {KIND, FLY_OBJECTIVE_LOWEST_LIMIT, "the objective 'lowest limit'"},
        {PER_G, -1.0, "expected 0 or more"},
        {PER_G, NAN, "expected 0 or more"},
        {PER_MONEY, 1.0, "money has a weight and no source"},
        {SOURCE, 0.0, "neither a source of intensities nor one of prices"},
        {HOST, -1.0, "host power of -1 W"},
        {PUE, 0.5, "PUE of 0.5"},
        {SIZE, 8.0, "options.size is 8"},
        {FINISH, -1.0, "before 1970"},
        {SLOWDOWN, 0.5, "a bound of 0.5 times"},
    };
    struct carbon_scene scene;

    (void)state;
    carbon_scene_start(&scene, 5.0, 1000, 1.05);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, DAY_S);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_tuner_options options = scene.options;
        struct fly_carbon_options carbon = scene.carbon;
        struct fly_error error = {.text = ""};
        struct fly_tuner *tuner;
        double value = rows[i].value;

        options.carbon = &carbon;
        switch (rows[i].field) {
        case KNOB:
            options.knob = (enum fly_tuner_knob)value;
            break;
        case KIND:
            options.objective.kind = (enum fly_objective_kind)value;
            break;
        case PER_G:
            carbon.per_g = value;
            break;
        case PER_MONEY:
            carbon.per_money = value;
            break;
        case SOURCE:
            carbon.source = NULL;
            break;
        case HOST:
            carbon.host_w = value;
            break;
        case PUE:
            carbon.pue = value;
            break;
        case SIZE:
            carbon.size = (size_t)value;
            break;
        case FINISH:
            carbon.finish_by_unix_s = (int64_t)value;
            break;
        case SLOWDOWN:
            options.objective.max_slowdown = value;
            break;
        }
        assert_int_equal(tuner_new(&options, &scene.clock, &tuner, &error), FLY_EUSAGE);
        if (strstr(error.text, rows[i].text) == NULL)
            fail_msg("'%s' is not in '%s'", rows[i].text, error.text);
    }
    carbon_scene_open(&scene);
    carbon_scene_stop(&scene);
}

/* Without carbon there is no report; disabled, nothing is turned or written. */
static void test_not_followed(void **state)
{
    struct fly_carbon_report report = {.size = 1};
    struct carbon_scene scene;

    (void)state;
    carbon_scene_start(&scene, 5.0, 1000, 1.05);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, DAY_S);
    setenv("FLYBALL_DISABLE", "1", 1);
    carbon_scene_open(&scene);
    unsetenv("FLYBALL_DISABLE");
    assert_int_equal(fly_tuner_carbon(scene.tuner, &report), FLY_EUSAGE);
    report.size = sizeof report;
    assert_int_equal(fly_tuner_carbon(scene.tuner, &report), FLY_ESTATE);
    for (int i = 0; i < 200; i++)
        tuner_bench_step(&scene.bench, scene.tuner);
    assert_int_equal(scene.bench.sets, 0);
    fly_tuner_free(scene.tuner);
    scene.options.carbon = NULL;
    assert_int_equal(tuner_new(&scene.options, &scene.clock, &scene.tuner, NULL), 0);
    assert_int_equal(fly_tuner_carbon(scene.tuner, &report), FLY_ESTATE);
    carbon_scene_stop(&scene);
}

/* Another program's limit ends following, and stays. */
static void test_foreign_change(void **state)
{
    struct carbon_scene scene;
    struct fly_tuner_report report;

    (void)state;
    carbon_scene_start(&scene, 5.0, 10000, 1.10);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, 3.0 * DAY_S);
    carbon_scene_open(&scene);
    carbon_scene_run(&scene, 1000);
    emulator_set_limit_w(scene.bench.emulator, 0, 275.0, NULL);
    carbon_scene_run(&scene, 5000);
    report = tuner_bench_report(scene.tuner);
    assert_int_equal(report.state, FLY_TUNER_STOPPED);
    assert_int_equal(report.reason, FLY_TUNER_FOREIGN_CHANGE);
    check_double(tuner_bench_limit_w(&scene.bench), 275.0);
    (void)carbon_scene_report(&scene);
    emulator_set_limit_w(scene.bench.emulator, 0, 300.0, NULL);
    carbon_scene_stop(&scene);
}

/* The copy in a forked child is inert. */
static void test_fork(void **state)
{
    struct carbon_scene scene;
    double limit_w;
    int status = -1;
    pid_t child;

    (void)state;
    carbon_scene_start(&scene, 5.0, 10000, 1.10);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, 3.0 * DAY_S);
    carbon_scene_open(&scene);
    carbon_scene_run(&scene, 1000);
    limit_w = tuner_bench_limit_w(&scene.bench);
    assert_true(limit_w < 300.0);
    child = fork();
    if (child == 0) {
        struct fly_carbon_report report = {.size = sizeof report};
        bool inert = fly_tuner_epoch_end(scene.tuner) == FLY_ESTATE &&
                     fly_tuner_carbon(scene.tuner, &report) == FLY_ESTATE;

        fly_tuner_free(scene.tuner);
        carbon_keeper_close(scene.keeper, NULL);
        _exit(inert ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_double(tuner_bench_limit_w(&scene.bench), limit_w);
    carbon_scene_stop(&scene);
}

/* What an earlier training measured is not measured again; what it left out is. */
static void test_saved_profile(void **state)
{
    static const uint64_t steps[] = {700, 20000, 20000};
    char directory[] = "/tmp/flyball-test-profiles-XXXXXX";
    uint64_t search_steps[COUNT(steps)];

    (void)state;
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct carbon_scene scene;

        carbon_scene_start(&scene, 5.0, steps[i], 1.05);
        carbon_scene_grid(&scene, carbon_scene_restless, 900, 3.0 * DAY_S);
        scene.options.profile_directory = directory;
        carbon_scene_open(&scene);
        carbon_scene_run(&scene, 690);
        search_steps[i] = tuner_bench_report(scene.tuner).search_steps;
        assert_int_equal(tuner_bench_report(scene.tuner).reused, i > 0);
        assert_true(carbon_scene_report(&scene).decisions > 0);
        carbon_scene_stop(&scene);
    }
    assert_true(search_steps[0] > 100 && search_steps[1] > 100);
    assert_true(search_steps[0] + search_steps[1] < 600);
    assert_true(search_steps[2] < 60); /* no limit anew; the highest may be looked at */
    fake_tree_remove_at(directory);
}

/* An account of the tuner's own has all steps, the profile, and the limits as they stood. */
static void test_own_account(void **state)
{
    struct ledger_content content;
    struct carbon_scene scene;
    struct arena arena;
    double steps = 0.0, under = 0.0;
    char **paths;
    size_t count;

    (void)state;
    carbon_scene_start(&scene, 5.0, 3000, 1.10);
    carbon_scene_grid(&scene, carbon_scene_sunny, HOUR_S, 3.0 * DAY_S);
    scene.carbon.host_w = 80.0;
    scene.carbon.pue = 1.2;
    assert_int_equal(tuner_new(&scene.options, &scene.clock, &scene.tuner, NULL), 0);
    carbon_scene_run(&scene, 2000);
    assert_int_equal(strncmp(carbon_scene_report(&scene).account, scene.directory, strlen(scene.directory)),
                     0);
    fly_tuner_free(scene.tuner);
    scene.tuner = NULL;
    arena_init(&arena, 16 << 20);
    assert_int_equal(carbon_ledger_list(scene.directory, &arena, &paths, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(carbon_ledger_read(paths[0], &arena, &content, NULL), 0);
    for (size_t i = 0; i < content.slice_count; i++) {
        steps += content.slices[i].steps;
        if (content.slices[i].limit_w == scene.limit_w)
            under += content.slices[i].steps;
    }
    check_double(steps, 2000.0);
    assert_true(under > 1000.0);
    assert_int_equal(content.point_count, scene.profile.count);
    assert_string_equal(content.head.job, "job");
    assert_string_equal(content.head.sources[CARBON_INTENSITY], scene.grid);
    check_double(content.head.surroundings.host_w, 80.0);
    check_double(content.head.max_slowdown, 1.10);
    assert_int_equal(content.head.steps, 3000);
    arena_deinit(&arena);
    carbon_scene_stop(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static_limit),  cmocka_unit_test(test_outage),
        cmocka_unit_test(test_figures_end),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_followed),  cmocka_unit_test(test_foreign_change),
        cmocka_unit_test(test_fork),          cmocka_unit_test(test_own_account),
        cmocka_unit_test(test_saved_profile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
