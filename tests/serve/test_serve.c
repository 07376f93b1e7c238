/* SPDX-License-Identifier: Apache-2.0 */
/* What the service reads as text: addresses to listen at, a request's address, tokens. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include <flyball/error.h>

#include "http/head.h"
#include "http/listen_address.h"
#include "http/target.h"
#include "http/tokens.h"

static void test_listen_addresses(void **state)
{
    static const struct {
        const char *text, *shown; /* NULL: refused */
        bool here;
    } cases[] = {
        {"127.0.0.1:7470", "127.0.0.1:7470", true},
        {"127.8.9.10:0", "127.8.9.10:0", true},
        {"localhost:80", "127.0.0.1:80", true},
        {"0.0.0.0:65535", "0.0.0.0:65535", false},
        {"10.0.0.1:7470", "10.0.0.1:7470", false},
        {"[::1]:7470", "[::1]:7470", true},
        {"[::]:7470", "[::]:7470", false},
        {"[fe80::1]:1", "[fe80::1]:1", false},
        {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", false},
        {"unix:/run/x.sock", "unix:/run/x.sock", true},
        {"unix:x", "unix:x", true},
        {"unix:", NULL, false},
        {"", NULL, false},
        {":7470", NULL, false},
        {"7470", NULL, false},
        {"127.0.0.1", NULL, false},
        {"127.0.0.1:", NULL, false},
        {"127.0.0.1:65536", NULL, false},
        {"127.0.0.1:-1", NULL, false},
        {"127.0.0.1: 80", NULL, false},
        {"127.0.0:80", NULL, false},
        {"127.1:80", NULL, false},
        {"::1:80", NULL, false},
        {"[::1]", NULL, false},
        {"[::1]80", NULL, false},
        {"[127.0.0.1]:80", NULL, false},
        {"[]:80", NULL, false},
        {"example.org:80", NULL, false},
        {"http://127.0.0.1:80", "127.0.0.1:80", true},
        {"https://[::1]:80/", "[::1]:80", true},
        {"http://127.0.0.1:80/x", NULL, false},
        {"http://example.org:80", NULL, false},
        {"unix:///run/x.sock", "unix:/run/x.sock", true},
        {"/run/x.sock", "unix:/run/x.sock", true},
        {"x.sock", NULL, false},
        {"*:80", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct listen_address address;
        struct fly_error error = {0};
        char shown[LISTEN_TEXT_MAX];
        int code = listen_address_parse(cases[i].text, &address, &error);

        if (code != (cases[i].shown != NULL ? 0 : FLY_EUSAGE))
            fail_msg("'%s': %d, %s", cases[i].text, code, error.text);
        if (code < 0)
            continue;
        assert_string_equal(listen_address_show(&address, shown), cases[i].shown);
        if (address.here != cases[i].here)
            fail_msg("'%s' is taken for %s", cases[i].text, address.here ? "this machine's" : "another's");
    }
}

/* A head as the library leaves it: '|' stands for the byte that replaced what parted two pieces. */
static const char *check_head(const char *text, size_t extra)
{
    static char memory[200];
    const char *target, *version, *at;
    size_t length = strlen(text), end;
    struct head_check check;

    assert_true(length < sizeof memory);
    for (size_t i = 0; i <= length; i++)
        memory[i] = (char)(text[i] == '|' ? '\0' : text[i]);
    target = memory + strlen(memory) + 1;
    version = target + strlen(target) + 1;
    head_check_begin(&check, memory, target, strlen(target), version, true);
    for (at = version + strlen(version); at < memory + length && *at == '\0';)
        at++;
    while (at < memory + length) {
        const char *name = at, *value = name + strlen(name) + 1;

        value += strspn(value, " ");
        end = strlen(value);
        head_check_line(&check, name, strlen(name), value, end);
        for (at = value + end; at < memory + length && *at == '\0';)
            at++;
    }
    return head_check_end(&check, length + extra);
}

static void test_heads(void **state)
{
    static const struct {
        const char *head, *fault; /* NULL: none */
    } cases[] = {
        {"GET|/|HTTP/1.1||Host| a||||", NULL},
        {"GET|/|HTTP/1.0||||", NULL},
        {"GET|/|HTTP/1.1||Host|a||X-Y|   b c||||", NULL},
        {"GET|/|HTTP/1.1|Host| a||||", "does not end with CR LF"},
        {"GET|/|HTTP/1.1||Host| a|||", "does not end with CR LF"},
        {"GET|/|HTTP/1.1||Host| a||", "does not end with CR LF"},
        {"GET|/|HTTP/1.1||Host| a|X| b||||", "does not end with CR LF"},
        {"GET|/|HTTP/1.1||Host| a|||||", "does not end with CR LF"},
        {"GET|/|HTTP/1.1||||", "no header Host"},
        {"GET|/|HTTP/1.1||Host| a||Host| a||||", "two headers Host"},
        {"GET|/|HTTP/1.0||Host| a||host| a||||", "two headers Host"},
        {"GET|/|HTTP/1.1||Host| a b||||", "names no host"},
        {"GET|/|HTTP/1.1||Host| a||X | b||||", "a blank before its colon"},
        {"GET|/|HTTP/1.1||Host| a||X| \033||||", "a control character"},
        {"GET|/ x|HTTP/1.1||Host| a||||", "address has a blank"},
        {"G T|/|HTTP/1.1||Host| a||||", "method is no word"},
        {"GET|/|HTTP/1.1||Host| a||Content-Length| 1||content-length| 1||||", "two headers Content-Length"},
        {"GET|/|HTTP/1.1||Host| a||Authorization| 1||Authorization| 2||||", "two headers Authorization"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *fault = check_head(cases[i].head, 0);

        if ((fault == NULL) != (cases[i].fault == NULL))
            fail_msg("'%s': %s", cases[i].head, fault != NULL ? fault : "none");
        if (fault != NULL)
            check_contains(fault, cases[i].fault);
    }
    assert_non_null(check_head(cases[0].head, 1));
}

static void test_long_socket_paths(void **state)
{
    struct listen_address address;
    struct fly_error error;
    char text[200] = "unix:/";

    (void)state;
    memset(text + 6, 'x', 106);
    assert_int_equal(listen_address_parse(text, &address, &error), 0);
    text[6 + 106] = 'x';
    assert_int_equal(listen_address_parse(text, &address, &error), FLY_ELIMIT);
    check_contains(error.text, "107 bytes");
}

static void test_hosts(void **state)
{
    static const struct {
        const char *host;
        bool here;
    } cases[] = {
        {"localhost", true},
        {"localhost:8080", true},
        {"127.0.0.1", true},
        {"127.0.0.1:1", true},
        {"[::1]", true},
        {"[::1]:80", true},
        {"evil.example", false},
        {"localhost.evil.example", false},
        {"127.0.0.1.evil.example", false},
        {"10.0.0.1", false},
        {"", false},
        {":80", false},
        {"[::2]:80", false},
        {"localhost:x", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (listen_host_is_here(cases[i].host) != cases[i].here)
            fail_msg("'%s'", cases[i].host);
    }
}

static void test_targets(void **state)
{
    static const struct {
        const char *target, *path, *query; /* "name=value;..."; path NULL: refused */
    } cases[] = {
        {"/", "/", ""},
        {"/v1/jobs/digits", "/v1/jobs/digits", ""},
        {"/v1/jobs/a%20b?x=1", "/v1/jobs/a%20b", "x=1;"},
        {"/?a=b&c=d", "/", "a=b;c=d;"},
        {"/?a=b=c", "/", "a=b=c;"},
        {"/?a", "/", "a=;"},
        {"/?&&a=&", "/", "a=;"},
        {"/?a%3db=%26+%2b", "/", "a=b=& +;"},
        {"/?%C3%A9=\xc3\xa9", "/", "\xc3\xa9=\xc3\xa9;"},
        {"/?a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8", "/", "a=1;b=2;c=3;d=4;e=5;f=6;g=7;h=8;"},
        {"/?a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9", NULL, NULL},
        {"/?a=?", "/", "a=?;"},
        {"", NULL, NULL},
        {"*", NULL, NULL},
        {"http://host/", NULL, NULL},
        {"/%", NULL, NULL},
        {"/%2", NULL, NULL},
        {"/%zz", NULL, NULL},
        {"/%00", NULL, NULL},
        {"/%0a", NULL, NULL},
        {"/\x7f", NULL, NULL},
        {"/\xff", NULL, NULL},
        {"/?a=%00", NULL, NULL},
        {"/?a=%1f", NULL, NULL},
        {"/?a=%7f", NULL, NULL},
        {"/?a=%ff", NULL, NULL},
        {"/?a=%c3", NULL, NULL},
        {"/?a=%", NULL, NULL},
        {"/?a=1&a=2", NULL, NULL},
        {"/?a=1&%61=2", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct serve_request request = {.path = "before"};
        char target[100], query[200] = "";
        struct fly_error error = {0};
        int code;

        snprintf(target, sizeof target, "%s", cases[i].target);
        code = serve_target_parse(target, &request, &error);
        if ((code == 0) != (cases[i].path != NULL))
            fail_msg("'%s': %d, %s", cases[i].target, code, error.text);
        if (code < 0) {
            assert_string_equal(request.path, "before");
            continue;
        }
        for (size_t at = 0; at < request.query_count; at++) {
            size_t length = strlen(query);

            snprintf(query + length, sizeof query - length, "%s=%s;", request.query[at].name,
                     request.query[at].value);
            assert_ptr_equal(serve_query(&request, request.query[at].name), request.query[at].value);
        }
        assert_string_equal(request.path, cases[i].path);
        assert_string_equal(query, cases[i].query);
        assert_null(serve_query(&request, "nothing"));
    }
}

/* -- Tokens -- */

#define HASH_A "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" /* of "test" */
#define HASH_B "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" /* of "foo" */

static void test_token_lists(void **state)
{
    static const struct {
        const char *text;
        int code;
        size_t count;
        const char *part;
    } cases[] = {
        {"", 0, 0, NULL},
        {"\n\n# nothing\n  # here\n", 0, 0, NULL},
        {"a train never " HASH_A, 0, 1, NULL},
        {"a train never " HASH_A "\nb read 2027-01-02T03:04:05Z " HASH_B " # for the graphs\r\n", 0, 2, NULL},
        {"\ta \t manage  never\t" HASH_A "\n", 0, 1, NULL},
        {"a train never " HASH_A "\n\na train never " HASH_B "\n", FLY_ECONFIG, 0,
         "file:3: a token of that name"},
        {"a train never", FLY_ECONFIG, 0, "file:1 is no token"},
        {"# x\na train never " HASH_A " more", FLY_ECONFIG, 0, "file:2 is no token"},
        {"a nobody never " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a Train never " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a/b train never " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a train 90d " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a train 2027-02-30T00:00:00Z " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a train 2027-1-2T03:04:05Z " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a train 1927-01-02T03:04:05Z " HASH_A, FLY_ECONFIG, 0, "file:1"},
        {"a train never 9f86", FLY_ECONFIG, 0, "file:1"},
        {"a train never " HASH_A "00", FLY_ECONFIG, 0, "file:1"},
        {"a train never 9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08", FLY_ECONFIG, 0,
         "file:1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct token_list list = {.count = 0};
        struct fly_error error = {0};
        int code = token_list_parse(cases[i].text, "file", &list, &error);

        if (code != cases[i].code || list.count != cases[i].count)
            fail_msg("'%s': %d, %zu tokens, %s", cases[i].text, code, list.count, error.text);
        if (code < 0) {
            check_contains(error.text, cases[i].part);
            assert_null(strstr(error.text, "9f86"));
        }
        token_list_deinit(&list);
    }
}

static void test_tokens_are_found(void **state)
{
    const char text[] = "a train never " HASH_A "\nb read 2027-01-02T03:04:05Z " HASH_B "\n";
    struct token_list list;

    (void)state;
    assert_int_equal(token_list_parse(text, "file", &list, NULL), 0);
    assert_string_equal(token_list_find(&list, "test")->name, "a");
    assert_string_equal(token_list_find(&list, "foo")->name, "b");
    assert_int_equal(token_list_find(&list, "foo")->scope, SERVE_READ);
    assert_int_equal(token_list_find(&list, "foo")->expires_s, 1798859045);
    assert_null(token_list_find(&list, ""));
    assert_null(token_list_find(&list, "tes"));
    assert_null(token_list_find(&list, HASH_A));
    token_list_deinit(&list);
}

static void test_drawn_tokens_are_found(void **state)
{
    struct token token = {.name = "x", .scope = SERVE_MANAGE, .expires_s = INT64_MAX};
    char secret[TOKEN_TEXT_MAX], before[TOKEN_TEXT_MAX] = "";
    struct token_list list;
    struct buffer line;

    (void)state;
    for (int i = 0; i < 20; i++) {
        buffer_init(&line, 1000);
        assert_int_equal(token_draw(secret, token.hash, NULL), 0);
        assert_int_equal(strlen(secret), 47);
        assert_string_not_equal(secret, before);
        memcpy(before, secret, sizeof before);
        token_line_put(&token, &line);
        assert_int_equal(token_list_parse(line.data, "file", &list, NULL), 0);
        assert_memory_equal(token_list_find(&list, secret), &list.tokens[0], sizeof token);
        assert_int_equal(list.tokens[0].expires_s, INT64_MAX);
        token_list_deinit(&list);
        buffer_deinit(&line);
    }
}

static void test_too_many_tokens(void **state)
{
    struct fly_error error;
    struct token_list list;
    struct buffer text;

    (void)state;
    buffer_init(&text, TOKEN_FILE_MAX);
    for (int i = 0; i < TOKENS_MAX; i++)
        buffer_printf(&text, "t%d train never " HASH_A "\n", i);
    assert_int_equal(token_list_parse(text.data, "file", &list, NULL), 0);
    assert_int_equal(list.count, TOKENS_MAX);
    token_list_deinit(&list);
    buffer_puts(&text, "more train never " HASH_A "\n");
    assert_int_equal(token_list_parse(text.data, "file", &list, &error), FLY_ELIMIT);
    buffer_deinit(&text);
}

static void test_expiries(void **state)
{
    static const struct {
        const char *text;
        int64_t at_s; /* 0: refused */
    } cases[] = {
        {"never", INT64_MAX},
        {"90d", 1000 + 90 * 86400},
        {"1h", 1000 + 3600},
        {"2027-01-02T03:04:05Z", 1798859045},
        {"36500d", 1000 + INT64_C(36500) * 86400},
        {"36501d", 0},
        {"0d", 0},
        {"-1d", 0},
        {"d", 0},
        {"", 0},
        {"90", 0},
        {"1.5d", 0},
        {"Never", 0},
        {"99999999999999999999999999999999999999d", 0},
        {"2027-01-02", 0},
        {"2027-01-02T03:04:05", 0},
        {"2027-01-02T03:04:05Zz", 0},
        {"2027-01-02T03:04:60Z", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t at_s = 0;

        if (token_expiry_parse(cases[i].text, 1000, &at_s) != (cases[i].at_s != 0) || at_s != cases[i].at_s)
            fail_msg("'%s': %lld", cases[i].text, (long long)at_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen_addresses),  cmocka_unit_test(test_heads),
        cmocka_unit_test(test_long_socket_paths), cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_targets),           cmocka_unit_test(test_token_lists),
        cmocka_unit_test(test_tokens_are_found),  cmocka_unit_test(test_drawn_tokens_are_found),
        cmocka_unit_test(test_too_many_tokens),   cmocka_unit_test(test_expiries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
