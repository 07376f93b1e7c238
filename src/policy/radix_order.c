/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts the upper half of each number's bits digit by digit, with the index in the lower half of
 * a word. Numbers whose fractions agree in 20 bits are then put in order by insertion or, if that
 * is too much work, by merging.
 */
#include "policy/radix_order.h"

#include <string.h>

enum { DIGIT_BITS = 11, VALUES = 1 << DIGIT_BITS, LOWEST_BIT = 31, TOP_BIT = 64, MOVES_PER_ITEM = 8 };

static size_t digit_of(uint64_t word, int bit)
{
    return (size_t)(word >> bit) & (VALUES - 1);
}

static uint64_t word_of(double size, size_t index)
{
    const uint64_t upper = ~UINT64_C(0) << 32;
    uint64_t bits;

    memcpy(&bits, &size, sizeof bits);
    return (bits & upper) | index;
}

/* Returns false, and moves nothing, when all have the same digit. */
static int move_by_digit(const uint64_t *words, size_t count, int bit, uint64_t *to)
{
    size_t places[VALUES] = {0}, sum = 0;

    for (size_t i = 0; i < count; i++)
        places[digit_of(words[i], bit)]++;
    if (places[digit_of(words[0], bit)] == count)
        return 0;
    for (size_t value = 0; value < VALUES; value++) {
        size_t here = places[value];

        places[value] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[digit_of(words[i], bit)]++] = words[i];
    return 1;
}

static int is_before(const double *sizes, uint32_t left, uint32_t right)
{
    if (sizes[left] != sizes[right])
        return sizes[left] < sizes[right];
    return left < right;
}

/* Returns false if it gave up half-way. */
static int insert_all(const double *sizes, uint32_t *order, size_t count)
{
    size_t moves = 0;

    for (size_t i = 1; i < count; i++) {
        uint32_t item = order[i];
        size_t at = i;

        for (; at > 0 && is_before(sizes, item, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = item;
        moves += i - at;
        if (moves > count * MOVES_PER_ITEM)
            return 0;
    }
    return 1;
}

static void merge(const double *sizes, const uint32_t *left, const uint32_t *right, const uint32_t *end,
                  uint32_t *to)
{
    const uint32_t *middle = right;

    while (left < middle && right < end)
        *to++ = is_before(sizes, *right, *left) ? *right++ : *left++;
    memcpy(to, left, (size_t)(middle - left) * sizeof *to);
    memcpy(to + (middle - left), right, (size_t)(end - right) * sizeof *to);
}

static void merge_all(const double *sizes, uint32_t *order, size_t count, uint32_t *memory)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t middle = i + width < count ? i + width : count;
            size_t end = middle + width < count ? middle + width : count;

            merge(sizes, order + i, order + middle, order + end, memory + i);
        }
        memcpy(order, memory, count * sizeof *order);
    }
}

void radix_order(const double *sizes, size_t count, uint32_t *out_order, uint64_t *memory)
{
    uint64_t *from = memory, *to = memory + count;

    for (size_t i = 0; i < count; i++)
        from[i] = word_of(sizes[i], i);
    for (int bit = LOWEST_BIT; bit < TOP_BIT && count > 1; bit += DIGIT_BITS) {
        uint64_t *between = from;

        if (!move_by_digit(from, count, bit, to))
            continue;
        from = to;
        to = between;
    }
    for (size_t i = 0; i < count; i++)
        out_order[i] = (uint32_t)from[i];
    if (!insert_all(sizes, out_order, count))
        merge_all(sizes, out_order, count, (uint32_t *)memory);
}
