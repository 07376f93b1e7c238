/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by the examples of FIPS 180-4, in pieces of any length. */
#include "test.h"

#include "base/sha256.h"

static void test_examples(void **state)
{
    static const struct {
        const char *piece;
        size_t times;
        const char *sum;
    } rows[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
        {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[SHA256_TEXT_MAX];
        struct sha256 sum;

        sha256_init(&sum);
        for (size_t n = 0; n < rows[i].times; n++)
            sha256_add(&sum, rows[i].piece, strlen(rows[i].piece));
        sha256_text(&sum, text);
        assert_string_equal(text, rows[i].sum);
    }
}

static void test_files(void **state)
{
    char text[SHA256_TEXT_MAX];
    struct fly_error error;

    (void)state;
    assert_int_equal(sha256_file("/dev/null", text, &error), 0);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(sha256_file("/no/such/file", text, &error), FLY_ENOTFOUND);
    assert_int_equal(sha256_file("/", text, &error), FLY_EREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_files)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
