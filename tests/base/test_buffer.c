/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The growing buffer: what fits its maximum is kept, what does not is remembered as an error. Arrays that
 * grow keep their items, and double.
 */
#include "test.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/error.h"

static void assert_holds(const struct buffer *buffer, const char *text)
{
    assert_string_equal(buffer->data, text);
    assert_int_equal(buffer->length, strlen(text));
}

static void test_starts_empty(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 10);
    assert_holds(&buffer, "");
    assert_int_equal(buffer.error, 0);
    buffer_deinit(&buffer);
    assert_holds(&buffer, "");
}

static void test_limits(void **state)
{
    static const struct {
        size_t maximum;
        const char *first, *second, *kept;
        int error;
    } cases[] = {
        {0, "", "", "", 0},
        {0, "", "a", "", FLY_ELIMIT},
        {4, "ab", "cd", "abcd", 0},
        {4, "ab", "cde", "ab", FLY_ELIMIT},
        {4, "abcde", "a", "", FLY_ELIMIT}, /* the error stands, though "a" would fit */
        {4, "abcd", "", "abcd", 0},
        {SIZE_MAX, "ab", "cd", "abcd", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buffer buffer;

        buffer_init(&buffer, cases[i].maximum);
        buffer_puts(&buffer, cases[i].first);
        buffer_printf(&buffer, "%s", cases[i].second);
        assert_holds(&buffer, cases[i].kept);
        assert_int_equal(buffer.error, cases[i].error);
        buffer_deinit(&buffer);
    }
}

static void test_clear_forgets_the_error(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 3);
    buffer_puts(&buffer, "ab");
    buffer_puts(&buffer, "cd");
    assert_int_equal(buffer.error, FLY_ELIMIT);
    buffer_clear(&buffer);
    assert_holds(&buffer, "");
    assert_int_equal(buffer.error, 0);
    buffer_puts(&buffer, "cd");
    assert_holds(&buffer, "cd");
    buffer_deinit(&buffer);
}

static void test_grows_byte_by_byte(void **state)
{
    enum { COUNT = 5000 };
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char byte = (char)('a' + i % 26);

        buffer_append(&buffer, &byte, 1);
        assert_int_equal(buffer.length, i + 1);
        assert_int_equal(buffer.data[i + 1], '\0');
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(buffer.data[i], 'a' + i % 26);
    buffer_append(&buffer, "x", 1);
    assert_int_equal(buffer.error, FLY_ELIMIT);
    assert_int_equal(buffer.length, COUNT);
    buffer_deinit(&buffer);
}

static void test_keeps_zero_bytes(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 16);
    buffer_append(&buffer, "a\0b", 3);
    buffer_append(&buffer, NULL, 0);
    assert_int_equal(buffer.length, 3);
    assert_memory_equal(buffer.data, "a\0b", 4);
    buffer_deinit(&buffer);
}

static void test_arrays_grow(void **state)
{
    size_t capacity = 0, moves = 0;
    int *items = NULL;

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        size_t before = capacity;

        items = array_grow(items, i, &capacity, sizeof items[0]);
        assert_non_null(items);
        assert_true(capacity > i);
        moves += capacity != before;
        items[i] = (int)i;
    }
    assert_true(moves <= 10);
    items = array_grow(items, 5000, &capacity, sizeof items[0]);
    assert_non_null(items);
    assert_true(capacity > 5000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    assert_null(array_grow(items, SIZE_MAX / 64, &capacity, sizeof items[0] * 64));
    assert_true(capacity < SIZE_MAX / 64);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_empty),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_clear_forgets_the_error),
        cmocka_unit_test(test_grows_byte_by_byte),
        cmocka_unit_test(test_keeps_zero_bytes),
        cmocka_unit_test(test_arrays_grow),
    };

    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
