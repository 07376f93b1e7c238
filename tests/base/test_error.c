/* SPDX-License-Identifier: Apache-2.0 */
/* The error table as programs and services see it, and the filling of struct fly_error. */
#include "test.h"

#include <limits.h>

#include "base/error.h"

/* Written out once more: scripts rely on these numbers, so a change must be meant. */
static const struct {
    int code;
    int exit_status;
    int http_status;
    const char *name;
} documented[] = {
    {0, 0, 200, "FLY_OK"},
    {-1, 64, 400, "FLY_EUSAGE"},
    {-2, 65, 422, "FLY_EDATA"},
    {-3, 66, 404, "FLY_ENOTFOUND"},
    {-4, 69, 501, "FLY_EUNSUPPORTED"},
    {-5, 69, 409, "FLY_EEXHAUSTED"},
    {-6, 70, 500, "FLY_EINTERNAL"},
    {-7, 70, 409, "FLY_ESTATE"},
    {-8, 71, 503, "FLY_ENOMEM"},
    {-9, 65, 413, "FLY_ELIMIT"},
    {-10, 74, 500, "FLY_EREAD"},
    {-11, 74, 507, "FLY_EWRITE"},
    {-12, 77, 403, "FLY_EPERM"},
    {-13, 78, 500, "FLY_ECONFIG"},
    {-14, 69, 503, "FLY_EBUSY"},
    {-15, 69, 503, "FLY_EUNREACHABLE"},
    {-16, 69, 503, "FLY_EUNSURE"},
    {-17, 65, 409, "FLY_ECONFLICT"},
};
enum { DOCUMENTED_COUNT = COUNT(documented) };

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < DOCUMENTED_COUNT; i++) {
        int code = documented[i].code;

        assert_string_equal(fly_error_name(code), documented[i].name);
        assert_int_equal(fly_error_exit_status(code), documented[i].exit_status);
        assert_int_equal(fly_error_http_status(code), documented[i].http_status);
    }
}

static void test_table_is_complete(void **state)
{
    const int codes[] = {
#define CODE(name, code, exit_status, http_status, sentence) name,
        FLY_ERROR_MAP(CODE)
#undef CODE
    };

    (void)state;
    assert_int_equal(COUNT(codes), DOCUMENTED_COUNT - 1);
    for (size_t i = 1; i < DOCUMENTED_COUNT; i++)
        assert_int_equal(codes[i - 1], documented[i].code);
}

static void test_sentences_differ(void **state)
{
    (void)state;
    for (int a = 0; a < DOCUMENTED_COUNT; a++) {
        assert_true(strlen(fly_error_sentence(-a)) > 0);
        for (int b = 0; b < a; b++)
            assert_string_not_equal(fly_error_sentence(-a), fly_error_sentence(-b));
    }
}

static void test_unknown_codes(void **state)
{
    const int unknown[] = {1, -DOCUMENTED_COUNT, -1000, INT_MAX, INT_MIN};

    (void)state;
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_string_equal(fly_error_name(unknown[i]), "FLY_EINTERNAL");
        assert_string_equal(fly_error_sentence(unknown[i]), fly_error_sentence(FLY_EINTERNAL));
        assert_int_equal(fly_error_exit_status(unknown[i]), 70);
        assert_int_equal(fly_error_http_status(unknown[i]), 500);
    }
}

static void test_set(void **state)
{
    struct fly_error error;

    (void)state;
    assert_int_equal(error_set(&error, FLY_EDATA, "%s:%d: %s", "trace.csv", 7, "no number"), FLY_EDATA);
    assert_int_equal(error.code, FLY_EDATA);
    assert_string_equal(error.text, "trace.csv:7: no number");
    assert_int_equal(error_no_memory(&error), FLY_ENOMEM);
    assert_int_equal(error.code, FLY_ENOMEM);
    assert_int_equal(error_set(NULL, FLY_EREAD, "nobody asks"), FLY_EREAD);
}

static void test_set_cuts(void **state)
{
    char text[FLY_ERROR_TEXT_MAX + 2];
    struct {
        struct fly_error error;
        char behind[8];
    } guarded;

    (void)state;
    for (size_t length = FLY_ERROR_TEXT_MAX - 2; length < sizeof text; length++) {
        size_t kept = length < FLY_ERROR_TEXT_MAX ? length : FLY_ERROR_TEXT_MAX - 1;

        memset(text, 'x', length);
        text[length] = '\0';
        memset(&guarded, '#', sizeof guarded);
        assert_int_equal(error_set(&guarded.error, FLY_ELIMIT, "%s", text), FLY_ELIMIT);
        assert_int_equal(strlen(guarded.error.text), kept);
        assert_memory_equal(guarded.error.text, text, kept);
        assert_memory_equal(guarded.behind, "########", sizeof guarded.behind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_is_complete),
        cmocka_unit_test(test_sentences_differ),
        cmocka_unit_test(test_unknown_codes),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_cuts),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
