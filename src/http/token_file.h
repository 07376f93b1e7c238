/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TOKEN_FILE_H
#define FLYBALL_HTTP_TOKEN_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "http/tokens.h"

/*
 * The file of tokens. Each time a caller shows a token, the file is checked and read again if it
 * changed, so that a removed line is no longer valid. While the file cannot be read, or has an
 * invalid line, no caller is accepted.
 */
struct token_file {
    const char *path; /* borrowed */
    pthread_mutex_t lock;
    struct token_list list; /* empty while the file is not read */
    struct stat seen;
    bool read;
    struct fly_error why; /* why it could not be read last time; code 0: it could */
};

/*
 * Opens and reads the file. FLY_EPERM: others may read or write it, or it belongs to another
 * user; FLY_ENOTFOUND, FLY_EREAD, FLY_ECONFIG. Close it only after success.
 */
int token_file_open(struct token_file *file, const char *path, struct fly_error *out_error);
void token_file_close(struct token_file *file);

/*
 * Finds the token that a caller showed. FLY_EPERM: it is unknown or has expired; FLY_ECONFIG: the
 * file cannot be read. No text repeats the token. Thread-safe.
 */
int token_file_ask(struct token_file *file, const char *secret, int64_t now_s, struct token *out_token,
                   struct fly_error *out_error);

/*
 * Checks whether the file changed and reads it then; with `anew` always. The error says why it
 * cannot be read. Thread-safe.
 */
int token_file_check(struct token_file *file, bool anew, struct fly_error *out_error);

/*
 * Appends a line to the file, which is created with mode 0600 if it does not exist.
 * FLY_ECONFLICT: it has a token of that name already.
 */
int token_file_add(const char *path, const struct token *token, struct fly_error *out_error);

#endif
