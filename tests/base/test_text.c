/* SPDX-License-Identifier: Apache-2.0 */
/* The ground: arena, buffer, words, numbers in text, CSV. */
#include "test.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/harmless.h"
#include "base/number.h"
#include "base/text/csv.h"
#include "base/text/csv_quote.h"
#include "base/words.h"
#include "shapes/json_words.h"

static void test_json_words(void **state)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"[0.1,250.0,1e22,-0.0,5e-324,0.30000000000000004]",
         "[0.1,250.0,1e+22,-0.0,5e-324,0.30000000000000004]"},
        {"{\"b\":{\"a\":[]},\"a\":{}}", "{\"b\":{\"a\":[]},\"a\":{}}"},
        {"[null,true,false,\"a\\\"\\u0001\",-7]", "[null,true,false,\"a\\\"\\u0001\",-7]"},
        {"0.6", "0.6"},
        {"\"x\"", "\"x\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        char *words = json_words(value, 1000);

        assert_string_equal(words, cases[i].words);
        json_decref(value);
        free(words);
    }
    assert_string_equal(number_text(0.1).text, "0.1");
    assert_null(json_words(NULL, 2));
}

static void test_harmless(void **state)
{
    static const struct {
        const char *text, *line, *lines, *json;
    } cases[] = {
        {"", "", "", ""},
        {"A100 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "A100 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
         "A100 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "A100 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\nb\tc", "a?b?c", "a\nb\tc", "a\nb\tc"},
        {"a\033[2J", "a?[2J", "a?[2J", "a\\u001b[2J"},
        {"a\x7f", "a?", "a?", "a\\u007f"},
        {"\xc2\x9b"
         "31m",
         "?31m", "?31m", "\\u009b31m"},
        {"x\xe2\x80\xaey", "x?y", "x?y", "x\\u202ey"},
        {"\xe2\x80\x8e\xe2\x80\x8f\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "?????", "?????",
         "\\u200e\\u200f\\u2066\\u2069\\u061c"},
        {"\xef\xbb\xbf"
         "a\xc2\xad",
         "?a?", "?a?", "\\ufeffa\\u00ad"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "??", "??", "\\u2028\\u2029"},
        {"\xf3\xa0\x81\x81", "?", "?", "\\udb40\\udc41"},
        {"a\xe2\x80\x8d\xe2\x80\x8c", "a\xe2\x80\x8d\xe2\x80\x8c", "a\xe2\x80\x8d\xe2\x80\x8c",
         "a\xe2\x80\x8d\xe2\x80\x8c"},
        {"\x9b\xff\xc3", "???", "???", "???"},
        {"\xc0\x9b\xe0\x82\x9b", "?????", "?????", "?????"},
        {"\xed\xa0\x80\xf4\x90\x80\x80", "???????", "???????", "???????"},
        {"a\xe2\x80", "a??", "a??", "a??"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t length = strlen(cases[i].text);
        struct buffer out;
        char text[100];

        memcpy(text, cases[i].text, length + 1);
        assert_int_equal(harmless_make(text, length, false), strlen(cases[i].line));
        assert_string_equal(text, cases[i].line);
        assert_int_equal(harmless_all(cases[i].text, length, false), strcmp(text, cases[i].text) == 0);
        buffer_init(&out, 1000);
        harmless_put(&out, cases[i].text, true);
        assert_string_equal(out.data, cases[i].lines);
        buffer_clear(&out);
        harmless_put_json(&out, cases[i].text, length);
        assert_string_equal(out.data, cases[i].json);
        buffer_deinit(&out);
    }
}

static void test_arena(void **state)
{
    struct arena arena;
    uint64_t random = 1;
    char *text;

    (void)state;
    arena_init(&arena, 1 << 20);
    for (int i = 0; i < 500; i++) {
        size_t size = 1 + test_below(&random, 1500);
        unsigned char *piece = arena_alloc(&arena, size, 1);

        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % _Alignof(max_align_t), 0);
        for (size_t b = 0; b < size; b++)
            assert_int_equal(piece[b], 0);
        memset(piece, 0xff, size);
    }
    text = arena_strdup(&arena, "kept");
    assert_string_equal(text, "kept");
    assert_null(arena_alloc(&arena, 1 << 20, 1));      /* beyond the maximum */
    assert_null(arena_alloc(&arena, SIZE_MAX / 2, 4)); /* overflow */
    assert_non_null(arena_alloc(&arena, 0, 8));
    arena_deinit(&arena);
    arena_deinit(&arena);
}

static void test_buffer(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 1000);
    assert_string_equal(buffer.data, "");
    buffer_printf(&buffer, "%d-%s", 12, "x");
    buffer_puts(&buffer, "yz");
    assert_string_equal(buffer.data, "12-xyz");
    assert_int_equal(buffer.length, 6);
    for (int i = 0; i < 100; i++)
        buffer_puts(&buffer, "0123456789");
    assert_int_equal(buffer.error, FLY_ELIMIT);
    assert_int_equal(buffer.length, 996);
    buffer_puts(&buffer, "a"); /* a failed buffer stays as it was */
    assert_int_equal(buffer.length, 996);
    buffer_clear(&buffer);
    assert_int_equal(buffer.error, 0);
    assert_string_equal(buffer.data, "");
    buffer_deinit(&buffer);
}

static void test_words(void **state)
{
    static const char *const known[] = {"default", "grid", "zeus", NULL, "librispeech"};
    static const struct {
        const char *word;
        int nearest;
    } rows[] = {{"zues", 2},    {"zeus", 2},   {"grd", 1}, {"libirspech", 4},
                {"defualt", 0}, {"xyzzy", -1}, {"", -1},   {"q", -1}};
    char longest[100];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(word_nearest(rows[i].word, known, COUNT(known)), rows[i].nearest);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(word_nearest(longest, known, COUNT(known)), -1);
    assert_int_equal(word_index("grid", known, COUNT(known)), 1);
    assert_int_equal(word_index("gri", known, COUNT(known)), -1);
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        bool valid;
        double value;
    } rows[] = {
        {"0", true, 0.0},         {"-1.5e3", true, -1500.0},
        {"1e-1", true, 0.1},      {"27.130000000000003", true, 27.130000000000003},
        {"+4", true, 4.0},        {"", false, 0},
        {" 1", false, 0},         {"1 ", false, 0},
        {"1e999", false, 0},      {"nan", false, 0},
        {"inf", false, 0},        {"0x10", false, 0},
        {"1,5", false, 0},        {"1.2.3", false, 0},
        {"e5", false, 0},         {"--1", false, 0},
        {"5e-324", true, 5e-324}, {"1_000", false, 0},
    };
    char text[NUMBER_TEXT_MAX];
    uint64_t whole = 7, random = 3;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        double value = -99.0;

        assert_int_equal(number_parse_double(rows[i].text, &value), rows[i].valid);
        check_double(value, rows[i].valid ? rows[i].value : -99.0);
    }
    assert_true(number_parse_u64("18446744073709551615", UINT64_MAX, &whole));
    assert_int_equal(whole, UINT64_MAX);
    assert_false(number_parse_u64("18446744073709551616", UINT64_MAX, &whole));
    assert_false(number_parse_u64("11", 10, &whole));
    assert_false(number_parse_u64("5", 0, &whole));
    assert_true(number_parse_u64("10", 10, &whole));
    assert_false(number_parse_u64("-1", 10, &whole));
    assert_false(number_parse_u64("", 10, &whole));
    assert_false(number_parse_u64("1.0", 10, &whole));
    assert_string_equal(number_format(0.1, text), "0.1");
    assert_string_equal(number_format(250.0, text), "250");
    assert_string_equal(number_format(NAN, text), "nan");
    assert_string_equal(number_format(-INFINITY, text), "-inf");
    for (int i = 0; i < 10000; i++) {
        double value = (test_uniform(&random) - 0.5) * pow(10.0, (int)test_below(&random, 40) - 20),
               back = 0.0;

        assert_true(number_parse_double(number_format(value, text), &back));
        check_double(back, value);
    }
}

/* A program may have set a locale with a decimal comma; ours must not care. */
static void test_numbers_in_other_locales(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    char text[NUMBER_TEXT_MAX];
    double value = 0.0;
    bool found = false;

    (void)state;
    for (size_t i = 0; i < COUNT(locales) && !found; i++)
        found = setlocale(LC_NUMERIC, locales[i]) != NULL;
    if (!found)
        print_message("# no locale with a decimal comma is installed; checked in the C locale only\n");
    assert_true(number_parse_double("1.5", &value));
    check_double(value, 1.5);
    assert_string_equal(number_format(1.5, text), "1.5");
    setlocale(LC_NUMERIC, "C");
}

static const char *const columns[] = {"b", "a"};

/* Reads everything; returns the first error or 0, with the last row's fields joined in `out`. */
static int read_csv(const char *text, size_t length, char *out, size_t size, size_t *out_rows,
                    struct fly_error *error)
{
    struct csv csv;
    int code = csv_open_text(&csv, "t.csv", text, length, columns, 2, error);

    *out_rows = 0;
    out[0] = '\0';
    if (code < 0)
        return code;
    while ((code = csv_next(&csv, error)) > 0) {
        snprintf(out, size, "%s|%s", csv_field(&csv, 0), csv_field(&csv, 1));
        (*out_rows)++;
    }
    csv_close(&csv);
    return code;
}

static void test_csv(void **state)
{
    static const struct {
        const char *text;
        size_t rows;
        const char *last; /* b|a of the last row, or part of the message */
        int code;
    } rows[] = {
        {"a,b\n1,2\n", 1, "2|1", 0},
        {"x,b,y,a\n1,2,3,4\n5,6,7,8", 2, "6|8", 0},
        {"\xef\xbb\xbf"
         "a,b\r\n1,2\r\n\r\n\n3,4\r\n",
         2, "4|3", 0},
        {"a,b\n\"1,\"\"x\"\"\n\",2\n", 1, "2|1,\"x\"\n", 0},
        {"a,b\n,\n", 1, "|", 0},
        {"a,b\n\"\",2\n", 1, "2|", 0},
        {"a,b\n", 0, "", 0},
        {"", 0, "t.csv:1: the file is empty", FLY_EDATA},
        {"a\n1\n", 0, "t.csv:1: column 'b' is missing", FLY_EDATA},
        {"a,bb\n1,2\n", 0, "is it 'bb'", FLY_EDATA},
        {"a,b,a\n1,2,3\n", 0, "t.csv:1: column 'a' stands there twice", FLY_EDATA},
        {"a,b\n1,2\n3\n", 1, "t.csv:3: expected 2 fields as in the header, found 1", FLY_EDATA},
        {"a,b\n1,2,3\n", 0, "t.csv:2: expected 2 fields as in the header, found 3", FLY_EDATA},
        {"a,b\n\"1,2\n", 0, "t.csv:2: a quoted field never ends", FLY_EDATA},
        {"a,b\n\"1\"x,2\n", 0, "t.csv:2: a field goes on", FLY_EDATA},
        {"a,b\n\"1\n2\",3\n4\n", 1, "t.csv:4: expected 2 fields", FLY_EDATA},
    };
    struct fly_error error;
    char last[256];
    size_t count;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int code = read_csv(rows[i].text, strlen(rows[i].text), last, sizeof last, &count, &error);

        if (code != rows[i].code)
            fail_msg("row %zu: code %d, expected %d", i, code, rows[i].code);
        assert_int_equal(count, rows[i].rows);
        if (code == 0)
            assert_string_equal(last, rows[i].last);
        else
            check_contains(error.text, rows[i].last);
    }
    assert_int_equal(read_csv("a,b\n1,\0002\n", 9, last, sizeof last, &count, &error), FLY_EDATA);
    check_contains(error.text, "NUL");
}

static void test_csv_values(void **state)
{
    struct csv csv;
    struct fly_error error;
    double value = 0.0;

    (void)state;
    assert_int_equal(csv_open_text(&csv, "t.csv", "a,b\n1.5,abc\n", 12, columns, 2, &error), 0);
    assert_int_equal(csv_next(&csv, &error), 1);
    assert_int_equal(csv_number(&csv, 1, 0.0, 10.0, "a number above 0", &value, &error), 0);
    check_double(value, 1.5);
    assert_int_equal(csv_number(&csv, 1, 1.5, 10.0, "a number above 1.5", &value, &error), FLY_EDATA);
    assert_int_equal(csv_number(&csv, 0, 0.0, 10.0, "a number above 0", &value, &error), FLY_EDATA);
    assert_string_equal(error.text,
                        "t.csv:2: column 'b': expected a number above 0, found 'abc'; correct the value or "
                        "leave the line out");
    csv_close(&csv);
    assert_int_equal(csv_open(&csv, "/nonexistent/t.csv", columns, 2, &error), FLY_ENOTFOUND);
    check_contains(error.text, "/nonexistent/t.csv");
    assert_int_equal(csv_open(&csv, "/", columns, 2, &error), FLY_EREAD);
}

/* A file of many windows, read through and from the middle. */
static void test_csv_windows(void **state)
{
    enum { ROWS = 40000 };
    struct buffer text;
    struct csv csv;
    uint64_t offset = 0;
    size_t line = 0;

    (void)state;
    buffer_init(&text, 16 << 20);
    buffer_puts(&text, "a,b\n");
    for (int i = 0; i < ROWS; i++)
        buffer_printf(&text, i % 3 ? "%d,x%d\n" : "\"%d\",\"x\"\"\n%d\"\r\n", i, i);
    assert_int_equal(csv_open_text(&csv, "t.csv", text.data, text.length, columns, 2, NULL), 0);
    for (int round = 0; round < 2; round++) {
        for (int i = round == 0 ? 0 : ROWS / 2; i < ROWS; i++) {
            char a[32], b[32];

            if (round == 0 && i == ROWS / 2) {
                offset = csv.next_offset;
                line = csv.next_line;
            }
            assert_int_equal(csv_next(&csv, NULL), 1);
            snprintf(a, sizeof a, "%d", i);
            snprintf(b, sizeof b, i % 3 ? "x%d" : "x\"\n%d", i);
            assert_string_equal(csv_field(&csv, 1), a);
            assert_string_equal(csv_field(&csv, 0), b);
        }
        assert_int_equal(csv_next(&csv, NULL), 0);
        assert_int_equal(csv_seek(&csv, offset, line, NULL), 0);
    }
    assert_int_equal(csv_next(&csv, NULL), 1);
    assert_int_equal(csv.line, line);
    csv_close(&csv);
    buffer_deinit(&text);
}

static void test_csv_quote(void **state)
{
    static const char *const rows[][2] = {
        {"plain", "plain"}, {"a,b", "\"a,b\""}, {"a\"b", "\"a\"\"b\""}, {"a\nb", "\"a\nb\""}, {"", ""}};
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 100);
    for (size_t i = 0; i < COUNT(rows); i++) {
        buffer_clear(&buffer);
        csv_quote(&buffer, rows[i][0]);
        assert_string_equal(buffer.data, rows[i][1]);
    }
    buffer_deinit(&buffer);
}

static void test_single_bytes_are_replaced(void **state)
{
    char controls[] = "a\tb\x1b\x7f\xc3\xa9 \n", ascii[] = "a\tb\x1b\x7f\xc3\xa9 ~\n";

    (void)state;
    harmless_hide_controls(controls);
    assert_string_equal(controls, "a?b??\xc3\xa9 ?");
    harmless_make_ascii(ascii);
    assert_string_equal(ascii, "a?b???? ~?");
}

/* Wherever in a text one bad byte stands, it is found, and no other byte is taken for one. */
static void test_harmless_at_each_place(void **state)
{
    static const char bad[] = {'\x00', '\x1f', '\x7f', '\x80', '\xff'}, good[] = {' ', '!', '~', '"', 'a'};
    enum { LENGTH = 27 };

    (void)state;
    for (size_t at = 0; at < LENGTH; at++) {
        for (size_t i = 0; i < COUNT(bad); i++) {
            char text[LENGTH];

            memset(text, good[(at + i) % COUNT(good)], sizeof text);
            assert_true(harmless_all(text, sizeof text, false));
            text[at] = bad[i];
            assert_false(harmless_all(text, sizeof text, false));
            text[at] = '\n';
            assert_true(harmless_all(text, sizeof text, true));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_words),
        cmocka_unit_test(test_harmless),
        cmocka_unit_test(test_harmless_at_each_place),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_in_other_locales),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_csv_values),
        cmocka_unit_test(test_csv_windows),
        cmocka_unit_test(test_csv_quote),
        cmocka_unit_test(test_single_bytes_are_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
