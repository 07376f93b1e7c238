/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_SHARED_OBJECT_H
#define FLYBALL_BASE_SHARED_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Loads code and data from a file that the user named, or from an installed library.
 *
 *     struct shared_object object;
 *
 *     if (shared_object_open("./mine.so", &object, out_error) < 0)
 *         ...
 *     table = shared_object_find(&object, "table");
 *     shared_object_close(&object);
 *
 * A name without a slash is a path too: "mine.so" is the file in the working directory, not a
 * library of the search path. All references of the file are resolved when it is opened, and none
 * of its symbols is visible to others. Changes that it makes to the floating-point environment
 * while it is loaded are undone, so that an object linked with -ffast-math changes only its own
 * rounding. After closing, nothing that was found in it may be used.
 */
struct shared_object {
    void *handle;
};

/* Opens a file. FLY_ENOTFOUND, FLY_EPERM, or FLY_EDATA if it cannot be loaded. */
int shared_object_open(const char *path, struct shared_object *out_object, struct fly_error *out_error);

/*
 * Opens a library by its name, "libnvidia-ml.so.1", which the loader searches for where libraries
 * are installed. FLY_ENOTFOUND with the loader's words; the caller adds what to do about it.
 */
int shared_object_open_library(const char *name, struct shared_object *out_object,
                               struct fly_error *out_error);

/* Harmless on a zeroed struct. */
void shared_object_close(struct shared_object *object);

/*
 * Gives where its code and data lie: from `out_low` to before `out_high`; false if the loader
 * does not say.
 */
bool shared_object_range(const struct shared_object *object, uintptr_t *out_low, uintptr_t *out_high);

/* Returns the address of a symbol that it exports, or NULL. */
const void *shared_object_find(const struct shared_object *object, const char *symbol);

#endif
