/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/philox.h"

enum { ROUNDS = 10, LANES = 4 };

static const uint32_t multiplier[2] = {0xD2511F53, 0xCD9E8D57};
static const uint32_t weyl[2] = {0x9E3779B9, 0xBB67AE85};

static inline void philox_rounds(uint32_t key0, uint32_t key1, uint32_t words[4])
{
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product0 = (uint64_t)multiplier[0] * words[0];
        uint64_t product1 = (uint64_t)multiplier[1] * words[2];

        words[0] = (uint32_t)(product1 >> 32) ^ words[1] ^ key0;
        words[1] = (uint32_t)product1;
        words[2] = (uint32_t)(product0 >> 32) ^ words[3] ^ key1;
        words[3] = (uint32_t)product0;
        key0 += weyl[0];
        key1 += weyl[1];
    }
}

void philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out_words[4])
{
    for (int i = 0; i < 4; i++)
        out_words[i] = counter[i];
    philox_rounds(key[0], key[1], out_words);
}

struct philox_key philox_key(uint32_t seed, const char *job)
{
    uint32_t hash = 2166136261u;

    for (; *job != '\0'; job++)
        hash = (hash ^ (unsigned char)*job) * 16777619u;
    return (struct philox_key){seed, hash};
}

/* Counter words: draw, index (low, high), stream. */
static inline void philox_next_block(struct philox *philox, uint64_t out_pair[2])
{
    uint32_t words[4] = {philox->draw++, (uint32_t)philox->index, (uint32_t)(philox->index >> 32),
                         philox->stream};

    philox_rounds(philox->key.seed, philox->key.job, words);
    out_pair[0] = (uint64_t)words[1] << 32 | words[0];
    out_pair[1] = (uint64_t)words[3] << 32 | words[2];
}

uint64_t philox_u64(struct philox *philox)
{
    uint64_t pair[2];

    if (philox->has_spare) {
        philox->has_spare = false;
        return philox->spare;
    }
    philox_next_block(philox, pair);
    philox->spare = pair[1];
    philox->has_spare = true;
    return pair[0];
}

void philox_fill(struct philox *philox, uint64_t *out_words, size_t count)
{
    size_t filled = 0;

    if (count > 0 && philox->has_spare)
        out_words[filled++] = philox_u64(philox);
    /* Blocks are independent, so the processor computes several at once. */
    for (; filled + (size_t)2 * LANES <= count; filled += (size_t)2 * LANES) {
        for (size_t lane = 0; lane < LANES; lane++)
            philox_next_block(philox, out_words + filled + 2 * lane);
    }
    while (filled < count)
        out_words[filled++] = philox_u64(philox);
}

uint32_t philox_below(struct philox *philox, uint32_t bound)
{
    uint64_t product;

    /* Lemire, "Fast Random Integer Generation in an Interval", 2019: few draws need the remainder. */
    do {
        product = (philox_u64(philox) >> 32) * bound;
    } while ((uint32_t)product < bound && (uint32_t)product < -bound % bound);
    return (uint32_t)(product >> 32);
}

uint64_t philox_source(void *philox)
{
    return philox_u64(philox);
}
