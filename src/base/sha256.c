/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum { BLOCK = 64, ROUNDS = 64, WORDS = 8, PIECE = 1 << 15 };

/* Fractions of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t value, unsigned bits)
{
    return value >> bits | value << (32 - bits);
}

static void spread(const uint8_t block[BLOCK], uint32_t words[ROUNDS])
{
    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < ROUNDS; i++) {
        uint32_t before = words[i - 15], last = words[i - 2];

        words[i] = words[i - 16] + (turned(before, 7) ^ turned(before, 18) ^ before >> 3) + words[i - 7] +
                   (turned(last, 17) ^ turned(last, 19) ^ last >> 10);
    }
}

static void take_block(struct sha256 *sum)
{
    uint32_t words[ROUNDS], v[WORDS];

    spread(sum->block, words);
    memcpy(v, sum->state, sizeof v);
    for (size_t i = 0; i < ROUNDS; i++) {
        uint32_t one = v[7] + (turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25)) +
                       ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + words[i];
        uint32_t two = (turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22)) +
                       ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

        memmove(v + 1, v, sizeof v - sizeof v[0]);
        v[4] += one;
        v[0] = one + two;
    }
    for (size_t i = 0; i < WORDS; i++)
        sum->state[i] += v[i];
}

void sha256_init(struct sha256 *sum)
{
    /* Fractions of the square roots of the first 8 primes. */
    *sum = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                     0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sum, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    while (count-- > 0) {
        sum->block[sum->length++ % BLOCK] = *at++;
        if (sum->length % BLOCK == 0)
            take_block(sum);
    }
}

void sha256_text(struct sha256 *sum, char text[SHA256_TEXT_MAX])
{
    uint64_t bits = 8 * sum->length;
    uint8_t length[8];

    for (size_t i = 0; i < sizeof length; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(sum, "\x80", 1);
    while (sum->length % BLOCK != BLOCK - sizeof length)
        sha256_add(sum, "", 1);
    sha256_add(sum, length, sizeof length);
    for (size_t i = 0; i < WORDS; i++)
        snprintf(text + 8 * i, 9, "%08x", sum->state[i]);
}

int sha256_file(const char *path, char text[SHA256_TEXT_MAX], struct fly_error *out_error)
{
    uint8_t piece[PIECE];
    struct sha256 sum;
    ssize_t count = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    sha256_init(&sum);
    while (file >= 0 && (count = read(file, piece, sizeof piece)) > 0)
        sha256_add(&sum, piece, (size_t)count);
    if (count < 0) {
        int cause = errno;

        if (file >= 0)
            close(file);
        return error_set(out_error,
                         cause == EACCES   ? FLY_EPERM
                         : cause == ENOENT ? FLY_ENOTFOUND
                                           : FLY_EREAD,
                         "'%.300s' cannot be read: %s; correct its path", path, strerror(cause));
    }
    close(file);
    sha256_text(&sum, text);
    return 0;
}
