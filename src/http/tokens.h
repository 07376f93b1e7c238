/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TOKENS_H
#define FLYBALL_HTTP_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "http/exchange.h"

/*
 * Tokens as lines of text: a name, what the bearer may do, until when, and the SHA-256 of the
 * token. The token itself is written nowhere. '#' begins a comment.
 *
 *     night-runs  train  2027-02-19T23:00:00Z  9f86d081884c7d65...
 *     grafana     read   never                 ...
 *
 * Somebody who can read the file cannot send requests with what it holds.
 */
enum { TOKEN_NAME_MAX = 64, TOKEN_HASH_BYTES = 32, TOKEN_RANDOM_BYTES = 32, TOKENS_MAX = 1000 };
enum { TOKEN_TEXT_MAX = 64, TOKEN_DATE_MAX = 32, TOKEN_FILE_MAX = 4 << 20 };

struct token {
    char name[TOKEN_NAME_MAX]; /* a-z A-Z 0-9 - _ . */
    enum serve_scope scope;    /* SERVE_READ, SERVE_TRAIN or SERVE_MANAGE */
    int64_t expires_s;         /* since 1970; INT64_MAX: never */
    unsigned char hash[TOKEN_HASH_BYTES];
};

struct token_list {
    struct token *tokens; /* owned */
    size_t count;
};

/*
 * Parses the file's text. FLY_ECONFIG names the line that is invalid or repeats a name;
 * FLY_ELIMIT. `path` is for the error texts, which repeat nothing of the lines. Call
 * token_list_deinit on `out_list` only after success. Pure.
 */
int token_list_parse(const char *text, const char *path, struct token_list *out_list,
                     struct fly_error *out_error);
void token_list_deinit(struct token_list *list);

/* Returns the token's entry, or NULL. Takes the same time for every token, known or not. */
const struct token *token_list_find(const struct token_list *list, const char *secret);

/* Appends the token's line with its line end. */
void token_line_put(const struct token *token, struct buffer *text);

/* Parses "read", "train" or "manage". Returns whether the word is one of them. */
bool token_scope_parse(const char *word, enum serve_scope *out_scope);
bool token_name_is_good(const char *name);

/*
 * Parses "never", "90d", "12h" or "2027-02-19T23:00:00Z". A date may lie in the past. Returns
 * whether the text is one of these.
 */
bool token_expiry_parse(const char *text, int64_t now_s, int64_t *out_s);
char *token_date(int64_t expires_s, char text[TOKEN_DATE_MAX]);

/* Draws a new random token, "fly_" and 43 letters, digits, '-' and '_', and computes its hash. */
int token_draw(char out_secret[TOKEN_TEXT_MAX], unsigned char out_hash[TOKEN_HASH_BYTES],
               struct fly_error *out_error);

#endif
