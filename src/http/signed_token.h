/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SIGNED_TOKEN_H
#define FLYBALL_HTTP_SIGNED_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Tokens of the public daemon: JSON web tokens (RFC 7519) that are signed with HMAC-SHA256 and a key that
 * the service and whoever issues tokens share. No file lists them, so none can be taken back: only another
 * key ends them.
 *
 *     {"alg":"HS256","typ":"JWT"} . {"sub":"alice","scopes":["gpu-read"],"exp":1795528406} . signature
 *
 * A token holds only if all of this is so; one that does not is refused without a word on which part was
 * wrong:
 *     - it has three parts of base64url without padding, each in its only spelling, and is no longer than
 *       SIGNED_TOKEN_MAX;
 *     - `alg` is HS256, and no member is `crit`, or stands twice;
 *     - the signature is the key's, compared in a time that does not depend on how far it fits; a key of
 *       less than SIGNED_KEY_MIN bytes signs nothing (RFC 7518, 3.2);
 *     - `sub` is a text of 1 to SIGNED_SUBJECT_MAX - 1 bytes, and `scopes` a list of known words;
 *     - `exp`, if it is there, is no more than SIGNED_LEEWAY_S seconds ago, and `nbf` no more than that
 * ahead; these and `iat` are numbers from 0 to INT64_MAX, perhaps with a fraction, which does not count.
 * Other claims count nothing. Pure; thread-safe.
 */
enum {
    SIGNED_TOKEN_MAX = 4096,
    SIGNED_SUBJECT_MAX = 256,
    SIGNED_NAME_MAX = 64,
    SIGNED_LEEWAY_S = 60,
    SIGNED_KEY_MIN = 32
};

/*
 *     X(name, word)
 */
#define SIGNED_SCOPE_MAP(X)       \
    X(GPU_CONTROL, "gpu-control") \
    X(GPU_READ, "gpu-read")       \
    X(CPU_READ, "cpu-read")

#define SIGNED_SCOPE_ENUM(name, word) SIGNED_SCOPE_##name,
enum signed_scope { SIGNED_SCOPE_MAP(SIGNED_SCOPE_ENUM) SIGNED_SCOPE_COUNT };
#undef SIGNED_SCOPE_ENUM

extern const char *const signed_scope_words[SIGNED_SCOPE_COUNT + 1]; /* ended by NULL */

struct signed_token {
    char subject[SIGNED_SUBJECT_MAX];
    unsigned scopes; /* bit N is enum signed_scope N */
    bool expires;
    int64_t expires_s; /* since 1970, if it expires */
};

/* Reads a token that the key has signed. FLY_EPERM for any other. */
int signed_token_read(const char *text, const void *key, size_t key_length, int64_t now_s,
                      struct signed_token *out_token, struct fly_error *out_error);

/* Writes and signs a token. FLY_EUSAGE for a short key or a subject that could not be read back; FLY_ENOMEM.
 */
int signed_token_write(const struct signed_token *token, const void *key, size_t key_length,
                       char out_text[SIGNED_TOKEN_MAX], struct fly_error *out_error);

/*
 * Writes the name by which the bearer is known in logs, leases and rules: "jwt:alice". It never is the name
 * of a token of the file (tokens.h). A subject with other characters than those of names, or a long one,
 * gives "jwt:sha256-" and the begin of its sum.
 */
void signed_token_name(const struct signed_token *token, char out_name[SIGNED_NAME_MAX]);

#endif
