/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_TRAIN_CARBON_DAY_H
#define FLYBALL_TESTS_TRAIN_CARBON_DAY_H

#include "session_scene.h"

#include <time.h>

/* A session that follows the grid, over a day of virtual time. */

/* 2026-03-02T00:00:00Z, and how many days before and after it the grid's file covers. */
enum { DAY_S = 86400, BEGIN_S = 1772409600, BEFORE_DAYS = 10, AFTER_DAYS = 4, EPOCH_STEPS = 400 };

/* What a training took, as the bench measures it. */
struct taken {
    double energy_j, time_s, kwh_g;                    /* of steps; J * g/kWh */
    double clean_s, clean_limit, dirty_s, dirty_limit; /* time, and limit * time */
    unsigned limits;                                   /* how many limits stood */
    double last_w;
};

static struct clock bench_clock;

static inline struct wall_time dated(void *state)
{
    struct mono_time now = bench_clock.now(state);
    static int64_t first_ns;

    first_ns = first_ns == 0 || now.ns < first_ns ? now.ns : first_ns;
    return (struct wall_time){(int64_t)BEGIN_S * 1000000000 + now.ns - first_ns};
}

/* Dirty by day, clean by night. */
static inline double intensity_at(double date_s)
{
    return 300.0 - 200.0 * cos(2.0 * M_PI * floor(date_s / 3600.0) / 24.0);
}

static char grid[128];

/* As if it were that many days earlier. */
static inline void write_grid(int days)
{
    FILE *file;

    snprintf(grid, sizeof grid, "%s.csv", spool);
    file = fopen(grid, "w");
    assert_non_null(file);
    fputs("timestamp,actual_g_per_kwh\n", file);
    for (int64_t at = BEGIN_S - BEFORE_DAYS * DAY_S; at < BEGIN_S + AFTER_DAYS * DAY_S; at += 3600) {
        char text[32];
        time_t seconds = (time_t)(at - days * DAY_S);
        struct tm parts;

        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
        fprintf(file, "%s,%.3f\n", text, intensity_at((double)at));
    }
    assert_int_equal(fclose(file), 0);
}

static inline int forget_grid(void **state)
{
    unlink(grid);
    return forget(state);
}

static struct fly_carbon_options carbon;
static struct clock clock_dated;

/* Ten epochs of some two hours, with a profile on record and 12 % more time than at the highest limit. */
static inline void day_begin(struct scene *scene)
{
    scene_begin(scene);
    scene->bench.slower = 100.0;
    bench_clock = scene->bench.clock;
    clock_dated = bench_clock;
    clock_dated.date = dated;
    scene->parts.clock = &clock_dated;
    write_grid(0);
    carbon = (struct fly_carbon_options){.size = sizeof carbon, .source = grid, .directory = spool};
    scene->options.carbon = &carbon;
    scene->options.objective.max_slowdown = 1.12;
    scene->options.target = FLY_TARGET_NONE;
    scene->options.samples_per_epoch = EPOCH_STEPS * 32;
}

/* The log has a settled profile of the batch size. */
static inline void know_profile(struct scene *scene, double limit_w)
{
    struct job_proposal *proposal = &scene->fake.proposals[0];

    proposal->limit_w = limit_w;
    proposal->stops_at_target = false;
    proposal->known_units_per_epoch = EPOCH_STEPS;
    proposal->expected_epochs = 10.0;
    for (size_t i = 0; i < scene->profile.count; i++) {
        proposal->known[i] = tuner_profile_truth(&scene->profile, scene->profile.count - 1 - i);
        proposal->known[i].time_s *= scene->bench.slower;
    }
    proposal->known_count = scene->profile.count;
}

/* Makes a step on the bench, and counts what it took. */
static inline bool step(struct scene *scene, struct taken *taken)
{
    double date_s, limit_w, time_s, energy_j;
    struct fly_power_point truth;

    if (fly_session_step_begin(scene->session) == FLY_STOP)
        return false;
    date_s = (double)dated(bench_clock.state).ns * 1e-9;
    limit_w = tuner_bench_limit_w(&scene->bench);
    truth = tuner_profile_truth(&scene->profile, tuner_profile_find(&scene->profile, limit_w));
    time_s = truth.time_s * scene->bench.slower;
    energy_j = truth.power_w * time_s;
    taken->limits += limit_w != taken->last_w;
    taken->last_w = limit_w;
    taken->energy_j += energy_j;
    taken->time_s += time_s;
    taken->kwh_g += energy_j * intensity_at(date_s);
    if (intensity_at(date_s) < 300.0) {
        taken->clean_s += time_s;
        taken->clean_limit += limit_w * time_s;
    } else {
        taken->dirty_s += time_s;
        taken->dirty_limit += limit_w * time_s;
    }
    tuner_bench_work(&scene->bench);
    return true;
}

static enum fly_answer epoch(struct scene *scene, double metric, struct taken *taken)
{
    fly_session_epoch_begin(scene->session);
    for (int i = 0; i < EPOCH_STEPS; i++) {
        if (!step(scene, taken))
            return FLY_STOP;
    }
    fly_session_evaluation_begin(scene->session);
    tuner_bench_pass(&scene->bench, 60.0);
    fly_session_evaluation_end(scene->session);
    return fly_session_report(scene->session, metric);
}

static inline struct fly_carbon_report carbon_of(const struct scene *scene)
{
    struct fly_carbon_report report = {.size = sizeof report};

    assert_int_equal(fly_session_carbon(scene->session, &report), 0);
    return report;
}

static inline double fastest_s(const struct scene *scene, unsigned steps)
{
    return tuner_profile_truth(&scene->profile, 0).time_s * scene->bench.slower * steps;
}

/* Runs a whole training; returns what it took, as the bench measures it. */
static inline struct taken train(struct scene *scene, unsigned epochs)
{
    struct taken taken = {0};

    for (unsigned i = 0; i < epochs; i++)
        epoch(scene, 0.1, &taken);
    return taken;
}

static inline double dirty_w(const struct taken *taken)
{
    return taken->dirty_limit / taken->dirty_s;
}

static inline double clean_w(const struct taken *taken)
{
    return taken->clean_limit / taken->clean_s;
}

static inline void check_stands(const struct taken *taken, double limit_w)
{
    assert_int_equal(taken->limits, 1);
    check_double(taken->last_w, limit_w);
}

#endif
