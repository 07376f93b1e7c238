/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

enum { WORD_MAX = 63 };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Optimal string alignment distance with three rolling rows. */
static unsigned word_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *recycled = before;

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        before = last;
        last = row;
        row = recycled;
    }
    return last[b_length];
}

int word_nearest(const char *word, const char *const *known, size_t count)
{
    size_t length = strlen(word);
    unsigned best = WORD_MAX;
    int nearest = -1;

    if (length > WORD_MAX)
        return -1;
    for (size_t i = 0; i < count; i++) {
        size_t known_length = known[i] == NULL ? WORD_MAX + 1 : strlen(known[i]);
        size_t longer = known_length > length ? known_length : length;
        size_t allowed = longer < 2 ? 0 : longer < 6 ? 1 : longer / 3;
        unsigned distance;

        if (known_length > WORD_MAX)
            continue;
        distance = word_distance(word, length, known[i], known_length);
        if (distance < best && distance <= allowed) {
            best = distance;
            nearest = (int)i;
        }
    }
    return nearest;
}

int word_index(const char *word, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (known[i] != NULL && strcmp(word, known[i]) == 0)
            return (int)i;
    }
    return -1;
}

void words_fit(char *text, size_t size, int length)
{
    static const char end[] = " ...";
    size_t at = size - sizeof end;

    if (length < 0 || (size_t)length < size || size <= sizeof end)
        return;
    while (at > 0 && text[at] != ' ')
        at--;
    memcpy(text + at, end, sizeof end);
}
