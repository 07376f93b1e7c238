/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_SHAPE_TOLD_H
#define FLYBALL_SHAPES_SHAPE_TOLD_H

#include "shapes/shape_rows.h"

/*
 * Macros for the rows of what a program writes (shape_tell) and never reads back. Nothing is refused: a
 * number that is not finite, an empty text and a whole number below 0 become null, and a member
 * NAME_unavailable after it says why.
 *
 *     static const struct shape_field sensor_rows[] = {
 *         {SHAPE_AT(sensor_facts, gain_error), TOLD_NUMBER, TOLD_ELSE("the table does not know it")},
 *         {SHAPE_AT(sensor_facts, source), TOLD_TEXT},
 *         {.name = "kind", TOLD_MADE(kind_of)},
 *     };
 *     json_t *json = shape_tell(&sensor, &info->sensor);
 */
#define TOLD_NUMBER .kind = SHAPE_NUMBER, .null = SHAPE_NOT_FINITE
#define TOLD_TIMES(factor) TOLD_NUMBER, .times = (factor)
#define TOLD_BOOL .kind = SHAPE_BOOL
#define TOLD_U32 .kind = SHAPE_U32, .most = UINT32_MAX
#define TOLD_U64 .kind = SHAPE_U64, .most = INT64_MAX
#define TOLD_SIZE .kind = SHAPE_SIZE, .most = INT64_MAX
#define TOLD_I32 .kind = SHAPE_I32, .null = SHAPE_BELOW_0, .most = INT32_MAX
#define TOLD_I64 .kind = SHAPE_I64, .null = SHAPE_BELOW_0, .most = INT64_MAX

/* An empty text becomes null; the ANY ones are written as they are. */
#define TOLD_TEXT TOLD_ANY_TEXT, .null = SHAPE_AS_DEFAULT
#define TOLD_CHARS(type, member) TOLD_ANY_CHARS(type, member), .null = SHAPE_AS_DEFAULT
#define TOLD_ANY_TEXT .kind = SHAPE_TEXT, .free_text = true, .any_bytes = true, .longest = UINT32_MAX
#define TOLD_ANY_CHARS(type, member) \
    .kind = SHAPE_CHARS, .free_text = true, .any_bytes = true, .longest = sizeof((struct type *)0)->member - 1

#define TOLD_MADE(function) .kind = SHAPE_MADE, .make = (function)
#define TOLD_MERGED(what) .kind = SHAPE_MERGED, .shape = (what)
#define TOLD_POINTED(what) .kind = SHAPE_POINTED, .shape = (what)

/* Why the member is null: a fixed reason, or one that a member of the struct (not its first) contains. */
#define TOLD_ELSE(reason) .unavailable = (reason)
#define TOLD_ELSE_AT(type, member) .because = offsetof(struct type, member)

#endif
