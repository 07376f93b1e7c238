/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_BUFFER_H
#define FLYBALL_BASE_BUFFER_H

#include <stddef.h>

/*
 * A growing byte buffer with a maximum, always terminated by a NUL that does not count. It
 * remembers a failed append, so you can append freely and check once at the end.
 *
 *     struct buffer text;
 *     buffer_init(&text, 1 << 20);
 *     buffer_printf(&text, "%s,%d\n", name, count);
 *     if (text.error < 0) ...
 *     buffer_deinit(&text);
 */
struct buffer {
    char *data;     /* owned; "" until the first append */
    size_t length;  /* bytes in use */
    size_t maximum; /* bytes it may ever hold */
    size_t capacity;
    int error; /* 0, FLY_ENOMEM or FLY_ELIMIT; once set, appends do nothing */
};

void buffer_init(struct buffer *buffer, size_t maximum);
void buffer_deinit(struct buffer *buffer);

/* Empties the buffer, keeps its memory, clears the error. */
void buffer_clear(struct buffer *buffer);

void buffer_append(struct buffer *buffer, const void *bytes, size_t count);
void buffer_puts(struct buffer *buffer, const char *text);
__attribute__((format(printf, 2, 3))) void buffer_printf(struct buffer *buffer, const char *format, ...);

#endif
