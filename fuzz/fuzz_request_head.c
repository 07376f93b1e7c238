/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's head: read here as leniently as the HTTP library does, it is taken only if every line of it
 * ended with CR LF and had a name and a colon. What a NUL hides from the library is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "serve/head.h"

enum { TEXT_MAX = 4000 };

/* Ends the line at `at` as the library does; where the next one begins, NULL: it has no end. */
static char *end_line(char *at)
{
    char *end = strchr(at, '\n');

    if (end == NULL)
        return NULL;
    *end = '\0';
    if (end > at && end[-1] == '\r')
        end[-1] = '\0';
    return end + 1;
}

/* The lines of headers; the length of the head, 0: it has no end. */
static size_t read_lines(struct head_check *check, char *text, char *at)
{
    while (at != NULL && *at != '\0' && *at != '\r' && *at != '\n') {
        char *next = end_line(at), *colon = strchr(at, ':'), *value;

        if (next == NULL || colon == NULL)
            return 0;
        *colon = '\0';
        value = colon + 1 + strspn(colon + 1, " \t");
        head_check_line(check, at, strlen(at), value, strlen(value));
        at = next;
    }
    at = at != NULL ? end_line(at) : NULL;
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 4], before[TEXT_MAX + 4];
    struct head_check check;
    char *lines, *target, *version;
    size_t length;

    if (size >= TEXT_MAX || memchr(data, 0, size) != NULL)
        return 0;
    memset(text, 0, sizeof text);
    memcpy(text, data, size);
    memcpy(before, text, sizeof text);
    lines = end_line(text);
    target = strchr(text, ' ');
    version = target != NULL ? strrchr(target + 1, ' ') : NULL;
    if (lines == NULL || version == NULL)
        return 0;
    *target++ = *version++ = '\0';
    head_check_begin(&check, text, target, strlen(target), version, true);
    length = read_lines(&check, text, lines);
    if (length > 0 && head_check_end(&check, length) == NULL)
        FUZZ_CHECK(is_strict(before, length));
    return 0;
}
