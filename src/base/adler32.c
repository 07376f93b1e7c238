/* SPDX-License-Identifier: Apache-2.0 */
#include "base/adler32.h"

#include <string.h>

enum { MODULUS = 65521 };

uint32_t adler32_of(const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    uint32_t sum = 1, sum_of_sums = 0;

    for (size_t i = 0; i < count; i++) {
        sum = (sum + byte[i]) % MODULUS;
        sum_of_sums = (sum_of_sums + sum) % MODULUS;
    }
    return sum_of_sums << 16 | sum;
}

uint32_t adler32(const char *text)
{
    return adler32_of(text, strlen(text));
}
