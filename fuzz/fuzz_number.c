/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers: what is parsed and formatted parses to the same bits again, and every double, read from the
 * input's first bytes, survives the round trip.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "fuzz.h"

enum { TEXT_MAX = 256 };

/* Tells 0 from -0, which == does not. */
static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_double(double value)
{
    char text[NUMBER_TEXT_MAX];
    double again = 0.0;

    number_format(value, text);
    FUZZ_CHECK(number_parse_double(text, &again) == (isfinite(value) != 0));
    if (isfinite(value))
        FUZZ_CHECK(bits_of(again) == bits_of(value));
}

static void check_u64(uint64_t value, uint64_t maximum)
{
    char text[NUMBER_TEXT_MAX];
    uint64_t again;

    FUZZ_CHECK(value <= maximum);
    snprintf(text, sizeof text, "%" PRIu64, value);
    FUZZ_CHECK(number_parse_u64(text, value, &again) && again == value);
    if (value > 0)
        FUZZ_CHECK(!number_parse_u64(text, value - 1, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t maxima[] = {0, 9, 4096, UINT32_MAX, UINT64_MAX};
    char text[TEXT_MAX] = "";
    double value;

    if (size >= sizeof value) {
        memcpy(&value, data, sizeof value);
        check_double(value);
    }
    if (size > 0)
        memcpy(text, data, size < TEXT_MAX ? size : TEXT_MAX - 1);
    if (number_parse_double(text, &value))
        check_double(value);
    for (size_t i = 0; i < sizeof maxima / sizeof maxima[0]; i++) {
        uint64_t whole;

        if (number_parse_u64(text, maxima[i], &whole))
            check_u64(whole, maxima[i]);
    }
    return 0;
}
