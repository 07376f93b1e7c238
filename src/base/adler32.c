/* SPDX-License-Identifier: Apache-2.0 */
#include "base/adler32.h"

enum { MODULUS = 65521 };

uint32_t adler32(const char *text)
{
    uint32_t sum = 1, sum_of_sums = 0;

    for (; *text != '\0'; text++) {
        sum = (sum + (unsigned char)*text) % MODULUS;
        sum_of_sums = (sum_of_sums + sum) % MODULUS;
    }
    return sum_of_sums << 16 | sum;
}
