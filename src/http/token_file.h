/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TOKEN_FILE_H
#define FLYBALL_HTTP_TOKEN_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "http/tokens.h"

/*
 * The file of tokens, as it is now: it is looked at whenever somebody shows a token,
 * and read again when it changed, so that a line that is removed counts no more.
 * While it cannot be read, or has a line that is none, nobody gets in.
 */
struct token_file {
    const char *path; /* borrowed */
    pthread_mutex_t lock;
    struct token_list list; /* empty while it is not read */
    struct stat seen;
    bool read;
    struct fly_error why; /* it could not be read last time; code 0: it could */
};

/*
 * FLY_EPERM for a file that others may read or write, or that belongs to another
 * user; FLY_ENOTFOUND, FLY_EREAD, FLY_ECONFIG. To be closed only after success.
 */
int token_file_open(struct token_file *file, const char *path, struct fly_error *out_error);
void token_file_close(struct token_file *file);

/*
 * Whose token that is. FLY_EPERM for one that is none or has expired, FLY_ECONFIG
 * while the file cannot be read. No text repeats the token. Thread-safe.
 */
int token_file_ask(struct token_file *file, const char *secret, int64_t now_s, struct token *out_token,
                   struct fly_error *out_error);

/* Looks at the file, `anew`: also where it seems not to have changed. Why it cannot be read. Thread-safe. */
int token_file_check(struct token_file *file, bool anew, struct fly_error *out_error);

/*
 * Adds a line to the file, which is made with mode 0600 where there is none.
 * FLY_ECONFLICT: a token of that name is there.
 */
int token_file_add(const char *path, const struct token *token, struct fly_error *out_error);

#endif
