/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/numpy_random.h"

#include "base/math/ziggurat.h"

enum { POOL_WORDS = 4, STATE_WORDS = 8 };

static uint32_t hash_word(uint32_t value, uint32_t *hash, uint32_t multiplier)
{
    value ^= *hash;
    *hash *= multiplier;
    value *= *hash;
    return value ^ value >> 16;
}

static uint32_t mix_words(uint32_t x, uint32_t y)
{
    uint32_t mixed = 0xCA01F9DDu * x - 0x4973F715u * y;

    return mixed ^ mixed >> 16;
}

/* SeedSequence(seed).generate_state(8) for a seed of one word. */
static void seed_sequence(uint32_t seed, uint32_t out_words[STATE_WORDS])
{
    uint32_t pool[POOL_WORDS];
    uint32_t hash = 0x43B0D7E5;

    for (int i = 0; i < POOL_WORDS; i++)
        pool[i] = hash_word(i == 0 ? seed : 0, &hash, 0x931E8875);
    for (int from = 0; from < POOL_WORDS; from++) {
        for (int to = 0; to < POOL_WORDS; to++) {
            if (from != to)
                pool[to] = mix_words(pool[to], hash_word(pool[from], &hash, 0x931E8875));
        }
    }
    hash = 0x8B51F9DD;
    for (int i = 0; i < STATE_WORDS; i++)
        out_words[i] = hash_word(pool[i % POOL_WORDS], &hash, 0x58F38DED);
}

static void pcg_step(struct numpy_random *random)
{
    const numpy_u128 multiplier = (numpy_u128)0x2360ED051FC65DA4 << 64 | 0x4385DF649FCCF645;

    random->state = random->state * multiplier + random->increment;
}

/* Makes 128 bits from four words: two little-endian 64-bit words, the upper one first. */
static numpy_u128 join_words(const uint32_t words[4])
{
    uint64_t high = (uint64_t)words[1] << 32 | words[0];
    uint64_t low = (uint64_t)words[3] << 32 | words[2];

    return (numpy_u128)high << 64 | low;
}

struct numpy_random numpy_random_seed(uint32_t seed)
{
    struct numpy_random random = {0};
    uint32_t words[STATE_WORDS];

    seed_sequence(seed, words);
    random.increment = join_words(words + 4) << 1 | 1;
    pcg_step(&random);
    random.state += join_words(words);
    pcg_step(&random);
    return random;
}

uint64_t numpy_random_u64(struct numpy_random *random)
{
    uint64_t folded;
    unsigned turn;

    pcg_step(random);
    folded = (uint64_t)(random->state >> 64) ^ (uint64_t)random->state;
    turn = (unsigned)(random->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t numpy_random_u32(struct numpy_random *random)
{
    uint64_t bits;

    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    bits = numpy_random_u64(random);
    random->spare = (uint32_t)(bits >> 32);
    random->has_spare = true;
    return (uint32_t)bits;
}

uint32_t numpy_random_up_to(struct numpy_random *random, uint32_t maximum)
{
    uint32_t bound = maximum + 1;
    uint64_t product;

    if (maximum == 0)
        return 0;
    if (maximum == UINT32_MAX)
        return numpy_random_u32(random);
    product = (uint64_t)numpy_random_u32(random) * bound;
    if ((uint32_t)product < bound) {
        uint32_t threshold = (UINT32_MAX - maximum) % bound;

        while ((uint32_t)product < threshold)
            product = (uint64_t)numpy_random_u32(random) * bound;
    }
    return (uint32_t)(product >> 32);
}

uint32_t numpy_random_choice(struct numpy_random *random, uint32_t count)
{
    return numpy_random_up_to(random, count - 1);
}

void numpy_random_skip_permutation(struct numpy_random *random, uint32_t count)
{
    /* Floyd's sample, then a shuffle from the end. */
    for (uint32_t j = 1; j < count; j++)
        numpy_random_up_to(random, j);
    for (uint32_t i = count; i-- > 1;)
        numpy_random_up_to(random, i);
}

static bool contains(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] == number)
            return true;
    }
    return false;
}

void numpy_random_permutation(struct numpy_random *random, uint32_t count, uint32_t *out_order)
{
    for (uint32_t j = 0; j < count; j++) {
        uint32_t drawn = numpy_random_up_to(random, j);

        out_order[j] = contains(out_order, j, drawn) ? j : drawn;
    }
    for (uint32_t i = count; i-- > 1;) {
        uint32_t other = numpy_random_up_to(random, i), kept = out_order[i];

        out_order[i] = out_order[other];
        out_order[other] = kept;
    }
}

static uint64_t numpy_source(void *random)
{
    return numpy_random_u64(random);
}

double numpy_random_normal(struct numpy_random *random)
{
    return ziggurat_normal(ziggurat_tables(), numpy_random_u64(random), numpy_source, random);
}

static void put_u128(struct buffer *bytes, numpy_u128 value)
{
    bytes_put_u64(bytes, (uint64_t)(value >> 64));
    bytes_put_u64(bytes, (uint64_t)value);
}

static numpy_u128 get_u128(struct bytes_reader *bytes)
{
    numpy_u128 upper = bytes_u64(bytes);

    return upper << 64 | bytes_u64(bytes);
}

void numpy_random_save(const struct numpy_random *random, struct buffer *bytes)
{
    put_u128(bytes, random->state);
    put_u128(bytes, random->increment);
    bytes_put_u64(bytes, random->spare);
    bytes_put_u64(bytes, random->has_spare);
}

bool numpy_random_load(struct numpy_random *random, struct bytes_reader *bytes)
{
    random->state = get_u128(bytes);
    random->increment = get_u128(bytes);
    random->spare = (uint32_t)bytes_up_to(bytes, UINT32_MAX);
    random->has_spare = bytes_bool(bytes);
    return !bytes->failed;
}
