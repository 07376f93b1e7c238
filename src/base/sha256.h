/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_SHA256_H
#define FLYBALL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * SHA-256 (FIPS 180-4), used as the name of a content.
 *
 *     sha256_init(&sum);
 *     sha256_add(&sum, bytes, count);      any number of times
 *     sha256_text(&sum, text);             "ba7816bf..."; the sum is used up
 */
enum { SHA256_TEXT_MAX = 65 };

struct sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
};

void sha256_init(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *bytes, size_t count);
void sha256_text(struct sha256 *sum, char text[SHA256_TEXT_MAX]);

/* Computes the sum of a whole file. FLY_ENOTFOUND, FLY_EPERM or FLY_EREAD. */
int sha256_file(const char *path, char text[SHA256_TEXT_MAX], struct fly_error *out_error);

#endif
