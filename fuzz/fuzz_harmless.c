/* SPDX-License-Identifier: Apache-2.0 */
/* Text from others as it is shown: nothing in it is a terminal command, and harmless text stays unchanged. */
#include <stdlib.h>
#include <string.h>

#include "base/harmless.h"
#include "fuzz.h"

enum { TEXT_MAX = 2000, GROWTH = 6 };

static void check_text(const char *text, size_t length, bool lines)
{
    static char made[TEXT_MAX + 1];
    struct buffer out;
    bool all = harmless_all(text, length, lines);
    size_t left;

    memcpy(made, text, length + 1);
    left = harmless_make(made, length, lines);
    FUZZ_CHECK(left <= length && harmless_all(made, left, lines));
    FUZZ_CHECK(all == (left == length && memcmp(made, text, length) == 0) ||
               memchr(text, '?', length) != NULL);
    buffer_init(&out, TEXT_MAX);
    if (strlen(text) == length) {
        harmless_put(&out, text, lines);
        FUZZ_CHECK(out.length == left && memcmp(out.data, made, left) == 0);
    }
    buffer_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 1];
    struct buffer json;

    if (size > TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_text(text, size, false);
    check_text(text, size, true);
    buffer_init(&json, (TEXT_MAX + 1) * GROWTH);
    harmless_put_json(&json, text, size);
    FUZZ_CHECK(json.error == 0);
    for (size_t i = 0; i < json.length; i++) {
        if (json.data[i] == '\r')
            json.data[i] = ' ';
    }
    FUZZ_CHECK(harmless_all(json.data, json.length, true));
    buffer_deinit(&json);
    return 0;
}
