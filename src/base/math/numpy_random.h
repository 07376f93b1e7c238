/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_NUMPY_RANDOM_H
#define FLYBALL_BASE_MATH_NUMPY_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * numpy's default_rng, bit for bit, as far as the published research code uses it: SeedSequence
 * (O'Neill's seed_seq_fe, pool of four words), PCG64 (XSL-RR 128/64, O'Neill 2014), bounded
 * integers, choice without replacement, normals. It exists so that published runs can be repeated
 * decision by decision; new code uses philox.h.
 *
 * A plain value: copy it to keep a position in its sequence.
 */
__extension__ typedef unsigned __int128 numpy_u128;

struct numpy_random {
    numpy_u128 state;
    numpy_u128 increment;
    uint32_t spare; /* upper half of the last 64 bits that served a 32-bit draw */
    bool has_spare;
};

/* default_rng(seed). */
struct numpy_random numpy_random_seed(uint32_t seed);

uint64_t numpy_random_u64(struct numpy_random *random);

/* Uniform in 0 .. maximum; a maximum of 0 draws nothing. */
uint32_t numpy_random_up_to(struct numpy_random *random, uint32_t maximum);

/* choice(count, size=1, replace=False): one index below count; 1 <= count <= 10000. */
uint32_t numpy_random_choice(struct numpy_random *random, uint32_t count);

/* Uses up the draws of choice(count, size=count, replace=False) and drops its result. */
void numpy_random_skip_permutation(struct numpy_random *random, uint32_t count);

/* Gives the result of choice(count, size=count, replace=False). */
void numpy_random_permutation(struct numpy_random *random, uint32_t count, uint32_t *out_order);

/* Write the generator as bytes, and read it back; false for impossible bytes. */
void numpy_random_save(const struct numpy_random *random, struct buffer *bytes);
bool numpy_random_load(struct numpy_random *random, struct bytes_reader *bytes);

/* standard_normal(). */
double numpy_random_normal(struct numpy_random *random);

#endif
