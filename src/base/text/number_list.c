/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/number_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/math/order.h"
#include "base/number.h"

enum { PIECE_MAX = 31 };

/* The text that is being read, for the parser's steps. */
struct number_list {
    const char *text;
    uint32_t minimum;
    size_t most;
    size_t count;
    uint32_t *numbers; /* NULL while only counting */
};

static int refuse(const struct number_list *list, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EUSAGE, "whole numbers from %u and ranges of them, as in 1-20 or 1,3,7-9",
                     list->minimum);
}

/* Reads the number in the `length` bytes at `text`. */
static int read_number(const struct number_list *list, const char *text, size_t length, uint32_t *out_number,
                       struct fly_error *out_error)
{
    char piece[PIECE_MAX + 1] = "";
    uint64_t number;

    if (length <= PIECE_MAX)
        memcpy(piece, text, length);
    if (!number_parse_u64(piece, UINT32_MAX, &number) || number < list->minimum)
        return refuse(list, out_error);
    *out_number = (uint32_t)number;
    return 0;
}

static int add_range(struct number_list *list, uint32_t first, uint32_t last, struct fly_error *out_error)
{
    if (first > last)
        return error_set(out_error, FLY_EUSAGE, "ranges that run forwards, as %u-%u does", last, first);
    if ((uint64_t)last - first >= list->most - list->count)
        return error_set(out_error, FLY_EUSAGE, "at most %zu numbers", list->most);
    for (uint64_t number = first; number <= last; number++) {
        if (list->numbers != NULL)
            list->numbers[list->count] = (uint32_t)number;
        list->count++;
    }
    return 0;
}

/* Passes over the text once: counts, or fills list->numbers. */
static int read_ranges(struct number_list *list, struct fly_error *out_error)
{
    const char *at = list->text;

    list->count = 0;
    for (;;) {
        size_t length = strcspn(at, ",");
        const char *dash = memchr(at, '-', length);
        size_t first_length = dash != NULL ? (size_t)(dash - at) : length;
        uint32_t first = 0, last;
        int code = read_number(list, at, first_length, &first, out_error);

        last = first;
        if (code == 0 && dash != NULL)
            code = read_number(list, dash + 1, length - first_length - 1, &last, out_error);
        if (code == 0)
            code = add_range(list, first, last, out_error);
        if (code < 0 || at[length] == '\0')
            return code;
        at += length + 1;
    }
}

/* Refuses a number that is listed twice: it would count twice. */
static int check_doubled(const struct number_list *list, struct arena *arena, struct fly_error *out_error)
{
    uint32_t *sorted = arena_alloc(arena, list->count, sizeof sorted[0]);

    if (sorted == NULL)
        return error_no_memory(out_error);
    memcpy(sorted, list->numbers, list->count * sizeof sorted[0]);
    qsort(sorted, list->count, sizeof sorted[0], order_u32);
    for (size_t i = 1; i < list->count; i++) {
        if (sorted[i] == sorted[i - 1])
            return error_set(out_error, FLY_EUSAGE, "each number once, but %u stands there twice", sorted[i]);
    }
    return 0;
}

int number_list_parse(const char *text, uint32_t minimum, size_t most, struct arena *arena,
                      uint32_t **out_numbers, size_t *out_count, struct fly_error *out_error)
{
    struct number_list list = {.text = text, .minimum = minimum, .most = most};
    int code = read_ranges(&list, out_error);

    if (code < 0)
        return code;
    list.numbers = arena_alloc(arena, list.count, sizeof list.numbers[0]);
    if (list.numbers == NULL)
        return error_no_memory(out_error);
    code = read_ranges(&list, out_error);
    if (code == 0)
        code = check_doubled(&list, arena, out_error);
    if (code < 0)
        return code;
    *out_numbers = list.numbers;
    *out_count = list.count;
    return 0;
}
