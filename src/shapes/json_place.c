/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON parser keeps no positions, so the text is walked again when there is an error to report. */
#include "shapes/json_place.h"

#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, blanks);
}

/* The end of a string that begins here. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '\0' && *at != '"'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return *at == '"' ? at + 1 : at;
}

/* The end of the value that begins here. */
static const char *skip_value(const char *at)
{
    size_t depth = 0;

    do {
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth -= depth > 0;
            at++;
        } else if (strchr(",: \t\r\n", *at) != NULL && *at != '\0') {
            at++;
        } else {
            at += strcspn(at, ",:]} \t\r\n\"{[");
        }
    } while (depth > 0 && *at != '\0');
    return at;
}

/* The value of the key in the object that begins here, or NULL. */
static const char *find_key(const char *at, const char *key, size_t length)
{
    at = skip_blanks(at + 1);
    while (*at == '"') {
        const char *end = skip_string(at);
        const char *value = skip_blanks(end);

        value = skip_blanks(value + (*value == ':'));
        if ((size_t)(end - at) == length + 2 && strncmp(at + 1, key, length) == 0)
            return value;
        at = skip_blanks(skip_value(value));
        at = skip_blanks(at + (*at == ','));
    }
    return NULL;
}

/* The element with that index in the array that begins here, or NULL. */
static const char *find_element(const char *at, size_t index)
{
    at = skip_blanks(at + 1);
    for (; *at != ']' && *at != '\0'; index--) {
        if (index == 0)
            return at;
        at = skip_blanks(skip_value(at));
        at = skip_blanks(at + (*at == ','));
    }
    return NULL;
}

size_t json_place_line(const char *text, const char *path)
{
    const char *at = skip_blanks(text);
    size_t line = 1;

    while (*path == '/') {
        size_t length = strcspn(path + 1, "/");
        const char *next = NULL;

        if (*at == '{')
            next = find_key(at, path + 1, length);
        else if (*at == '[')
            next = find_element(at, strtoul(path + 1, NULL, 10));
        if (next == NULL)
            break;
        at = next;
        path += 1 + length;
    }
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}
