/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_CARBON_SCENE_H
#define FLYBALL_TESTS_CARBON_SCENE_H

#include <flyball/carbon.h>

#include "train/carbon/carbon_keeper.h"
#include "tuner_bench.h"

/*
 * A training that follows the grid, in virtual time: a machine with steps of some seconds, so that days are
 * few of them, a date of its own, and a file of the grid's figures.
 */
enum { HOUR_S = 3600, DAY_S = 86400 };

/* The date on which it begins: 2022-06-10 00:10 UTC, in the middle of a period. */
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
    unsigned changes; /* since it was settled first, */
    double first_s;   /* then; NAN: it was not yet */
    double (*intensity)(double unix_s);
};

/* Intensities: half as much at noon, and days differ; another value every few minutes; one alone. */
double carbon_scene_sunny(double unix_s);
double carbon_scene_restless(double unix_s);
double carbon_scene_constant(double unix_s);

void carbon_scene_start(struct carbon_scene *scene, double step_s, uint64_t steps, double max_slowdown);
/* Writes the figures of 16 days before the begin and of some time after it. */
void carbon_scene_grid(struct carbon_scene *scene, double (*intensity)(double), int period_s, double until_s);
/* A tuner, whose account is the test's own, to turn it by hand. */
void carbon_scene_open(struct carbon_scene *scene);
void carbon_scene_stop(struct carbon_scene *scene);

double carbon_scene_elapsed_s(struct carbon_scene *scene);
/* A step; while nothing is measured no sample is wanted either. Figures are read every five minutes. */
void carbon_scene_step(struct carbon_scene *scene);
void carbon_scene_run(struct carbon_scene *scene, uint64_t steps);
/* Up to that step, in epochs of so many with evaluation after each. */
void carbon_scene_epochs(struct carbon_scene *scene, uint64_t steps, uint64_t epoch_steps,
                         double evaluation_s);
struct fly_carbon_report carbon_scene_report(const struct carbon_scene *scene);

#endif
