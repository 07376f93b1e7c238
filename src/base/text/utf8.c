/* SPDX-License-Identifier: Apache-2.0 */
/* Reads UTF-8 with a table of ranges. */
#include "base/text/utf8.h"

/*
 * For each range of first bytes: how many bytes follow, and what the next one may be (Unicode 15,
 * table 3-7).
 */
static const struct lead {
    unsigned char first, last, following, next_first, next_last;
} leads[] = {
    {0x00, 0x7F, 0, 0, 0},       {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF},
    {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF},
    {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

static const struct lead *lead_of(unsigned char byte)
{
    for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    }
    return NULL;
}

/* Returns how many bytes one character takes, or 0. */
static size_t character_bytes(const unsigned char *text, size_t length)
{
    const struct lead *lead = lead_of(text[0]);

    if (lead == NULL || length <= lead->following)
        return 0;
    if (lead->following > 0 && (text[1] < lead->next_first || text[1] > lead->next_last))
        return 0;
    for (size_t i = 2; i <= lead->following; i++) {
        if (text[i] < 0x80 || text[i] > 0xBF)
            return 0;
    }
    return lead->following + 1u;
}

bool text_is_utf8(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;

    while (length > 0) {
        size_t used = character_bytes(bytes, length);

        if (used == 0)
            return false;
        bytes += used;
        length -= used;
    }
    return true;
}
