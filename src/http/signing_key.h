/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SIGNING_KEY_H
#define FLYBALL_HTTP_SIGNING_KEY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "http/signed_token.h"

/*
 * The key with which tokens are signed (signed_token.h): all bytes of a file, also a newline at its end; but
 * space at the end of a key of text makes it no longer: it needs SIGNED_KEY_MIN bytes before that. Who
 * has it can make tokens for anybody, so the file must belong to root or to this user, and nobody else but
 * its group may read it, and nobody else may write it.
 *
 *     head -c 32 /dev/urandom > /etc/flyball/signing.key
 */
enum { SIGNING_KEY_MAX = 4096 };

struct signing_key {
    const char *path; /* borrowed */
    pthread_mutex_t lock;
    unsigned char bytes[SIGNING_KEY_MAX];
    size_t length;
};

/*
 * Opens and reads the file. FLY_EPERM: others may read or write it, or it belongs to another user;
 * FLY_ECONFIG: it is too short, or too long; FLY_ENOTFOUND, FLY_EREAD. Close it only after success.
 */
int signing_key_open(struct signing_key *key, const char *path, struct fly_error *out_error);
void signing_key_close(struct signing_key *key);

/* Reads the file again; after an error the key is as before. Thread-safe. */
int signing_key_renew(struct signing_key *key, struct fly_error *out_error);

/* Reads a token that this key has signed, as signed_token_read. Thread-safe. */
int signing_key_ask(struct signing_key *key, const char *text, int64_t now_s, struct signed_token *out_token,
                    struct fly_error *out_error);

#endif
