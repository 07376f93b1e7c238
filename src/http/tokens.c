/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"

enum { WORDS = 4, LINE_MAX = 512, HOUR_S = 3600, DAY_S = 86400, SPAN_MAX = 36500 };
static const char blanks[] = " \t\r";
static const char *const scopes[] = {
    [SERVE_READ] = "read", [SERVE_TRAIN] = "train", [SERVE_MANAGE] = "manage"};
enum { SCOPES = sizeof scopes / sizeof scopes[0] };

bool token_scope_parse(const char *word, enum serve_scope *out_scope)
{
    int found = word_index(word, scopes, SCOPES);

    if (found >= 0)
        *out_scope = (enum serve_scope)found;
    return found >= 0;
}

bool token_name_is_good(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t length = strlen(name);

    return length > 0 && length < TOKEN_NAME_MAX && strspn(name, letters) == length;
}

/* Parses an existing date in the one form that sorts as text. */
static bool parse_date(const char *text, int64_t *out_s)
{
    struct tm time = {.tm_isdst = 0};
    char again[TOKEN_DATE_MAX];
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &time);
    time_t seconds;

    if (end == NULL || *end != '\0')
        return false;
    seconds = timegm(&time);
    if (seconds < 0 || strcmp(token_date(seconds, again), text) != 0)
        return false;
    *out_s = seconds;
    return true;
}

bool token_expiry_parse(const char *text, int64_t now_s, int64_t *out_s)
{
    size_t length = strlen(text);
    char digits[TOKEN_DATE_MAX];
    uint64_t number;

    if (strcmp(text, "never") == 0) {
        *out_s = INT64_MAX;
        return true;
    }
    if (length > 1 && length < sizeof digits && (text[length - 1] == 'd' || text[length - 1] == 'h')) {
        memcpy(digits, text, length - 1);
        digits[length - 1] = '\0';
        if (!number_parse_u64(digits, SPAN_MAX, &number) || number == 0)
            return false;
        *out_s = now_s + (int64_t)number * (text[length - 1] == 'd' ? DAY_S : HOUR_S);
        return true;
    }
    return parse_date(text, out_s);
}

char *token_date(int64_t expires_s, char text[TOKEN_DATE_MAX])
{
    time_t seconds = (time_t)expires_s;
    struct tm utc;

    if (expires_s == INT64_MAX)
        snprintf(text, TOKEN_DATE_MAX, "never");
    else if (gmtime_r(&seconds, &utc) == NULL ||
             strftime(text, TOKEN_DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(text, TOKEN_DATE_MAX, "unknown");
    return text;
}

static bool parse_hash(const char *text, unsigned char hash[TOKEN_HASH_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    if (strlen(text) != (size_t)2 * TOKEN_HASH_BYTES)
        return false;
    for (size_t i = 0; i < (size_t)2 * TOKEN_HASH_BYTES; i++) {
        const char *digit = strchr(digits, text[i]);

        if (digit == NULL)
            return false;
        hash[i / 2] = (unsigned char)(hash[i / 2] << 4 | (digit - digits));
    }
    return true;
}

/*
 * Parses one line without its end. Returns false if it is invalid. A line of only blanks or a
 * comment gives the name "".
 */
static bool parse_line(char *line, struct token *out_token)
{
    struct token token = {.scope = SERVE_NOBODY};
    char *words[WORDS], *rest = NULL;
    size_t count = 0;

    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, blanks, &rest); word != NULL; word = strtok_r(NULL, blanks, &rest)) {
        if (count == WORDS)
            return false;
        words[count++] = word;
    }
    if (count == 0) {
        *out_token = token;
        return true;
    }
    if (count != WORDS || !token_name_is_good(words[0]) || !token_scope_parse(words[1], &token.scope) ||
        !(strcmp(words[2], "never") == 0 || parse_date(words[2], &token.expires_s)) ||
        !parse_hash(words[3], token.hash))
        return false;
    if (strcmp(words[2], "never") == 0)
        token.expires_s = INT64_MAX;
    snprintf(token.name, sizeof token.name, "%s", words[0]);
    *out_token = token;
    return true;
}

static bool has_name(const struct token_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->tokens[i].name, name) == 0)
            return true;
    }
    return false;
}

static int add(struct token_list *list, const struct token *token, const char *path, size_t number,
               struct fly_error *out_error)
{
    struct token *grown = list->tokens;

    if (list->count == TOKENS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s has more than %d tokens", path, TOKENS_MAX);
    if (has_name(list, token->name))
        return error_set(out_error, FLY_ECONFIG, "%s:%zu: a token of that name stands above", path, number);
    /* The list's room grows in powers of two. */
    if ((list->count & (list->count - 1)) == 0)
        grown = realloc(list->tokens, (list->count == 0 ? 1 : 2 * list->count) * sizeof *grown);
    if (grown == NULL)
        return error_no_memory(out_error);
    list->tokens = grown;
    list->tokens[list->count++] = *token;
    return 0;
}

int token_list_parse(const char *text, const char *path, struct token_list *out_list,
                     struct fly_error *out_error)
{
    struct token_list list = {.count = 0};
    int code = 0;

    for (size_t number = 1; *text != '\0' && code == 0; number++) {
        size_t length = strcspn(text, "\n");
        char line[LINE_MAX];
        struct token token;
        bool fits = length < sizeof line;

        if (fits) {
            memcpy(line, text, length);
            line[length] = '\0';
        }
        if (!fits || !parse_line(line, &token))
            code = error_set(out_error, FLY_ECONFIG,
                             "%s:%zu is no token: expected a name, read, train or manage, a date as "
                             "2027-02-19T23:00:00Z or never, and 64 hexadecimal digits",
                             path, number);
        else if (token.name[0] != '\0')
            code = add(&list, &token, path, number, out_error);
        text += length + (text[length] == '\n');
    }
    if (code < 0)
        token_list_deinit(&list);
    else
        *out_list = list;
    return code;
}

void token_list_deinit(struct token_list *list)
{
    free(list->tokens);
    *list = (struct token_list){.count = 0};
}

const struct token *token_list_find(const struct token_list *list, const char *secret)
{
    const struct token *found = NULL;
    unsigned char hash[TOKEN_HASH_BYTES];

    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, strlen(secret), hash) < 0)
        return NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (gnutls_memcmp(list->tokens[i].hash, hash, sizeof hash) == 0)
            found = &list->tokens[i];
    }
    return found;
}

void token_line_put(const struct token *token, struct buffer *text)
{
    char date[TOKEN_DATE_MAX];

    buffer_printf(text, "%s %s %s ", token->name, scopes[token->scope], token_date(token->expires_s, date));
    for (size_t i = 0; i < sizeof token->hash; i++)
        buffer_printf(text, "%02x", token->hash[i]);
    buffer_puts(text, "\n");
}

int token_draw(char out_secret[TOKEN_TEXT_MAX], unsigned char out_hash[TOKEN_HASH_BYTES],
               struct fly_error *out_error)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[TOKEN_RANDOM_BYTES + 1] = {0};
    size_t length = 4;

    if (getrandom(bytes, TOKEN_RANDOM_BYTES, 0) != TOKEN_RANDOM_BYTES)
        return error_set(out_error, FLY_EREAD, "drawing random bytes failed: %s", strerror(errno));
    memcpy(out_secret, "fly_", length);
    for (size_t bit = 0; bit < (size_t)8 * TOKEN_RANDOM_BYTES; bit += 6) {
        unsigned pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];

        out_secret[length++] = letters[pair >> (10 - bit % 8) & 63];
    }
    out_secret[length] = '\0';
    explicit_bzero(bytes, sizeof bytes);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, out_secret, length, out_hash) < 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "SHA-256 is not to be had from GnuTLS");
    return 0;
}
