/* SPDX-License-Identifier: Apache-2.0 */
#include "http/signed_token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"
#include "http/tokens.h"
#include "shapes/shape_rows.h"

enum { PARTS = 3, MAC_BYTES = 32, ARENA_MAX = 64 << 10, SIX_BITS = 0x3f, SUM_SHOWN = 32 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char name_front[] = "jwt:", algorithm[] = "HS256";

#define SIGNED_SCOPE_WORD(name, word) word,
const char *const signed_scope_words[SIGNED_SCOPE_COUNT + 1] = {SIGNED_SCOPE_MAP(SIGNED_SCOPE_WORD) NULL};

/* ---- what it says ---- */

struct head {
    const char *alg, *typ;
    json_t *crit;
};
static const struct shape_field head_rows[] = {
    {SHAPE_AT(head, alg), SHAPE_IS_TEXT(16)},
    {SHAPE_AT(head, typ), SHAPE_IS_TEXT(16), .need = SHAPE_SPARING},
    {SHAPE_AT(head, crit), .kind = SHAPE_JSON, .need = SHAPE_SPARING, .null = SHAPE_OR_NULL},
};
static const struct shape shape_head = {SHAPE_OF(head, head_rows)};

struct claims {
    const char *sub;
    const char *const *scopes;
    size_t scope_count;
    json_t *exp, *nbf, *iat; /* dates: NULL if they are not there */
};
static const struct shape_field claim_rows[] = {
    {SHAPE_AT(claims, sub), .kind = SHAPE_TEXT, .least = 1, .longest = SIGNED_SUBJECT_MAX - 1},
    {SHAPE_AT(claims, scopes), .kind = SHAPE_TEXTS, .longest = SIGNED_TOKEN_MAX,
     .beside = offsetof(struct claims, scope_count)},
    {SHAPE_AT(claims, exp), .kind = SHAPE_JSON, .need = SHAPE_SPARING, .null = SHAPE_OR_NULL},
    {SHAPE_AT(claims, nbf), .kind = SHAPE_JSON, .need = SHAPE_SPARING, .null = SHAPE_OR_NULL},
    {SHAPE_AT(claims, iat), .kind = SHAPE_JSON, .need = SHAPE_SPARING, .null = SHAPE_OR_NULL},
};
static const struct shape shape_claims = {SHAPE_OF(claims, claim_rows)};

/* ---- base64url ---- */

/* Decodes; returns the number of bytes, or -1 for a text that no encoder writes. */
static long decode(const char *text, size_t length, unsigned char *out_bytes)
{
    unsigned long bits = 0;
    unsigned held = 0;
    long count = 0;

    for (size_t i = 0; i < length; i++) {
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;

        if (digit == NULL)
            return -1;
        bits = (bits << 6 | (unsigned long)(digit - digits)) & 0xffffff;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        out_bytes[count++] = (unsigned char)(bits >> held);
    }
    /* Six bits are no byte, and bits that are left over must be 0: a second spelling is no token. */
    return held == 6 || (bits & ((1UL << held) - 1)) != 0 ? -1 : count;
}

static size_t encode(const unsigned char *bytes, size_t length, char *text)
{
    unsigned long bits = 0;
    unsigned held = 0;
    size_t count = 0;

    for (size_t i = 0; i < length; i++) {
        bits = (bits << 8 | bytes[i]) & 0xffffff;
        for (held += 8; held >= 6;) {
            held -= 6;
            text[count++] = digits[bits >> held & SIX_BITS];
        }
    }
    if (held > 0)
        text[count++] = digits[bits << (6 - held) & SIX_BITS];
    text[count] = '\0';
    return count;
}

/* ---- reading ---- */

static int refuse(struct fly_error *out_error)
{
    return error_set(out_error, FLY_EPERM,
                     "the token is not one that was signed here, or it does not hold now");
}

/* Finds the three parts. */
static bool split(const char *text, const char *parts[PARTS], size_t lengths[PARTS])
{
    for (int i = 0; i < PARTS; i++) {
        parts[i] = text;
        lengths[i] = strcspn(text, ".");
        text += lengths[i];
        if (*text != (i < PARTS - 1 ? '.' : '\0'))
            return false;
        text += i < PARTS - 1;
    }
    return true;
}

static bool is_signed(const char *text, size_t length, const char *signature, size_t signature_length,
                      const void *key, size_t key_length)
{
    unsigned char made[MAC_BYTES], given[SIGNED_TOKEN_MAX];

    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_length, text, length, made) < 0)
        return false;
    return decode(signature, signature_length, given) == MAC_BYTES &&
           gnutls_memcmp(made, given, MAC_BYTES) == 0;
}

/* The struct borrows the part's JSON, which is the caller's; it is there also if the part cannot be read. */
static bool read_part(const char *part, size_t length, const struct shape *shape, struct arena *arena,
                      json_t **out_json, void *out_struct)
{
    unsigned char bytes[SIGNED_TOKEN_MAX];
    long count = decode(part, length, bytes);

    return count > 0 && shape_parse((const char *)bytes, (size_t)count, out_json, NULL) == 0 &&
           shape_read(shape, *out_json, SHAPE_LENIENT, arena, out_struct, NULL) == 0;
}

static bool take_scopes(const struct claims *claims, unsigned *out_scopes)
{
    *out_scopes = 0;
    for (size_t i = 0; i < claims->scope_count; i++) {
        int scope = 0;

        while (scope < SIGNED_SCOPE_COUNT && strcmp(claims->scopes[i], signed_scope_words[scope]) != 0)
            scope++;
        if (scope == SIGNED_SCOPE_COUNT)
            return false;
        *out_scopes |= 1U << scope;
    }
    return true;
}

/* Reads a date in seconds since 1970; one that is not there stays as it is. */
static bool take_date(const json_t *date, int64_t *out_date_s)
{
    static const double end_s = 0x1p63;
    double seconds;

    if (date == NULL)
        return true;
    seconds = json_number_value(date);
    if (!json_is_number(date) || !(seconds >= 0) || (json_is_real(date) && seconds >= end_s))
        return false;
    *out_date_s = json_is_integer(date) ? (int64_t)json_integer_value(date) : (int64_t)seconds;
    return true;
}

static bool take_claims(const struct claims *claims, int64_t now_s, struct signed_token *out_token)
{
    struct signed_token token = {.expires = claims->exp != NULL};
    int64_t begins_s = 0, issued_s = 0;

    if (!take_scopes(claims, &token.scopes) || !take_date(claims->exp, &token.expires_s) ||
        !take_date(claims->nbf, &begins_s) || !take_date(claims->iat, &issued_s))
        return false;
    if ((token.expires && token.expires_s < now_s - SIGNED_LEEWAY_S) || begins_s > now_s + SIGNED_LEEWAY_S)
        return false;
    snprintf(token.subject, sizeof token.subject, "%s", claims->sub);
    *out_token = token;
    return true;
}

int signed_token_read(const char *text, const void *key, size_t key_length, int64_t now_s,
                      struct signed_token *out_token, struct fly_error *out_error)
{
    const char *parts[PARTS];
    size_t lengths[PARTS];
    struct head head;
    struct claims claims;
    json_t *head_json = NULL, *claims_json = NULL;
    struct arena arena;
    bool holds;

    if (key_length < SIGNED_KEY_MIN || strlen(text) >= SIGNED_TOKEN_MAX || !split(text, parts, lengths) ||
        !is_signed(text, (size_t)(parts[2] - text) - 1, parts[2], lengths[2], key, key_length))
        return refuse(out_error);
    arena_init(&arena, ARENA_MAX);
    holds = read_part(parts[0], lengths[0], &shape_head, &arena, &head_json, &head) &&
            strcmp(head.alg, algorithm) == 0 && head.crit == NULL &&
            read_part(parts[1], lengths[1], &shape_claims, &arena, &claims_json, &claims) &&
            take_claims(&claims, now_s, out_token);
    json_decref(head_json);
    json_decref(claims_json);
    arena_deinit(&arena);
    return holds ? 0 : refuse(out_error);
}

/* ---- writing ---- */

/* Appends a part; returns the new length, or 0 if it does not fit. */
static size_t add_part(const struct shape *shape, const void *from, char text[SIGNED_TOKEN_MAX],
                       size_t length, struct fly_error *out_error)
{
    char *json;

    if (shape_write_text(shape, from, &json, out_error) < 0)
        return 0;
    if (length > 0)
        text[length++] = '.';
    if (length + strlen(json) * 4 / 3 + 2 + MAC_BYTES * 2 < SIGNED_TOKEN_MAX)
        length += encode((const unsigned char *)json, strlen(json), text + length);
    else
        length = 0;
    free(json);
    return length;
}

int signed_token_write(const struct signed_token *token, const void *key, size_t key_length,
                       char out_text[SIGNED_TOKEN_MAX], struct fly_error *out_error)
{
    static const struct head head = {.alg = algorithm, .typ = "JWT"};
    const char *scopes[SIGNED_SCOPE_COUNT];
    struct claims claims = {.sub = token->subject, .scopes = scopes};
    unsigned char mac[MAC_BYTES];
    struct fly_error why = {.text = "it is too long"};
    size_t length;

    if (key_length < SIGNED_KEY_MIN)
        return error_set(out_error, FLY_EUSAGE,
                         "no token can be made: the key has %zu bytes, and HS256 takes %d", key_length,
                         SIGNED_KEY_MIN);
    for (int i = 0; i < SIGNED_SCOPE_COUNT; i++) {
        if ((token->scopes >> i & 1) != 0)
            scopes[claims.scope_count++] = signed_scope_words[i];
    }
    if (token->expires)
        claims.exp = json_integer((json_int_t)token->expires_s);
    length = add_part(&shape_head, &head, out_text, 0, &why);
    if (length > 0)
        length = add_part(&shape_claims, &claims, out_text, length, &why);
    json_decref(claims.exp);
    if (length == 0)
        return error_set(out_error, FLY_EUSAGE, "no token can be made: %s", why.text);
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_length, out_text, length, mac) < 0)
        return error_no_memory(out_error);
    out_text[length++] = '.';
    encode(mac, sizeof mac, out_text + length);
    return 0;
}

void signed_token_name(const struct signed_token *token, char out_name[SIGNED_NAME_MAX])
{
    char sum[SHA256_TEXT_MAX];
    struct sha256 sha;

    if (strlen(token->subject) + sizeof name_front <= SIGNED_NAME_MAX && token_name_is_good(token->subject)) {
        snprintf(out_name, SIGNED_NAME_MAX, "%s%.59s", name_front, token->subject);
        return;
    }
    sha256_init(&sha);
    sha256_add(&sha, token->subject, strlen(token->subject));
    sha256_text(&sha, sum);
    snprintf(out_name, SIGNED_NAME_MAX, "%ssha256-%.*s", name_front, SUM_SHOWN, sum);
}
