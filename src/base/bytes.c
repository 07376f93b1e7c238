/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <string.h>

enum { WORD = 8 };

void bytes_put_u64(struct buffer *bytes, uint64_t value)
{
    unsigned char word[WORD];

    for (int i = 0; i < WORD; i++)
        word[i] = (unsigned char)(value >> 8 * i);
    buffer_append(bytes, word, sizeof word);
}

void bytes_put_double(struct buffer *bytes, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    bytes_put_u64(bytes, bits);
}

void bytes_put_text(struct buffer *bytes, const char *text)
{
    size_t length = strlen(text);

    bytes_put_u64(bytes, length);
    buffer_append(bytes, text, length);
}

/* Returns the next `count` bytes, or NULL. */
static const unsigned char *take(struct bytes_reader *reader, uint64_t count)
{
    const unsigned char *taken = reader->at;

    if (reader->failed || count > reader->left) {
        reader->failed = true;
        return NULL;
    }
    reader->at += count;
    reader->left -= (size_t)count;
    return taken;
}

uint64_t bytes_u64(struct bytes_reader *reader)
{
    const unsigned char *word = take(reader, WORD);
    uint64_t value = 0;

    for (int i = 0; word != NULL && i < WORD; i++)
        value |= (uint64_t)word[i] << 8 * i;
    return value;
}

uint64_t bytes_up_to(struct bytes_reader *reader, uint64_t maximum)
{
    uint64_t value = bytes_u64(reader);

    reader->failed |= value > maximum;
    return reader->failed ? 0 : value;
}

bool bytes_bool(struct bytes_reader *reader)
{
    return bytes_up_to(reader, 1) == 1;
}

double bytes_double(struct bytes_reader *reader)
{
    uint64_t bits = bytes_u64(reader);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

void bytes_text(struct bytes_reader *reader, char *text, size_t capacity)
{
    uint64_t length = bytes_up_to(reader, capacity - 1);
    const unsigned char *taken = take(reader, length);

    if (taken != NULL)
        memcpy(text, taken, (size_t)length);
    text[taken != NULL ? length : 0] = '\0';
}

void bytes_put_rows(struct buffer *bytes, const struct bytes_row *rows, size_t count, const void *from)
{
    for (size_t i = 0; i < count; i++) {
        const char *member = (const char *)from + rows[i].at;
        uint64_t word;
        uint32_t half;

        switch (rows[i].kind) {
        case BYTES_U32:
            memcpy(&half, member, sizeof half);
            bytes_put_u64(bytes, half);
            break;
        case BYTES_U64:
        case BYTES_DOUBLE:
            memcpy(&word, member, sizeof word);
            bytes_put_u64(bytes, word);
            break;
        case BYTES_BOOL:
            bytes_put_u64(bytes, *(const bool *)member);
            break;
        case BYTES_CHARS:
            bytes_put_text(bytes, member);
            break;
        }
    }
}

void bytes_rows(struct bytes_reader *reader, const struct bytes_row *rows, size_t count, void *into)
{
    for (size_t i = 0; i < count; i++) {
        char *member = (char *)into + rows[i].at;
        uint64_t word;
        uint32_t half;

        switch (rows[i].kind) {
        case BYTES_U32:
            half = (uint32_t)bytes_up_to(reader, rows[i].most < UINT32_MAX ? rows[i].most : UINT32_MAX);
            memcpy(member, &half, sizeof half);
            break;
        case BYTES_U64:
        case BYTES_DOUBLE:
            word = bytes_up_to(reader, rows[i].most);
            memcpy(member, &word, sizeof word);
            break;
        case BYTES_BOOL:
            *(bool *)member = bytes_bool(reader);
            break;
        case BYTES_CHARS:
            bytes_text(reader, member, rows[i].size);
            break;
        }
    }
}
