/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_SHAPE_ROWS_H
#define FLYBALL_SHAPES_SHAPE_ROWS_H

#include <stdint.h>

#include "shapes/shape.h"

/*
 * Macros for the rows of a shape's table (shape.h): where a member is, and what it is.
 *
 *     static const struct shape_field beat_rows[] = {
 *         {SHAPE_AT(heartbeat, attempt), SHAPE_IS_U32(1, UINT32_MAX)},
 *         {SHAPE_AT(heartbeat, energy_j), SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_UNKNOWN},
 *         {SHAPE_AT_AS("try", heartbeat, try_number), SHAPE_IS_U32(0, UINT32_MAX), .need = SHAPE_OPTIONAL},
 *     };
 *     static const struct shape beat = {SHAPE_OF(heartbeat, beat_rows)};
 */
#define SHAPE_AT(type, member) .name = #member, .at = offsetof(struct type, member)
#define SHAPE_AT_AS(title, type, member) .name = (title), .at = offsetof(struct type, member)

#define SHAPE_IS_U32(minimum, maximum) .kind = SHAPE_U32, .least = (minimum), .most = (maximum)
#define SHAPE_IS_U64(minimum, maximum) .kind = SHAPE_U64, .least = (minimum), .most = (maximum)
#define SHAPE_IS_SIZE(maximum) .kind = SHAPE_SIZE, .most = (maximum)
#define SHAPE_IS_TIME .kind = SHAPE_I64, .most = INT64_MAX
#define SHAPE_IS_NUMBER(within) .kind = SHAPE_NUMBER, .range = (within)
#define SHAPE_IS_BOOL .kind = SHAPE_BOOL
#define SHAPE_IS_WORD(list, length) .kind = SHAPE_WORD, .words = (list), .word_count = (length)
#define SHAPE_IS_TEXT(bytes) .kind = SHAPE_TEXT, .longest = (bytes), .free_text = true
#define SHAPE_IS_STRUCT(what) .kind = SHAPE_STRUCT, .shape = (what)

/* Lists, with the member that has their length. */
#define SHAPE_IS_NUMBERS(within, entries, type, count) \
    .kind = SHAPE_NUMBERS, .range = (within), .longest = (entries), .beside = offsetof(struct type, count)
#define SHAPE_IS_STRUCTS(what, entries, type, count) \
    .kind = SHAPE_STRUCTS, .shape = (what), .longest = (entries), .beside = offsetof(struct type, count)
#define SHAPE_IS_STRUCTS_HERE(what, type, member, count)                               \
    .kind = SHAPE_STRUCTS_HERE, .shape = (what),                                       \
    .longest = sizeof((struct type *)0)->member / sizeof((struct type *)0)->member[0], \
    .beside = offsetof(struct type, count)

/* Present only when a bool of the struct says so. */
#define SHAPE_IF(type, flag) .need = SHAPE_FLAGGED, .beside = offsetof(struct type, flag)

/* The rest of a shape from its rows. */
#define SHAPE_OF(type, rows) \
    .size = sizeof(struct type), .fields = (rows), .count = sizeof(rows) / sizeof(rows)[0]

#endif
