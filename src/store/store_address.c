/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_address.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/service_address.h"
#include "base/words.h"

enum { SCHEME_MAX = 32, HEX = 16 };

/* A scheme, and what to say about it; NULL: a server that can hold a store. */
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

/* Gives the text's scheme, "" for a path; recognises "scheme://", "unix:", and a service's HOST:PORT. */
static void read_scheme(const char *text, char out_scheme[SCHEME_MAX])
{
    const char *rest;
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

    out_scheme[0] = '\0';
    if (address_split(text, &rest) == ADDRESS_HOST)
        snprintf(out_scheme, SCHEME_MAX, "http");
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

/* libpq reads "host=db password=x" and "postgresql:/..." too; here they would become names of files. */
static bool is_meant_for_server(const char *path)
{
    static const char *const keys[] = {"host", "hostaddr", "port",    "dbname",
                                       "user", "password", "service", "sslmode"};
    const char *first = path + strspn(path, " \t");
    size_t word = strcspn(first, " \t=");

    if (strncasecmp(first, "postgresql:", strlen("postgresql:")) == 0 ||
        strncasecmp(first, "postgres:", strlen("postgres:")) == 0)
        return true;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strlen(keys[i]) == word && strncmp(first, keys[i], word) == 0)
            return first[word + strspn(first + word, " \t")] == '=';
    }
    return false;
}

static int check_path(const char *path, struct fly_error *out_error)
{
    size_t length = strlen(path);

    if (is_meant_for_server(path))
        return error_set(
            out_error, FLY_EUSAGE,
            "a database server's address has another form: write "
            "'postgresql://user@host:port/database'; for a file of such a name, put './' in front");

    if (path[length - 1] == '/')
        return error_set(out_error, FLY_EUSAGE,
                         "the store '%.200s' is a directory; name a file in it, such as '%.200sstore.sqlite'",
                         path, path);
    return 0;
}

/* Returns whether each ':' of the hosts is followed only by digits; an IPv6 address is in brackets. */
static bool has_ports(const char *hosts, size_t length)
{
    bool bracket = false, port = false;

    for (size_t i = 0; i < length; i++) {
        if (port && hosts[i] != ',' && (hosts[i] < '0' || hosts[i] > '9'))
            return false;
        if (hosts[i] == '[' || hosts[i] == ']')
            bracket = hosts[i] == '[';
        port = (port && hosts[i] != ',') || (hosts[i] == ':' && !bracket);
    }
    return true;
}

/*
 * libpq would split a password that contains '@', '/' or '?' unescaped, look for a host named
 * like a part of it, and repeat that part in its error text.
 */
static int check_server(const char *text, struct fly_error *out_error)
{
    const char *rest = strstr(text, "://") + 3, *at = memchr(rest, '@', strcspn(rest, "/?#"));
    const char *hosts = at != NULL ? at + 1 : rest;
    size_t until_query = strcspn(hosts, "?#");

    if (memchr(hosts, '@', until_query) == NULL && has_ports(hosts, strcspn(hosts, "/?#")))
        return 0;
    return error_set(
        out_error, FLY_EUSAGE,
        "it is not clear where the user and the password end in the store's address; write '@' in "
        "them as %%40, '/' as %%2F, ':' as %%3A and '?' as %%3F");
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
        code = check_server(text, out_error);
        if (code == 0)
            *out_address = (struct store_address){STORE_ON_SERVER, text};
        return code;
    }
    return refuse_unknown(scheme, out_error);
}

void store_address_show(const char *uri, char out_shown[STORE_SHOWN_MAX])
{
    const char *rest = strstr(uri, "://"), *at, *query;

    rest = rest == NULL ? uri : rest + 3;
    at = strrchr(rest, '@');
    query = strpbrk(rest, "?#");
    /* An '@' after a '?' belongs to a password or to an option: it is not clear which. */
    if (at != NULL && query != NULL && query < at) {
        snprintf(out_shown, STORE_SHOWN_MAX, "postgresql://...");
        return;
    }
    if (at != NULL)
        rest = at + 1;
    snprintf(out_shown, STORE_SHOWN_MAX, "postgresql://%.*s", (int)strcspn(rest, "?#"), rest);
}

/* ---- passwords ---- */

struct masked {
    char *text;
    size_t length;
};

static void put(struct masked *masked, const char *text, size_t length)
{
    if (length > STORE_ADDRESS_MAX - masked->length)
        length = STORE_ADDRESS_MAX - masked->length;
    memcpy(masked->text + masked->length, text, length);
    masked->length += length;
    masked->text[masked->length] = '\0';
}

static void put_word(struct masked *masked, const char *word)
{
    put(masked, word, strlen(word));
}

static int hex_digit(char digit)
{
    const char *digits = "0123456789abcdef", *found;

    if (digit >= 'A' && digit <= 'F')
        digit = (char)(digit - 'A' + 'a');
    found = digit != '\0' ? strchr(digits, digit) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* Names of fields whose values are secret: these as a whole name, those below anywhere in a name. */
static const char *const secret_names[] = {"key", "pass", "pwd", "pw", "sig", "auth", NULL};
static const char *const secret_parts[] = {"password",  "passwd",     "token",   "secret",
                                           "apikey",    "api_key",    "api-key", "access_key",
                                           "signature", "credential", NULL};

/*
 * Returns whether the name of a field, in which letters may be written as %70, is that of a
 * password or a token.
 */
static bool is_secret(const char *name, size_t length)
{
    char plain[64];
    size_t to = 0;

    for (size_t i = 0; i < length && to + 1 < sizeof plain; i++) {
        int high = name[i] == '%' && i + 2 < length ? hex_digit(name[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(name[i + 2]) : -1;

        plain[to] = name[i];
        if (low >= 0)
            plain[to] = (char)(high * HEX + low);
        to++;
        i += low >= 0 ? 2 : 0;
    }
    plain[to] = '\0';
    for (const char *const *whole = secret_names; *whole != NULL; whole++) {
        if (strcasecmp(plain, *whole) == 0)
            return true;
    }
    for (const char *const *part = secret_parts; *part != NULL; part++) {
        if (strcasestr(plain, *part) != NULL)
            return true;
    }
    return false;
}

static void put_options(struct masked *masked, const char *options)
{
    while (*options != '\0') {
        size_t length = strcspn(options, "&"), name = strcspn(options, "=&");

        if (name < length && is_secret(options, name)) {
            put(masked, options, name);
            put_word(masked, "=***");
        } else {
            put(masked, options, length);
        }
        options += length;
        if (*options == '&')
            put(masked, options++, 1);
    }
}

/* Puts what follows "://". */
static void put_url(struct masked *masked, const char *rest)
{
    size_t authority = strcspn(rest, "/?#");
    const char *at = memchr(rest, '@', authority), *query = strchr(rest, '?');
    const char *hosts = at != NULL ? at + 1 : rest, *colon;

    if (strchr(hosts, '@') != NULL || strchr(rest, '#') != NULL || !has_ports(hosts, strcspn(hosts, "/?#"))) {
        put_word(masked, "...");
        return;
    }
    colon = at != NULL ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    put(masked, rest, (size_t)((colon != NULL ? colon : hosts) - rest));
    if (colon != NULL)
        put_word(masked, ":***@");
    put(masked, hosts, query != NULL ? (size_t)(query + 1 - hosts) : strlen(hosts));
    if (query != NULL)
        put_options(masked, query + 1);
}

/* Returns the length of a value: a word, or a quoted text in which '\\' escapes the next character. */
static size_t value_length(const char *value)
{
    size_t length = 1;

    if (value[0] != '\'')
        return strcspn(value, " \t");
    while (value[length] != '\0' && value[length] != '\'')
        length += value[length] == '\\' && value[length + 1] != '\0' ? 2 : 1;
    return length + (value[length] == '\'');
}

static void put_words(struct masked *masked, const char *words)
{
    while (*words != '\0') {
        size_t blanks = strspn(words, " \t"), name = strcspn(words + blanks, " \t=");
        size_t gap = blanks + name + strspn(words + blanks + name, " \t");

        if (words[gap] != '=') {
            put(masked, words, gap);
            words += gap;
            continue;
        }
        gap += 1 + strspn(words + gap + 1, " \t");
        put(masked, words, gap);
        if (is_secret(words + blanks, name))
            put_word(masked, "***");
        else
            put(masked, words + gap, value_length(words + gap));
        words += gap + value_length(words + gap);
    }
}

void store_address_mask(const char *text, char out_masked[STORE_ADDRESS_MAX + 1])
{
    struct masked masked = {.text = out_masked};
    const char *rest = strstr(text, "://");

    out_masked[0] = '\0';
    if (rest != NULL) {
        put(&masked, text, (size_t)(rest + 3 - text));
        put_url(&masked, rest + 3);
    } else if (strncasecmp(text, "postgres", strlen("postgres")) == 0 && strchr(text, '@') != NULL) {
        put_word(&masked, "...");
    } else if (strchr(text, '=') != NULL) {
        put_words(&masked, text);
    } else {
        put_word(&masked, text);
    }
}
