/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through a text once. At each place the first rule that matches says how much it takes, and
 * what replaces it.
 */
#include "device/recording/pseudonyms.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Paths that are the same on every machine. */
static const char *const common[] = {
    "/sys/",     "/proc/",        "/dev/",        "/usr/lib",    "/lib",
    "/opt/rocm", "/etc/flyball/", "/run/flyball", "/run/zeusd/", "/tmp/flyball-knobs"};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Returns whether a word begins here. */
static bool begins(const char *text, const char *at)
{
    return at == text || !in_word(at[-1]);
}

/* Returns the row whose secret is a word of its own here; NULL for none. */
static const struct pseudonym *row_at(const struct pseudonym *rows, size_t count, const char *text,
                                      const char *at)
{
    const struct pseudonym *found = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(rows[i].secret);

        if (length > 0 && begins(text, at) && strncmp(at, rows[i].secret, length) == 0 &&
            !in_word(at[length]) && (found == NULL || length > strlen(found->secret)))
            found = &rows[i];
    }
    return found;
}

/*
 * Returns how many characters match a pattern: 'x' is a hexadecimal digit, everything else
 * itself; 0 if it does not match.
 */
static size_t pattern_at(const char *pattern, const char *text, const char *at)
{
    size_t i = 0;

    while (pattern[i] != '\0' && (pattern[i] == 'x' ? isxdigit((unsigned char)at[i]) : at[i] == pattern[i]))
        i++;
    return pattern[i] == '\0' && begins(text, at) && !in_word(at[i]) ? i : 0;
}

/* A path in quotes ends with the quotes, any other with its word. */
static size_t path_length(const char *text, const char *at)
{
    if (at > text && at[-1] == '\'')
        return strcspn(at, "'");
    return strcspn(at, at > text && at[-1] == '"' ? "\"" : " ,;)'\"");
}

/* Returns whether a path begins here that not every machine has. */
static bool is_own_path(const char *text, const char *at)
{
    bool own = at[0] == '/' && (in_word(at[1]) || at[1] == '.') &&
               (at == text || (!in_word(at[-1]) && strchr("/.-+~%}*]", at[-1]) == NULL));

    for (size_t i = 0; own && i < sizeof common / sizeof common[0]; i++)
        own = strncmp(at, common[i], strlen(common[i])) != 0;
    return own;
}

/* Returns how much a rule takes here, and gives its replacement; 0: none matches. */
static size_t rule_at(const char *text, const char *at, const char **out_instead)
{
    static const struct {
        const char *pattern, *instead;
    } patterns[] = {{"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "UUID"},
                    {"xxxxxxxx:xx:xx.x", "PCI"},
                    {"xxxx:xx:xx.x", "PCI"}};
    size_t length = 0;

    for (size_t i = 0; length == 0 && i < sizeof patterns / sizeof patterns[0]; i++) {
        length = pattern_at(patterns[i].pattern, text, at);
        *out_instead = patterns[i].instead;
    }
    if (length == 0 && strncmp(at, "://", 3) == 0) {
        length = strcspn(at, " ,;)'\"");
        *out_instead = "://ADDRESS";
    } else if (length == 0 && is_own_path(text, at)) {
        length = path_length(text, at);
        *out_instead = "PATH";
    }
    return length;
}

void pseudonyms_put(const struct pseudonym *rows, size_t count, const char *text, struct buffer *out)
{
    const char *at = text, *instead;

    while (*at != '\0') {
        const struct pseudonym *row = row_at(rows, count, text, at);
        size_t length = row != NULL ? strlen(row->secret) : rule_at(text, at, &instead);

        if (length > 0)
            buffer_puts(out, row != NULL ? row->instead : instead);
        else
            buffer_append(out, at, 1);
        at += length > 0 ? length : 1;
        /* A word that is left out is not part of the path after it. */
        if (row != NULL && row->instead[0] == '\0')
            text = at;
    }
}
