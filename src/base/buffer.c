/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FIRST_CAPACITY = 256 };

static char empty[1] = "";

void buffer_init(struct buffer *buffer, size_t maximum)
{
    *buffer = (struct buffer){.data = empty, .maximum = maximum};
}

void buffer_deinit(struct buffer *buffer)
{
    if (buffer->capacity > 0)
        free(buffer->data);
    buffer_init(buffer, buffer->maximum);
}

void buffer_clear(struct buffer *buffer)
{
    buffer->length = 0;
    buffer->error = 0;
    if (buffer->capacity > 0)
        buffer->data[0] = '\0';
}

/* Makes room for `count` more bytes and the NUL; returns whether there is. */
static int buffer_reserve(struct buffer *buffer, size_t count)
{
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_CAPACITY;
    char *data;

    if (buffer->error < 0)
        return 0;
    if (count > buffer->maximum - buffer->length) {
        buffer->error = FLY_ELIMIT;
        return 0;
    }
    if (buffer->length + count < buffer->capacity)
        return 1;
    while (capacity <= buffer->length + count)
        capacity *= 2;
    data = realloc(buffer->capacity > 0 ? buffer->data : NULL, capacity);
    if (data == NULL) {
        buffer->error = FLY_ENOMEM;
        return 0;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return 1;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t count)
{
    if (!buffer_reserve(buffer, count))
        return;
    if (count > 0)
        memcpy(buffer->data + buffer->length, bytes, count);
    buffer->length += count;
    buffer->data[buffer->length] = '\0';
}

void buffer_puts(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    int count;

    va_start(arguments, format);
    count = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (count < 0 || !buffer_reserve(buffer, (size_t)count))
        return;
    va_start(arguments, format);
    vsnprintf(buffer->data + buffer->length, (size_t)count + 1, format, arguments);
    va_end(arguments);
    buffer->length += (size_t)count;
}
