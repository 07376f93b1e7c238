/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_TRAIN_CARBON_SCENE_H
#define FLYBALL_TESTS_TRAIN_CARBON_SCENE_H

#include <flyball/carbon.h>

#include "train/carbon/carbon_keeper.h"
#include "tuner_bench.h"

/*
 * A training that follows the grid, in virtual time. Its steps take some seconds, so that a day has few of
 * them; it has its own date and a file of the grid's figures.
 */
enum { HOUR_S = 3600, DAY_S = 86400 };

/* The date on which it begins: 2022-06-10 00:10 UTC, within a period. */
extern const int64_t carbon_scene_begin_s;

struct carbon_scene {
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct clock clock;
    struct mono_time began;
    char directory[64], grid[96];
    struct fly_carbon_options carbon;
    struct fly_tuner_options options;
    struct carbon_keeper *keeper;
    struct fly_tuner *tuner;
    /* What happened. */
    uint64_t steps;
    double step_time_s, looked_s, limit_w, changed_s, shortest_s, grams, joules;
    unsigned changes; /* since it was settled first */
    double first_s;   /* when it was settled first; NAN: not yet */
    double (*intensity)(double unix_s);
    /* The grid's file: with `lags`, figures come once their period has ended, so nothing to come is known. */
    bool lags;
    int period_s;
    int64_t written_s; /* until this date */
};

/*
 * Intensities: half as much at noon, different from day to day; a new value every few minutes; a single one.
 */
double carbon_scene_sunny(double unix_s);
double carbon_scene_restless(double unix_s);
double carbon_scene_constant(double unix_s);

void carbon_scene_start(struct carbon_scene *scene, double step_s, uint64_t steps, double max_slowdown);
/*
 * Writes the figures of 16 days before the begin, and of the time after it until `until_s`, which a training
 * knows ahead; with `lags`, what has ended by now, and the rest as it ends.
 */
void carbon_scene_grid(struct carbon_scene *scene, double (*intensity)(double), int period_s, double until_s);
/* Opens a tuner with an account that the test turns by hand. */
void carbon_scene_open(struct carbon_scene *scene);
void carbon_scene_stop(struct carbon_scene *scene);

double carbon_scene_elapsed_s(struct carbon_scene *scene);
/*
 * Makes a step; while nothing is measured, no sample is needed either. Figures are read every five minutes.
 */
void carbon_scene_step(struct carbon_scene *scene);
void carbon_scene_run(struct carbon_scene *scene, uint64_t steps);
/* Runs up to that step, in epochs of so many steps with evaluation after each. */
void carbon_scene_epochs(struct carbon_scene *scene, uint64_t steps, uint64_t epoch_steps,
                         double evaluation_s);
struct fly_carbon_report carbon_scene_report(const struct carbon_scene *scene);

#endif
