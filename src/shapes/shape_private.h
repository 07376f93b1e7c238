/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_SHAPE_PRIVATE_H
#define FLYBALL_SHAPES_SHAPE_PRIVATE_H

#include "shapes/shape.h"

/* What shape_read.c and shape_plain.c share. */
struct shape_reading {
    enum shape_manners manners;
    struct arena *arena;
    const struct shape_path *path; /* of what is being read */
    struct shape_fault *fault;     /* NULL: not wanted */
    struct fly_error *out_error;
};

/*
 * Reads a value that is neither a struct nor a list into its place, or an entry of a list of plain values.
 * Returns FLY_EDATA, FLY_ELIMIT, FLY_ENOMEM.
 */
int shape_read_plain(const struct shape_reading *reading, const struct shape_field *field, bool entry,
                     json_t *json, char *out);

/* Bytes of a member in its struct. */
size_t shape_field_size(const struct shape_field *field);

/* Sets a missing member to its default; `shape` NULL: there is none. The memory must be zero. */
void shape_put_default(const struct shape *shape, const struct shape_field *field, char *out_struct);

/* The pointer stored there. */
const char *shape_pointer_at(const char *from);

/* Whether the struct's member has its shape's default; whether all members have. */
bool shape_is_default(const struct shape *shape, const struct shape_field *field, const char *from);
bool shape_says_nothing(const struct shape *shape, const char *from);

/* Whether the member is written at all. */
bool shape_is_written(const struct shape_field *field, const char *from);

#endif
