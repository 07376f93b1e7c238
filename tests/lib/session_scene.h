/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_SESSION_SCENE_H
#define FLYBALL_TESTS_LIB_SESSION_SCENE_H

#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_jobs.h"
#include "train/session/session.h"
#include "tuner_bench.h"

/* Where this program's sessions keep what they cannot deliver. */
static char spool[96];

/* How many files have names that end like this. */
static inline unsigned spool_files(const char *suffix)
{
    DIR *directory = opendir(spool);
    const struct dirent *entry;
    unsigned count = 0;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        size_t length = strlen(entry->d_name);

        count += length > strlen(suffix) && strcmp(entry->d_name + length - strlen(suffix), suffix) == 0;
    }
    if (directory != NULL)
        closedir(directory);
    return count;
}

static inline int forget(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", spool);
    return system(command);
}

static inline void scene_init(void)
{
    snprintf(spool, sizeof spool, "/tmp/flyball-test-session-%d", (int)getpid());
    unsetenv("FLYBALL_DISABLE");
}

static const uint32_t scene_batch_sizes[] = {16, 32, 64};

/* A training with a session, on an emulated GPU in virtual time. */
struct scene {
    struct fake_jobs fake;
    struct jobs jobs;
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_session_options options;
    struct session_parts parts;
    struct fly_session *session;
};

static inline void scene_begin(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    fake_jobs_init(&scene->fake);
    scene->jobs = fake_jobs_handle(&scene->fake);
    tuner_profile_made(&scene->profile, 1);
    tuner_bench_start(&scene->bench, &scene->profile, "exact");
    scene->options =
        (struct fly_session_options){.size = sizeof scene->options,
                                     .job_name = "job",
                                     .objective = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = INFINITY},
                                     .batch_sizes = scene_batch_sizes,
                                     .batch_count = COUNT(scene_batch_sizes),
                                     .default_batch_size = 64,
                                     .target = FLY_TARGET_AT_LEAST,
                                     .target_metric = 0.9,
                                     .max_epochs = 10,
                                     .run = "run-1",
                                     .tries = 3,
                                     .meter = scene->bench.meter,
                                     .turner = &tuner_bench_turner,
                                     .turner_data = &scene->bench};
    scene->parts =
        (struct session_parts){.jobs = &scene->jobs, .clock = &scene->bench.clock, .spool_directory = spool};
}

static inline void scene_open(struct scene *scene)
{
    struct fly_error error;

    if (session_new(&scene->options, &scene->parts, &scene->session, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void scene_end(struct scene *scene)
{
    fly_session_close(scene->session, FLY_SESSION_FINISHED);
    tuner_bench_stop(&scene->bench);
}

static inline enum fly_answer train_epoch(struct scene *scene, unsigned steps, double metric)
{
    fly_session_epoch_begin(scene->session);
    for (unsigned i = 0; i < steps; i++) {
        if (fly_session_step_begin(scene->session) == FLY_STOP)
            return FLY_STOP;
        tuner_bench_work(&scene->bench);
    }
    fly_session_evaluation_begin(scene->session);
    tuner_bench_pass(&scene->bench, 0.5);
    fly_session_evaluation_end(scene->session);
    return fly_session_report(scene->session, metric);
}

static inline struct fly_session_status status_of(const struct scene *scene)
{
    struct fly_session_status status = {.size = sizeof status};

    assert_int_equal(fly_session_status(scene->session, &status), 0);
    return status;
}

#endif
