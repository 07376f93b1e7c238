/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_PORTABLE_H
#define FLYBALL_EXAMPLES_DEMO_PORTABLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Random numbers, exp and log with the same bits on every machine.
 *
 * The random numbers are counter-based: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As
 * Easy as 1, 2, 3", SC '11). A number is a pure function of its place, so no training depends on
 * what others drew before it:
 *
 *     struct luck stream = luck_open(luck_key(seed, "digits"), STREAM, training);
 *     double z = luck_normal(&stream);
 */
struct luck_key {
    uint32_t seed;
    uint32_t job;
};

struct luck {
    struct luck_key key;
    uint32_t stream;
    uint64_t index;
    uint32_t draw;  /* of the next block */
    uint64_t spare; /* second half of the last block */
    bool has_spare;
};

/* Makes a key; `job` enters by its 32-bit FNV-1a hash. */
struct luck_key luck_key(uint32_t seed, const char *job);

/* Opens the stream at (stream, index). */
struct luck luck_open(struct luck_key key, uint32_t stream, uint64_t index);

/* Returns the next 64 random bits. */
uint64_t luck_u64(struct luck *luck);

/* Returns a number uniform in 0 .. bound - 1, unbiased; bound >= 1. */
uint32_t luck_below(struct luck *luck, uint32_t bound);

/*
 * Returns a standard normal number, by the ziggurat method with 256 layers (Marsaglia and Tsang,
 * "The Ziggurat Method for Generating Random Variables", 2000). Thread-safe.
 */
double luck_normal(struct luck *luck);

/* e^x for -700 <= x <= 700, and the natural logarithm of x > 0, from + - * / alone. */
double same_exp(double x);
double same_log(double x);

#endif
