/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_address.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"

enum { SCHEME_MAX = 32 };

/* A scheme, and what is to be said of it; NULL: a server of ours. */
static const struct scheme {
    const char *name;
    const char *refusal;
} schemes[] = {
    {"postgresql", NULL},
    {"postgres", NULL},
    {"http", "is the address of a service and not of a store"},
    {"https", "is the address of a service and not of a store"},
    {"unix", "is the address of a service and not of a store"},
    {"sqlite", "is not needed: give the file's path alone"},
    {"file", "is not needed: give the file's path alone"},
};
enum { SCHEME_COUNT = sizeof schemes / sizeof schemes[0] };

/* The text's scheme, or "" for a path: "scheme://", and "unix:". */
static void read_scheme(const char *text, char out_scheme[SCHEME_MAX])
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

    out_scheme[0] = '\0';
    if (length == 0 || length >= SCHEME_MAX || text[length] != ':')
        return;
    if (strncmp(text + length, "://", 3) == 0 || strncmp(text, "unix:", 5) == 0) {
        memcpy(out_scheme, text, length);
        out_scheme[length] = '\0';
    }
}

static int refuse_unknown(const char *scheme, struct fly_error *out_error)
{
    const char *names[SCHEME_COUNT];
    int nearest;

    for (int i = 0; i < SCHEME_COUNT; i++)
        names[i] = schemes[i].refusal == NULL ? schemes[i].name : NULL;
    nearest = word_nearest(scheme, names, SCHEME_COUNT);
    return error_set(out_error, FLY_EUSAGE,
                     "the scheme '%s' of a store's address is unknown; %s%s%s give a path or "
                     "'postgresql://...'",
                     scheme, nearest < 0 ? "" : "did you mean '", nearest < 0 ? "" : schemes[nearest].name,
                     nearest < 0 ? "" : "'?");
}

static int check_path(const char *path, struct fly_error *out_error)
{
    size_t length = strlen(path);

    if (path[length - 1] == '/')
        return error_set(out_error, FLY_EUSAGE,
                         "the store '%.200s' is a directory; name a file in it, such as '%.200sstore.sqlite'",
                         path, path);
    return 0;
}

int store_address_parse(const char *text, struct store_address *out_address, struct fly_error *out_error)
{
    char scheme[SCHEME_MAX];
    int code;

    if (text == NULL || text[0] == '\0') {
        *out_address = (struct store_address){.place = STORE_IN_FILE};
        return 0;
    }
    if (strlen(text) > STORE_ADDRESS_MAX)
        return error_set(out_error, FLY_ELIMIT, "a store's address has %zu bytes; at most %d are allowed",
                         strlen(text), STORE_ADDRESS_MAX);
    read_scheme(text, scheme);
    if (scheme[0] == '\0') {
        code = check_path(text, out_error);
        if (code == 0)
            *out_address = (struct store_address){STORE_IN_FILE, text};
        return code;
    }
    for (int i = 0; i < SCHEME_COUNT; i++) {
        if (strcmp(scheme, schemes[i].name) != 0)
            continue;
        if (schemes[i].refusal != NULL)
            return error_set(out_error, FLY_EUSAGE, "'%s:' %s; stores are paths and 'postgresql://...'",
                             scheme, schemes[i].refusal);
        *out_address = (struct store_address){STORE_ON_SERVER, text};
        return 0;
    }
    return refuse_unknown(scheme, out_error);
}

void store_address_show(const char *uri, char out_shown[STORE_SHOWN_MAX])
{
    const char *rest = strstr(uri, "://"), *at, *query;

    rest = rest == NULL ? uri : rest + 3;
    at = strrchr(rest, '@');
    query = strpbrk(rest, "?#");
    /* An '@' behind a '?' stands in a password, or in an option: nothing is certain then. */
    if (at != NULL && query != NULL && query < at) {
        snprintf(out_shown, STORE_SHOWN_MAX, "postgresql://...");
        return;
    }
    if (at != NULL)
        rest = at + 1;
    snprintf(out_shown, STORE_SHOWN_MAX, "postgresql://%.*s", (int)strcspn(rest, "?#"), rest);
}
