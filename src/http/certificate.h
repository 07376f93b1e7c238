/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_CERTIFICATE_H
#define FLYBALL_HTTP_CERTIFICATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <flyball/error.h>

#include "base/buffer.h"

/*
 * The certificate of a service and its key, read into memory as PEM, and read anew while
 * it runs: each handshake takes what is there then, so connections that stand keep theirs.
 */
struct certificate {
    struct buffer chain, key;    /* ended by a 0 byte */
    int64_t begins_s, expires_s; /* of the first of the chain, since 1970 */
};

/*
 * Reads both and checks whether they belong together. FLY_ECONFIG says what is wrong
 * with them, FLY_EPERM that everybody may read the key. Needs certificate_deinit only
 * after success.
 */
int certificate_read(const char *chain_path, const char *key_path, struct certificate *out_certificate,
                     struct fly_error *out_error);

/* Forgets the key. Harmless on a zeroed struct. */
void certificate_deinit(struct certificate *certificate);

/* FLY_ECONFIG: it has expired at that time, or does not hold yet. */
int certificate_check(const struct certificate *certificate, const char *path, int64_t now_s,
                      struct fly_error *out_error);

/* The one in use, where it may be replaced. Thread-safe. */
struct certificate_shelf {
    const char *chain_path, *key_path; /* borrowed */
    pthread_mutex_t lock;
    struct certificate now;
};

/* As certificate_read; to be closed only after success. */
int certificate_shelf_open(struct certificate_shelf *shelf, const char *chain_path, const char *key_path,
                           struct fly_error *out_error);
void certificate_shelf_close(struct certificate_shelf *shelf);

/* Reads the files again. As certificate_read; after a failure the old one stays. */
int certificate_shelf_renew(struct certificate_shelf *shelf, struct fly_error *out_error);

/* As certificate_check, of the one in use. */
int certificate_shelf_check(struct certificate_shelf *shelf, int64_t now_s, struct fly_error *out_error);

/* The chain and the key for a handshake, both to be released by GnuTLS (GNUTLS_CERT_RETR_DEINIT_ALL). Whether
 * there are. */
bool certificate_shelf_take(struct certificate_shelf *shelf, gnutls_pcert_st **out_chain, unsigned *out_count,
                            gnutls_privkey_t *out_key);

#endif
