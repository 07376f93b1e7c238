/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects, each way of being wrong; and plain values as bytes. */
#include "test.h"

#include "base/bytes.h"
#include "shapes/members.h"

static const char *const words[] = {"go_on", "stop"};

/* Reads everything there is to read. */
static void read_all(struct members *members)
{
    (void)members_u64(members, "count", 1, 100);
    (void)members_number(members, "number");
    (void)members_number_or_null(members, "maybe", NAN);
    (void)members_bool(members, "flag");
    (void)members_text(members, "text", 5);
    (void)members_word(members, "word", words, COUNT(words));
    (void)members_array(members, "list", 2);
    (void)members_inside(members, "inside");
    (void)members_time_us(members, "at_us");
}

#define GOOD                                                                                          \
    "\"count\": 7, \"number\": 1.5, \"maybe\": null, \"flag\": true, \"text\": \"abcde\", \"word\": " \
    "\"stop\", "                                                                                      \
    "\"list\": [1, 2], \"inside\": {}, \"at_us\": 0"

static void test_members(void **state)
{
    static const struct {
        const char *json;
        const char *wrong; /* NULL: nothing */
    } rows[] = {
        {"{" GOOD "}", NULL},
        {"[]", ""},
        {"{}", "count"},
        {"{\"count\": 0}", "count"},
        {"{\"count\": 101}", "count"},
        {"{\"count\": -1}", "count"},
        {"{\"count\": 7.0}", "count"},
        {"{\"count\": \"7\"}", "count"},
        {"{\"count\": 7, \"number\": null}", "number"},
        {"{\"count\": 7, \"number\": \"1\"}", "number"},
        {"{\"count\": 7, \"number\": 1}", "maybe"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": 1}", "flag"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": false, \"text\": \"abcdef\"}", "text"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": false, \"text\": \"a\\u0000b\"}", "text"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": false, \"text\": \"\", \"word\": \"go\"}",
         "word"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": false, \"text\": \"\", \"word\": \"go_on\", "
         "\"list\": [1, 2, 3]}",
         "list"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": false, \"text\": \"\", \"word\": \"go_on\", "
         "\"list\": [], \"inside\": []}",
         "inside"},
        {"{\"count\": 7, \"number\": 1, \"maybe\": 2, \"flag\": false, \"text\": \"\", \"word\": \"go_on\", "
         "\"list\": [], \"inside\": {}, \"at_us\": 1.5}",
         "at_us"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *json = json_loads(rows[i].json, JSON_ALLOW_NUL, NULL);
        struct members members;

        assert_non_null(json);
        members = members_of(json);
        read_all(&members);
        if (rows[i].wrong == NULL) {
            assert_null(members.wrong);
        } else {
            assert_non_null(members.wrong);
            assert_string_equal(members.wrong, rows[i].wrong);
            assert_true(members.expected[0] != '\0');
        }
        json_decref(json);
    }
}

static void test_values_and_unknown(void **state)
{
    static const char *const all[] = {"count", "number", "maybe",  "flag",  "text",
                                      "word",  "list",   "inside", "at_us", NULL};
    static const char *const some[] = {"count", "number", "maybe", "flag", "text",
                                       "list",  "inside", "at_us", NULL};
    json_t *json = json_loads("{" GOOD "}", 0, NULL);
    struct members members = members_of(json);

    (void)state;
    assert_int_equal(members_u64(&members, "count", 1, 100), 7);
    check_double(members_number(&members, "number"), 1.5);
    assert_true(isinf(members_number_or_null(&members, "maybe", INFINITY)));
    assert_true(members_bool(&members, "flag"));
    assert_string_equal(members_text(&members, "text", 5), "abcde");
    assert_int_equal(members_word(&members, "word", words, COUNT(words)), 1);
    assert_true(members_has(&members, "list"));
    assert_false(members_has(&members, "maybe"));
    assert_false(members_has(&members, "nothing"));
    assert_null(members_unknown(&members, all));
    assert_string_equal(members_unknown(&members, some), "word");
    json_decref(json);
}

static void test_bytes(void **state)
{
    struct bytes_reader reader;
    struct buffer bytes;
    char text[6];

    (void)state;
    buffer_init(&bytes, 1000);
    bytes_put_u64(&bytes, UINT64_MAX);
    bytes_put_double(&bytes, -0.0);
    bytes_put_double(&bytes, NAN);
    bytes_put_text(&bytes, "hello");
    bytes_put_u64(&bytes, 1);
    reader = bytes_reader(bytes.data, bytes.length);
    assert_true(bytes_u64(&reader) == UINT64_MAX);
    assert_true(signbit(bytes_double(&reader)));
    assert_true(isnan(bytes_double(&reader)));
    bytes_text(&reader, text, sizeof text);
    assert_string_equal(text, "hello");
    assert_true(bytes_bool(&reader));
    assert_true(bytes_whole(&reader));
    assert_int_equal(bytes_u64(&reader), 0); /* beyond the end: zeros, and failed from then on */
    assert_true(reader.failed);
    /* Cut anywhere, it fails, and nothing is read that is not there. */
    for (size_t length = 0; length < bytes.length; length++) {
        reader = bytes_reader(bytes.data, length);
        (void)bytes_u64(&reader);
        (void)bytes_double(&reader);
        (void)bytes_double(&reader);
        bytes_text(&reader, text, sizeof text);
        (void)bytes_bool(&reader);
        assert_false(bytes_whole(&reader));
    }
    /* A text that does not fit, a number above its maximum, and what is no truth. */
    reader = bytes_reader(bytes.data, bytes.length);
    assert_int_equal(bytes_up_to(&reader, 7), 0);
    assert_true(reader.failed);
    reader = bytes_reader(bytes.data + 24, bytes.length - 24);
    bytes_text(&reader, text, 5);
    assert_true(reader.failed);
    assert_string_equal(text, "");
    reader = bytes_reader(bytes.data, bytes.length);
    assert_false(bytes_bool(&reader));
    assert_true(reader.failed);
    buffer_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_values_and_unknown),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
