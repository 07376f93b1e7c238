/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_PHILOX_H
#define FLYBALL_BASE_MATH_PHILOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Counter-based random streams: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy
 * as 1, 2, 3", SC '11).
 *
 * A number is a pure function of its place: key (seed, hash of the job's name) and counter
 * (stream, index, draw). Nothing has to be remembered between two decisions, and asking twice
 * gives the same answer:
 *
 *     struct philox stream = philox_open(philox_key(seed, "nightly"), POLICY_STREAM, trial, 0);
 *     double z = ziggurat_normal(ziggurat_tables(), philox_u64(&stream), philox_source, &stream);
 */
struct philox_key {
    uint32_t seed;
    uint32_t job;
};

struct philox {
    struct philox_key key;
    uint32_t stream;
    uint64_t index;
    uint32_t draw;  /* of the next block */
    uint64_t spare; /* second half of the last block */
    bool has_spare;
};

/* Computes one block: four words for one key and one counter. */
void philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out_words[4]);

/* Makes a key; `job` enters by its 32-bit FNV-1a hash. */
struct philox_key philox_key(uint32_t seed, const char *job);

/* Opens the stream at (stream, index), from block `draw` on. */
static inline struct philox philox_open(struct philox_key key, uint32_t stream, uint64_t index, uint32_t draw)
{
    return (struct philox){
        .key = key, .stream = stream, .index = index, .draw = draw, .spare = 0, .has_spare = false};
}

/* Returns the next 64 random bits; one block gives two such numbers. */
uint64_t philox_u64(struct philox *philox);

/* `count` times philox_u64, faster. */
void philox_fill(struct philox *philox, uint64_t *out_words, size_t count);

/* Returns a number uniform in 0 .. bound - 1, unbiased; bound >= 1. */
uint32_t philox_below(struct philox *philox, uint32_t bound);

/* philox_u64 as a ziggurat_source; `philox` must be a struct philox. */
uint64_t philox_source(void *philox);

#endif
