/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes points measured before, from a saved profile or a job's log, and saves the new ones for the next
 * time.
 */
#include <math.h>
#include <stdio.h>

#include "base/adler32.h"
#include "train/tuner/tuner_private.h"

/* The assumed relative error of a window's mean step time. */
static const double known_time_error = 0.01;

static void copy_text(char *to, size_t capacity, const char *from)
{
    snprintf(to, capacity, "%s", from != NULL ? from : "");
}

void tuner_take_key(struct fly_tuner *tuner, const struct fly_tuner_options *options)
{
    const char *name = "";

    tuner->key.gpu_count = tuner_count_gpus(options->meter, &name);
    copy_text(tuner->key.gpu_model, sizeof tuner->key.gpu_model,
              options->gpu_model != NULL ? options->gpu_model : name);
    copy_text(tuner->key.driver, sizeof tuner->key.driver, options->driver);
    copy_text(tuner->key.job_name, sizeof tuner->key.job_name, options->job_name);
    copy_text(tuner->directory, sizeof tuner->directory, options->profile_directory);
    copy_text(tuner->file, sizeof tuner->file, options->profile_file);
    tuner->key.batch_size = options->batch_size;
    tuner->key.knob = tuner->options.knob;
}

static uint32_t add_points(uint32_t sum, const struct fly_tuner_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct fly_tuner_point *point = &points[i];
        char text[160];

        snprintf(text, sizeof text, "%zu %.17g %d %.17g %.17g", i, point->limit_w, (int)point->mark,
                 point->power_w, point->time_s);
        sum = sum * 31 + adler32(text);
    }
    return sum;
}

/* A number that is the same on all ranks with the same limits and points. */
static double fingerprint(const struct fly_tuner *tuner)
{
    uint32_t sum = (uint32_t)tuner->limit_count * 4 + (uint32_t)tuner->options.knob * 2 +
                   (tuner->options.carbon != NULL);

    sum = add_points(sum, tuner->points, tuner->limit_count);
    return (double)add_points(sum, tuner->other.points, tuner->other.limit_count);
}

/* Whether the ranks' limits and points are the same; adds up their GPUs. */
bool tuner_ranks_agree(struct fly_tuner *tuner, double *gpus)
{
    double mark = fingerprint(tuner), maxima[] = {mark, -mark};

    return tuner_exchange(tuner, gpus, 1, maxima, 2) && maxima[0] == -maxima[1];
}

static void forget_points(struct fly_tuner *tuner)
{
    for (size_t i = 0; i < tuner->limit_count; i++)
        tuner->points[i].mark = FLY_TUNER_NOT_MEASURED;
}

/*
 * Discards points that are too coarse for a plan along the grid; returns how many. The race takes errors as
 * they are.
 */
static size_t forget_coarse(struct fly_tuner *tuner)
{
    size_t count = 0;

    for (size_t i = 0; tuner->options.carbon != NULL && i < tuner->limit_count; i++) {
        struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark != FLY_TUNER_VALID || point->energy_error <= 2.0 * tuner->options.energy_tolerance)
            continue;
        point->mark = FLY_TUNER_NOT_MEASURED;
        count++;
    }
    return count;
}

/* Returns FLY_ENOTFOUND when no profile was asked for. */
static int saved_path(const struct fly_tuner *tuner, char path[PROFILE_PATH_MAX], struct fly_error *out_error)
{
    /* Ceilings under a limit are looked for in the directory alone: the file is of the limits. */
    if (tuner->file[0] != '\0' && !tuner->is_second)
        snprintf(path, PROFILE_PATH_MAX, "%s", tuner->file);
    else if (tuner->directory[0] != '\0')
        return profile_path(tuner->directory, &tuner->key, path, out_error);
    else
        return FLY_ENOTFOUND;
    return 0;
}

/* Reads a saved profile, and uses it if every rank has the same. */
void tuner_take_saved(struct fly_tuner *tuner)
{
    char path[PROFILE_PATH_MAX];
    struct fly_error error = {.text = ""};
    size_t read = 0;
    double gpus = 0.0;
    int code = saved_path(tuner, path, &error);

    if (code == 0)
        code = profile_read(path, &tuner->key, tuner->points, tuner->limit_count, &read, &error);
    if (code == 0)
        read -= forget_coarse(tuner);
    if (code < 0 && (code != FLY_ENOTFOUND || (tuner->file[0] != '\0' && !tuner->is_second)))
        snprintf(tuner->report.profile, sizeof tuner->report.profile, "%.255s", error.text);
    if (!tuner_ranks_agree(tuner, &gpus)) {
        forget_points(tuner);
        if (read > 0)
            copy_text(tuner->report.profile, sizeof tuner->report.profile,
                      "the saved profile is not the same on all ranks; measuring anew");
        return;
    }
    tuner->report.reused = read > 0;
    for (size_t i = 0; i < tuner->limit_count; i++)
        tuner->saved[i] = tuner->points[i].mark == FLY_TUNER_VALID;
    if (read > 0)
        snprintf(tuner->report.profile, sizeof tuner->report.profile,
                 "reused %zu of %zu limits from '%.200s'", read, tuner->limit_count, path);
}

/* Takes a point that comes without errors: assumes those that windows are made to have. */
static void know(struct fly_tuner *tuner, struct fly_tuner_point *point, const struct fly_power_point *known)
{
    point->mark = FLY_TUNER_VALID;
    point->power_w = known->power_w;
    point->time_s = known->time_s;
    point->time_error = known_time_error;
    point->energy_error = tuner->options.energy_tolerance;
}

int tuner_know(struct fly_tuner *tuner, const struct fly_power_point *points, size_t count,
               struct fly_error *out_error)
{
    if (tuner->state != FLY_TUNER_SEARCHING)
        return 0;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        for (size_t k = 0; k < count && tuner->points[i].mark == FLY_TUNER_NOT_MEASURED; k++) {
            if (tuner_is_same(tuner, tuner->points[i].limit_w, points[k].limit_w))
                know(tuner, &tuner->points[i], &points[k]);
        }
        tuner->saved[i] = tuner->points[i].mark == FLY_TUNER_VALID;
        tuner->report.reused |= tuner->saved[i];
    }
    fly_power_search_free(tuner->search);
    tuner->search = NULL;
    return tuner_search_all(tuner, out_error);
}

void tuner_save(struct fly_tuner *tuner)
{
    char path[PROFILE_PATH_MAX];
    struct fly_error error = {.text = ""};

    if (tuner->options.rank != 0 || tuner->directory[0] == '\0')
        return;
    if (profile_path(tuner->directory, &tuner->key, path, &error) < 0 ||
        profile_write(path, &tuner->key, tuner->points, tuner->limit_count, &error) < 0)
        snprintf(tuner->report.profile, sizeof tuner->report.profile, "not saved: %.240s", error.text);
}

const struct profile_key *tuner_key(const struct fly_tuner *tuner)
{
    return &tuner->key;
}
