/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_SAVED_PROFILE_H
#define FLYBALL_TRAIN_TUNER_SAVED_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/tuner.h>

/*
 * Saves a measured power profile as a JSON file, "flyball-<key>.json" in a directory, and reads it back. The
 * file says what the profile was measured on, and holds the valid points. It is written whole or not at all.
 * When the knob is the clock, the file says so, and its points have "ceiling_mhz" in place of "limit_w"; the
 * structs still hold the setting in limit_w (tuner_private.h). Workload profiles have "profile", a name.
 * Ceilings that were tried under a limit that Flyball set have the knob "both", and the file has that limit
 * in "under_limit_w".
 */
enum { PROFILE_TEXT_MAX = 128, PROFILE_PATH_MAX = 1024, PROFILE_BYTES_MAX = 1 << 18 };

/* What a profile was measured on. */
struct profile_key {
    char gpu_model[PROFILE_TEXT_MAX];
    char driver[PROFILE_TEXT_MAX];
    char job_name[PROFILE_TEXT_MAX];
    uint64_t batch_size;
    uint64_t gpu_count; /* of all ranks */
    enum fly_tuner_knob knob;
    double under_limit_w; /* of ceilings: the limit that stood meanwhile; 0: that of the start */
};

/* Builds the path of the key's file. Returns FLY_ELIMIT when the path is too long. */
int profile_path(const char *directory, const struct profile_key *key, char path[PROFILE_PATH_MAX],
                 struct fly_error *out_error);

/*
 * Reads the file's points into those of `points` that have the same limit, marks them valid, and stores how
 * many there were. On an error the points are unchanged, the text names `path`, and the caller measures anew:
 * FLY_ENOTFOUND, FLY_EREAD, or FLY_EDATA when the file is no profile, belongs to another key, or has a limit
 * that is not to be tried.
 */
int profile_read(const char *path, const struct profile_key *key, struct fly_tuner_point *points,
                 size_t count, size_t *out_read, struct fly_error *out_error);

/* Like profile_read, from a text; error texts call it `name`. */
int profile_read_text(const char *name, const char *text, size_t length, const struct profile_key *key,
                      struct fly_tuner_point *points, size_t count, size_t *out_read,
                      struct fly_error *out_error);

/* Writes the valid points. Returns FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND or FLY_ENOMEM. */
int profile_write(const char *path, const struct profile_key *key, const struct fly_tuner_point *points,
                  size_t count, struct fly_error *out_error);

#endif
