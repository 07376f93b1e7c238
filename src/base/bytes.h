/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_BYTES_H
#define FLYBALL_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Writes plain values as bytes, the same on every machine, and reads them back. Meant for caches:
 * the reader knows what was written, and treats anything else as if nothing were there.
 *
 *     bytes_put_u64(&bytes, count);
 *     ...
 *     struct bytes_reader reader = bytes_reader(data, length);
 *     uint64_t count = bytes_u64(&reader);
 *     if (!bytes_whole(&reader)) ...
 *
 * A reader that reached the end too early, or read an impossible value, is `failed` and gives
 * zeros from then on. Errors of writing are in the buffer.
 */
struct bytes_reader {
    const unsigned char *at;
    size_t left;
    bool failed;
};

void bytes_put_u64(struct buffer *bytes, uint64_t value);
void bytes_put_double(struct buffer *bytes, double value); /* bit for bit */
void bytes_put_text(struct buffer *bytes, const char *text);

static inline struct bytes_reader bytes_reader(const void *data, size_t length)
{
    return (struct bytes_reader){.at = data, .left = length};
}

uint64_t bytes_u64(struct bytes_reader *reader);
uint64_t bytes_up_to(struct bytes_reader *reader, uint64_t maximum); /* fails above it */
bool bytes_bool(struct bytes_reader *reader);
double bytes_double(struct bytes_reader *reader);

/* Reads at most `capacity` - 1 bytes, and adds a NUL. */
void bytes_text(struct bytes_reader *reader, char *text, size_t capacity);

/* Returns whether everything was read and nothing failed. */
static inline bool bytes_whole(const struct bytes_reader *reader)
{
    return !reader->failed && reader->left == 0;
}

/*
 * A struct's members as rows, so that one list both writes and reads them:
 *
 *     static const struct bytes_row rows[] = {BYTES_AT(arm, reached), BYTES_UP_TO(arm, doubt, DOUBT_COUNT -
 * 1)};
 *
 *     bytes_put_rows(&bytes, BYTES_ROWS(rows), arm);
 *     bytes_rows(&reader, BYTES_ROWS(rows), &arm);
 *
 * A member is a whole number or an enum, a double, a bool, or a text in an array of its own.
 */
struct bytes_row {
    uint16_t at, size;
    enum bytes_kind { BYTES_U32, BYTES_U64, BYTES_DOUBLE, BYTES_BOOL, BYTES_CHARS } kind;
    uint64_t most; /* of a whole number */
};

#define BYTES_AT(type, member) BYTES_UP_TO(type, member, UINT64_MAX)
/* clang-format off */
#define BYTES_UP_TO(type, member, most) \
    {offsetof(struct type, member), sizeof(((struct type *)0)->member), \
     _Generic(((struct type *)0)->member, uint32_t: BYTES_U32, uint64_t: BYTES_U64, int64_t: BYTES_U64, \
              double: BYTES_DOUBLE, bool: BYTES_BOOL, char *: BYTES_CHARS), most}
/* clang-format on */
#define BYTES_ROWS(rows) rows, sizeof(rows) / sizeof(rows)[0]

void bytes_put_rows(struct buffer *bytes, const struct bytes_row *rows, size_t count, const void *from);
void bytes_rows(struct bytes_reader *reader, const struct bytes_row *rows, size_t count, void *into);

#endif
