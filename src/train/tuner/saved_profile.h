/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_SAVED_PROFILE_H
#define FLYBALL_TRAIN_TUNER_SAVED_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/tuner.h>

/*
 * A measured profile as a file of JSON, "flyball-<key>.json" in a directory: what
 * it was measured on, and the valid points. It appears whole or not at all. Where the knob is
 * the clock, it says so, and points have a "ceiling_mhz" in place of their "limit_w"; in
 * the structs of points a setting stands in limit_w all the same, see tuner_private.h.
 */
enum { PROFILE_TEXT_MAX = 128, PROFILE_PATH_MAX = 1024, PROFILE_BYTES_MAX = 1 << 18 };

/* What a profile belongs to. */
struct profile_key {
    char gpu_model[PROFILE_TEXT_MAX];
    char driver[PROFILE_TEXT_MAX];
    char job_name[PROFILE_TEXT_MAX];
    uint64_t batch_size;
    uint64_t gpu_count; /* of all ranks */
    enum fly_tuner_knob knob;
};

/* The path of its file; FLY_ELIMIT when that is too long. */
int profile_path(const char *directory, const struct profile_key *key, char path[PROFILE_PATH_MAX],
                 struct fly_error *out_error);

/*
 * Reads the points of limits that stand in `points` into these, marked valid, and
 * says how many. Errors name `path`, leave the points and are for a new measurement:
 * FLY_ENOTFOUND, FLY_EREAD, FLY_EDATA for what is not such a file, is another key's
 * or has a limit that is not to be tried.
 */
int profile_read(const char *path, const struct profile_key *key, struct fly_tuner_point *points,
                 size_t count, size_t *out_read, struct fly_error *out_error);

/* The same of a text; `name` is for errors. */
int profile_read_text(const char *name, const char *text, size_t length, const struct profile_key *key,
                      struct fly_tuner_point *points, size_t count, size_t *out_read,
                      struct fly_error *out_error);

/* Writes the valid points. FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND, FLY_ENOMEM. */
int profile_write(const char *path, const struct profile_key *key, const struct fly_tuner_point *points,
                  size_t count, struct fly_error *out_error);

#endif
