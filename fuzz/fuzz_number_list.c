/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of whole numbers: what is accepted has an allowed count of numbers, none below the minimum, and is
 * the same list when it is written out number by number. The first byte chooses minimum and maximum count;
 * the rest is the text.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/text/number_list.h"
#include "fuzz.h"

enum { TEXT_MAX = 4096, MEMORY_MAX = 1 << 20, WRITTEN_MAX = 1 << 20 };

static int parse(const char *text, uint32_t minimum, size_t most, struct arena *arena, uint32_t **out_numbers,
                 size_t *out_count)
{
    struct fly_error error = {.code = 0};
    int code = number_list_parse(text, minimum, most, arena, out_numbers, out_count, &error);

    if (code < 0) {
        FUZZ_CHECK(code == FLY_EUSAGE || code == FLY_ENOMEM);
        FUZZ_CHECK(error.code == code && error.text[0] != '\0');
    }
    return code;
}

/* The numbers written as "3,1,2" are the same list. */
static void check_written(const uint32_t *numbers, size_t count, uint32_t minimum, struct arena *arena)
{
    struct buffer text;
    uint32_t *again;
    size_t again_count;

    buffer_init(&text, WRITTEN_MAX);
    for (size_t i = 0; i < count; i++)
        buffer_printf(&text, "%s%u", i > 0 ? "," : "", numbers[i]);
    FUZZ_CHECK(text.error == 0);
    FUZZ_CHECK(parse(text.data, minimum, count, arena, &again, &again_count) == 0);
    FUZZ_CHECK(again_count == count && memcmp(again, numbers, count * sizeof numbers[0]) == 0);
    FUZZ_CHECK(count == 1 || parse(text.data, minimum, count - 1, arena, &again, &again_count) < 0);
    buffer_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t counts[] = {1, 5, 1000, 10000};
    uint32_t minimum = size > 0 ? data[0] % 2 : 0;
    size_t most = counts[size > 0 ? data[0] / 2 % 4 : 0];
    char text[TEXT_MAX] = "";
    struct arena arena;
    uint32_t *numbers;
    size_t count;

    if (size > 1)
        memcpy(text, data + 1, size - 1 < TEXT_MAX ? size - 1 : TEXT_MAX - 1);
    arena_init(&arena, MEMORY_MAX);
    if (parse(text, minimum, most, &arena, &numbers, &count) == 0) {
        FUZZ_CHECK(count >= 1 && count <= most);
        for (size_t i = 0; i < count; i++)
            FUZZ_CHECK(numbers[i] >= minimum);
        check_written(numbers, count, minimum, &arena);
    }
    arena_deinit(&arena);
    return 0;
}
