/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_ZIGGURAT_H
#define FLYBALL_BASE_MATH_ZIGGURAT_H

#include <stdint.h>

/*
 * Makes standard normal numbers from 64 random bits by the ziggurat method with 256 layers
 * (Marsaglia and Tsang, "The Ziggurat Method for Generating Random Variables", 2000), bit for bit
 * in the order in which numpy uses its bits.
 *
 * Layer i is the strip under the density between the heights f(x[i]) and f(x[i - 1]); layer 0 is
 * the base with the tail beyond x[255].
 */
struct ziggurat {
    uint64_t inside[256]; /* a 52-bit position below this lies under the density */
    double width[256];    /* of one step of the position */
    double height[256];   /* density at x[i], 1 at the centre */
};

/* Returns the tables, computed at first use. Thread-safe; static storage. */
const struct ziggurat *ziggurat_tables(void);

typedef uint64_t ziggurat_source(void *generator);

/* Handles the rare cases of ziggurat_normal: wedges and tail. */
double ziggurat_edge(const struct ziggurat *tables, uint64_t bits, ziggurat_source *source, void *generator);

/*
 * Returns a standard normal number from `bits`, the generator's next 64 bits; about one call in
 * eighty asks `source` for more.
 */
static inline double ziggurat_normal(const struct ziggurat *tables, uint64_t bits, ziggurat_source *source,
                                     void *generator)
{
    unsigned layer = bits & 0xff;
    uint64_t position = bits >> 9 & 0xfffffffffffff;
    double x = (double)(int64_t)position * tables->width[layer];

    if (__builtin_expect(position < tables->inside[layer], 1))
        return bits & 0x100 ? -x : x;
    return ziggurat_edge(tables, bits, source, generator);
}

#endif
