/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_SHARED_OBJECT_H
#define FLYBALL_BASE_SHARED_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Code and data loaded from a file that the user named, or from an installed library.
 *
 *     struct shared_object object;
 *
 *     if (shared_object_open("./mine.so", &object, out_error) < 0)
 *         ...
 *     table = shared_object_find(&object, "table");
 *     shared_object_close(&object);
 *
 * A path is a path: "mine.so" is the file of the working directory, and no
 * library of the search path. Everything that the file refers to is resolved
 * when it is opened, and none of its symbols is visible to others. What it does
 * to the floating-point environment while it is loaded is undone, so that an
 * object linked with -ffast-math changes nobody's rounding but its own. Closing
 * ends the life of all that was found in it.
 */
struct shared_object {
    void *handle;
};

/* FLY_ENOTFOUND, FLY_EPERM, or FLY_EDATA for what cannot be loaded. */
int shared_object_open(const char *path, struct shared_object *out_object, struct fly_error *out_error);

/*
 * The same for a library by its name, "libnvidia-ml.so.1", which the loader looks
 * for where libraries are installed. FLY_ENOTFOUND with the loader's words; what
 * to do about it is for the caller to say.
 */
int shared_object_open_library(const char *name, struct shared_object *out_object,
                               struct fly_error *out_error);

/* Harmless on a zeroed struct. */
void shared_object_close(struct shared_object *object);

/* Where its code and data lie: from `out_low` to before `out_high`; false where the loader does not say. */
bool shared_object_range(const struct shared_object *object, uintptr_t *out_low, uintptr_t *out_high);

/* The address of a symbol that it exports, or NULL. */
const void *shared_object_find(const struct shared_object *object, const char *symbol);

#endif
