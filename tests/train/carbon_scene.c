/* SPDX-License-Identifier: Apache-2.0 */
#include "carbon_scene.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fake_tree.h"
#include "train/carbon/carbon_governor.h"
#include "train/carbon/carbon_head.h"

const int64_t carbon_scene_begin_s = 1654819800;

static struct mono_time scene_now(void *state)
{
    struct carbon_scene *scene = state;

    return scene->bench.clock.now(scene->bench.clock.state);
}

double carbon_scene_elapsed_s(struct carbon_scene *scene)
{
    return mono_elapsed_s(scene->began, scene_now(scene));
}

static struct wall_time scene_date(void *state)
{
    struct carbon_scene *scene = state;

    return (struct wall_time){carbon_scene_begin_s * 1000000000 +
                              (int64_t)(carbon_scene_elapsed_s(scene) * 1e9)};
}

static void scene_sleep(void *state, struct mono_time until)
{
    struct carbon_scene *scene = state;

    scene->bench.clock.sleep_until(scene->bench.clock.state, until);
}

/* Much sun: half as much at noon, and days differ. */
double carbon_scene_sunny(double unix_s)
{
    double hour = fmod(unix_s / HOUR_S, 24.0), day = floor(unix_s / DAY_S);

    return 400.0 - (150.0 + 20.0 * sin(day)) * exp(-pow((hour - 12.0) / 4.0, 2.0));
}

/* Another value every few minutes. */
double carbon_scene_restless(double unix_s)
{
    return 300.0 + 100.0 * sin(unix_s / 700.0) + 80.0 * sin(unix_s / 311.0);
}

double carbon_scene_constant(double unix_s)
{
    (void)unix_s;
    return 300.0;
}

/* Appends the periods that begin, or with `lags` end, by that time after the begin. */
static void write_periods(struct carbon_scene *scene, double until_s)
{
    int64_t end_s = carbon_scene_begin_s + (int64_t)ceil(until_s) - (scene->lags ? scene->period_s - 1 : 0);
    FILE *file;

    if (scene->written_s >= end_s)
        return;
    file = fopen(scene->grid, "a");
    assert_non_null(file);
    for (; scene->written_s < end_s; scene->written_s += scene->period_s) {
        time_t moment = (time_t)scene->written_s;
        char text[32];

        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&moment, &(struct tm){0}));
        fprintf(file, "%s,%.3f\n", text, scene->intensity((double)scene->written_s));
    }
    fclose(file);
}

void carbon_scene_grid(struct carbon_scene *scene, double (*intensity)(double), int period_s, double until_s)
{
    FILE *file = fopen(scene->grid, "w");

    assert_non_null(file);
    fprintf(file, "timestamp,g_per_kwh\n");
    fclose(file);
    scene->intensity = intensity;
    scene->period_s = period_s;
    scene->written_s = carbon_scene_begin_s / DAY_S * DAY_S - 16 * DAY_S;
    write_periods(scene, scene->lags ? floor(carbon_scene_elapsed_s(scene)) : until_s);
}

/* Steps of some seconds, so that days are few of them. */
void carbon_scene_start(struct carbon_scene *scene, double step_s, uint64_t steps, double max_slowdown)
{
    memset(scene, 0, sizeof *scene);
    tuner_profile_made(&scene->profile, 1);
    for (size_t i = 0; i < scene->profile.count; i++)
        scene->profile.step_s[i] *= step_s / 0.2;
    tuner_bench_start(&scene->bench, &scene->profile, "exact");
    scene->clock = (struct clock){"scene", scene_now, scene_date, scene_sleep, scene};
    scene->began = scene_now(scene);
    /* In memory where that can be: a disk that others keep busy takes seconds for a slice. */
    snprintf(scene->directory, sizeof scene->directory, "%s/flyball-test-carbon-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(scene->directory));
    snprintf(scene->grid, sizeof scene->grid, "%s/grid.csv", scene->directory);
    scene->carbon = (struct fly_carbon_options){
        .size = sizeof scene->carbon, .source = scene->grid, .steps = steps, .directory = scene->directory};
    scene->options =
        tuner_bench_options(&scene->bench, (struct fly_objective){FLY_OBJECTIVE_ENERGY, 0.0, max_slowdown});
    scene->options.carbon = &scene->carbon;
    scene->first_s = NAN;
    scene->shortest_s = INFINITY;
}

/* An account of the test's own, whose turns are the test's. */
void carbon_scene_open(struct carbon_scene *scene)
{
    struct carbon_keeper_options wanted = {
        .clock = &scene->clock, .meter = scene->bench.meter, .directory = scene->directory};
    struct carbon_governor_options governor = {
        .carbon = scene->carbon, .max_slowdown = scene->options.objective.max_slowdown, .gpus = 1};
    struct fly_error error = {.text = ""};

    assert_int_equal(carbon_governor_head(&governor, &wanted.head, NULL), 0);
    assert_int_equal(carbon_keeper_open(&wanted, &scene->keeper, NULL), 0);
    carbon_keeper_turn(scene->keeper);
    if (tuner_new_in(&scene->options, &scene->clock, scene->keeper, &scene->tuner, &error) < 0)
        fail_msg("%s", error.text);
}

void carbon_scene_stop(struct carbon_scene *scene)
{
    fly_tuner_free(scene->tuner);
    carbon_keeper_close(scene->keeper, NULL);
    check_double(tuner_bench_limit_w(&scene->bench), 300.0);
    tuner_bench_stop(&scene->bench);
    fake_tree_remove_at(scene->directory);
}

struct fly_carbon_report carbon_scene_report(const struct carbon_scene *scene)
{
    struct fly_carbon_report report = {.size = sizeof report};

    assert_int_equal(fly_tuner_carbon(scene->tuner, &report), 0);
    return report;
}

/* Notes a change of the limit once the plan decides. */
static void note_limit(struct carbon_scene *scene)
{
    double limit_w = tuner_bench_limit_w(&scene->bench), now_s = carbon_scene_elapsed_s(scene);

    if (fly_tuner_state(scene->tuner) == FLY_TUNER_SEARCHING || carbon_scene_report(scene).decisions == 0)
        return;
    if (isnan(scene->first_s)) {
        scene->first_s = now_s;
    } else if (limit_w != scene->limit_w) {
        scene->changes++;
        if (limit_w < scene->limit_w)
            scene->shortest_s = fmin(scene->shortest_s, now_s - scene->changed_s);
    }
    if (limit_w != scene->limit_w)
        scene->changed_s = now_s;
    scene->limit_w = limit_w;
}

/* A step; while nothing is measured no sample is wanted either. */
void carbon_scene_step(struct carbon_scene *scene)
{
    struct tuner_bench *bench = &scene->bench;
    double before_s, limit_w, power_w;
    size_t place;

    if (scene->lags)
        write_periods(scene, floor(carbon_scene_elapsed_s(scene)));
    if (scene->lags || carbon_scene_elapsed_s(scene) - scene->looked_s >= 300.0) {
        scene->looked_s = carbon_scene_elapsed_s(scene);
        if (scene->keeper != NULL)
            carbon_keeper_turn(scene->keeper);
    }
    before_s = carbon_scene_elapsed_s(scene);
    assert_int_equal(fly_tuner_step_begin(scene->tuner), 0);
    note_limit(scene);
    limit_w = tuner_bench_limit_w(bench);
    place = tuner_profile_find(&scene->profile, limit_w);
    power_w = tuner_profile_truth(&scene->profile, place).power_w;
    if (!isnan(scene->first_s)) {
        double time_s = scene->profile.step_s[place] * bench->slower;

        scene->joules += power_w * time_s;
        scene->grams +=
            power_w * time_s / 3.6e6 *
            scene->intensity((double)carbon_scene_begin_s + carbon_scene_elapsed_s(scene) + 0.5 * time_s);
    }
    if (fly_tuner_state(scene->tuner) == FLY_TUNER_SETTLED) {
        emulator_set_load(bench->emulator, 0, scene->profile.power_w[place][0]);
        scene_sleep(scene, mono_after_s(scene_now(scene), scene->profile.step_s[place] * bench->slower));
    } else {
        tuner_bench_work(bench);
    }
    scene->steps++;
    scene->step_time_s += carbon_scene_elapsed_s(scene) - before_s;
}

void carbon_scene_run(struct carbon_scene *scene, uint64_t steps)
{
    while (steps-- > 0)
        carbon_scene_step(scene);
}

/* Epochs of so many steps with evaluation after each. */
void carbon_scene_epochs(struct carbon_scene *scene, uint64_t steps, uint64_t epoch_steps,
                         double evaluation_s)
{
    while (scene->steps < steps) {
        assert_int_equal(fly_tuner_epoch_begin(scene->tuner), 0);
        for (uint64_t i = 0; i < epoch_steps && scene->steps < steps; i++)
            carbon_scene_step(scene);
        assert_int_equal(fly_tuner_epoch_end(scene->tuner), 0);
        scene_sleep(scene, mono_after_s(scene_now(scene), evaluation_s));
    }
}
