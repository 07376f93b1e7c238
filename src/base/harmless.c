/* SPDX-License-Identifier: Apache-2.0 */
#include "base/harmless.h"

#include <string.h>

enum { FIRST_OF_TWO = 0x80, FIRST_OF_THREE = 0x800, FIRST_OF_FOUR = 0x10000, LAST = 0x10FFFF };
enum { SURROGATES = 0xD800, SURROGATES_END = 0xE000, HALF_BITS = 10, HIGH_HALF = 0xD800, LOW_HALF = 0xDC00 };

/* Unicode 15: Cc, Cf, Zl and Zp except U+200C and U+200D; ascending. */
static const struct range {
    uint32_t first, last;
} harmful[] = {
    {0x00, 0x1F},       {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},         {0x61C, 0x61C},
    {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},         {0x180E, 0x180E},
    {0x200B, 0x200B},   {0x200E, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},       {0xFEFF, 0xFEFF},
    {0xFFF9, 0xFFFB},   {0xFFFE, 0xFFFF},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD},     {0x13430, 0x1343F},
    {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}, {LAST + 1, UINT32_MAX},
};

static size_t following(unsigned char first)
{
    if (first < FIRST_OF_TWO)
        return 0;
    if (first >= 0xC2 && first < 0xE0)
        return 1;
    if (first >= 0xE0 && first < 0xF0)
        return 2;
    return first >= 0xF0 && first < 0xF5 ? 3 : SIZE_MAX;
}

size_t harmless_read(const char *text, size_t length, uint32_t *out_character)
{
    static const uint32_t least[] = {0, FIRST_OF_TWO, FIRST_OF_THREE, FIRST_OF_FOUR};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t more = following(bytes[0]);
    uint32_t character;

    *out_character = UINT32_MAX;
    if (more >= length)
        return 1;
    character = more == 0 ? bytes[0] : bytes[0] & (0x3FU >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 1;
        character = character << 6 | (bytes[i] & 0x3F);
    }
    if (character < least[more] || character > LAST ||
        (character >= SURROGATES && character < SURROGATES_END))
        return 1;
    *out_character = character;
    return 1 + more;
}

bool harmless_is(uint32_t character)
{
    for (size_t i = 0; i < sizeof harmful / sizeof harmful[0]; i++) {
        if (character <= harmful[i].last)
            return character < harmful[i].first;
    }
    return true;
}

static bool may_stand(uint32_t character, bool lines)
{
    return harmless_is(character) || (lines && (character == '\n' || character == '\t'));
}

/*
 * Returns how many characters at the beginning are printable ASCII, as in most text nearly all are: eight at
 * a time, of which none is above 0x7E, where adding 1 sets the highest bit, or below a space, where taking a
 * space away does.
 */
static size_t plain_run(const char *text, size_t length)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    size_t run = 0;
    uint64_t eight;

    for (; run + sizeof eight <= length; run += sizeof eight) {
        memcpy(&eight, text + run, sizeof eight);
        if (((eight | (eight + each) | (eight - each * ' ')) & each << 7) != 0)
            break;
    }
    while (run < length && text[run] >= ' ' && text[run] < 0x7F)
        run++;
    return run;
}

/*
 * Returns the length of the next run of characters that may be shown; gives the bytes of the
 * character after it, 0 at the end.
 */
static size_t read_run(const char *text, size_t length, bool lines, size_t *out_behind,
                       uint32_t *out_character)
{
    size_t run = 0;

    *out_behind = 0;
    for (;;) {
        size_t bytes;

        run += plain_run(text + run, length - run);
        if (run == length)
            break;
        bytes = harmless_read(text + run, length - run, out_character);

        if (!may_stand(*out_character, lines)) {
            *out_behind = bytes;
            break;
        }
        run += bytes;
    }
    return run;
}

bool harmless_all(const char *text, size_t length, bool lines)
{
    uint32_t character;
    size_t behind;

    return read_run(text, length, lines, &behind, &character) == length;
}

size_t harmless_make(char *text, size_t length, bool lines)
{
    size_t to = 0, behind;
    uint32_t character;

    for (size_t from = 0; from < length; from += behind) {
        size_t run = read_run(text + from, length - from, lines, &behind, &character);

        if (to < from)
            memmove(text + to, text + from, run);
        to += run;
        from += run;
        if (behind > 0)
            text[to++] = '?';
    }
    text[to] = '\0';
    return to;
}

void harmless_hide_controls(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7F)
            *text = '?';
    }
}

void harmless_make_ascii(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7F)
            *text = '?';
    }
}

void harmless_put(struct buffer *out, const char *text, bool lines)
{
    size_t length = strlen(text), behind;
    uint32_t character;

    for (size_t at = 0; at < length; at += behind) {
        size_t run = read_run(text + at, length - at, lines, &behind, &character);

        buffer_append(out, text + at, run);
        at += run;
        if (behind > 0)
            buffer_puts(out, "?");
    }
}

static void put_escape(struct buffer *out, uint32_t character)
{
    if (character > LAST) {
        buffer_puts(out, "?");
    } else if (character >= FIRST_OF_FOUR) {
        uint32_t above = character - FIRST_OF_FOUR;

        buffer_printf(out, "\\u%04x\\u%04x", HIGH_HALF + (above >> HALF_BITS),
                      LOW_HALF + (above & ((1U << HALF_BITS) - 1)));
    } else {
        buffer_printf(out, "\\u%04x", character);
    }
}

void harmless_put_json(struct buffer *out, const char *json, size_t length)
{
    uint32_t character;
    size_t behind;

    for (size_t at = 0; at < length; at += behind) {
        size_t run = read_run(json + at, length - at, true, &behind, &character);

        buffer_append(out, json + at, run);
        at += run;
        /* Between values CR is white space; within strings it is escaped. */
        if (behind > 0 && character == '\r')
            buffer_puts(out, "\r");
        else if (behind > 0)
            put_escape(out, character);
    }
}
