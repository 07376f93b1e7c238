/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request. This target reads it as leniently as the HTTP library does: a head is accepted only
 * if every line ended with CR LF and had a name and a colon. With NULs in the head, some of those ends may be
 * two other bytes of CR, LF and NUL; nothing else may be hidden in it.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "http/head.h"

enum { TEXT_MAX = 4000 };

/*
 * Ends the line at `at` as the library does; returns where the next one begins, or NULL when the line has no
 * end.
 */
static char *end_line(char *at, const char *limit)
{
    char *end = memchr(at, '\n', (size_t)(limit - at));

    if (end == NULL)
        return NULL;
    *end = '\0';
    if (end > at && end[-1] == '\r')
        end[-1] = '\0';
    return end + 1;
}

/* A CR without an LF ends nothing: the library takes such a line for a header. */
static bool is_empty_line(const char *at)
{
    return at[0] == '\0' || at[0] == '\n' || (at[0] == '\r' && at[1] == '\n');
}

/* Reads the lines of headers; returns the length of the head, or 0 when it has no end. */
static size_t read_lines(struct head_check *check, char *text, char *at, const char *limit)
{
    while (!is_empty_line(at)) {
        char *next = end_line(at, limit), *colon = strchr(at, ':'), *value;

        if (next == NULL || colon == NULL)
            return 0;
        *colon = '\0';
        value = colon + 1 + strspn(colon + 1, " \t");
        head_check_line(check, at, strlen(at), value, strlen(value));
        at = next;
    }
    at = end_line(at, limit);
    return at != NULL ? (size_t)(at - text) : 0;
}

static bool is_strict(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r'))
            return false;
        if (text[i] == '\r' && text[i + 1] != '\n')
            return false;
    }
    return strncmp(text + length - 4, "\r\n\r\n", 4) == 0;
}

/* Whether two bytes that may end a line are between lines, and four after the last. */
static bool has_gaps_of_two(const char *text, size_t length)
{
    size_t gap = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\r' || text[i] == '\n' || text[i] == '\0')
            gap++;
        else if (gap != 0 && gap != 2)
            return false;
        else
            gap = 0;
    }
    return gap == 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 4], before[TEXT_MAX + 4];
    struct head_check check;
    char *lines, *target, *version;
    size_t length;

    if (size >= TEXT_MAX)
        return 0;
    memset(text, 0, sizeof text);
    memcpy(text, data, size);
    memcpy(before, text, sizeof text);
    lines = end_line(text, text + size);
    target = strchr(text, ' ');
    version = target != NULL ? strrchr(target + 1, ' ') : NULL;
    if (lines == NULL || version == NULL)
        return 0;
    *target++ = *version++ = '\0';
    head_check_begin(&check, text, target, strlen(target), version, true);
    length = read_lines(&check, text, lines, text + size);
    if (length > 0 && head_check_end(&check, length) == NULL)
        FUZZ_CHECK(memchr(before, 0, length) != NULL ? has_gaps_of_two(before, length)
                                                     : is_strict(before, length));
    return 0;
}
