/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_CERTIFICATE_H
#define FLYBALL_SERVE_CERTIFICATE_H

#include <flyball/error.h>

#include "base/buffer.h"

/* A certificate with those that vouch for it, and its key, as PEM texts. All zero: none. */
struct certificate {
    struct buffer chain, key;
};

/*
 * Reads both and looks whether they belong together. FLY_ECONFIG says what is wrong
 * with them, FLY_EPERM that everybody may read the key. Needs certificate_deinit only
 * after success.
 */
int certificate_read(const char *chain_path, const char *key_path, struct certificate *out_certificate,
                     struct fly_error *out_error);

/* Forgets the key. Harmless on a zeroed struct. */
void certificate_deinit(struct certificate *certificate);

#endif
