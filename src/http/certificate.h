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
 * A service's certificate and its key, held in memory as PEM. A running service can read them
 * again: each handshake uses what was read last, and open connections keep what they have.
 */
struct certificate {
    struct buffer chain, key;    /* ended by a 0 byte */
    int64_t begins_s, expires_s; /* of the first certificate in the chain; seconds since 1970 */
};

/*
 * Reads both files and checks that they belong together. FLY_ECONFIG says what is wrong with
 * them; FLY_EPERM: everybody may read the key. Call certificate_deinit only after success.
 */
int certificate_read(const char *chain_path, const char *key_path, struct certificate *out_certificate,
                     struct fly_error *out_error);

/* Frees the certificate and overwrites the key. Harmless on a zeroed struct. */
void certificate_deinit(struct certificate *certificate);

/* Checks the dates. FLY_ECONFIG: at that time the certificate has expired, or is not valid yet. */
int certificate_check(const struct certificate *certificate, const char *path, int64_t now_s,
                      struct fly_error *out_error);

/* The certificate in use, which may be replaced. Thread-safe. */
struct certificate_shelf {
    const char *chain_path, *key_path; /* borrowed */
    pthread_mutex_t lock;
    struct certificate now;
};

/* Errors as certificate_read. Close it only after success. */
int certificate_shelf_open(struct certificate_shelf *shelf, const char *chain_path, const char *key_path,
                           struct fly_error *out_error);
void certificate_shelf_close(struct certificate_shelf *shelf);

/* Reads the files again. Errors as certificate_read; after a failure the old certificate stays. */
int certificate_shelf_renew(struct certificate_shelf *shelf, struct fly_error *out_error);

/* Does what certificate_check does, for the certificate in use. */
int certificate_shelf_check(struct certificate_shelf *shelf, int64_t now_s, struct fly_error *out_error);

/*
 * Gives the chain and the key for a handshake. GnuTLS releases both
 * (GNUTLS_CERT_RETR_DEINIT_ALL). Returns whether there are any.
 */
bool certificate_shelf_take(struct certificate_shelf *shelf, gnutls_pcert_st **out_chain, unsigned *out_count,
                            gnutls_privkey_t *out_key);

#endif
