/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens: one of another implementation, and all that must not hold. */
#include <stdio.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "http/signed_token.h"
#include "test.h"

enum { NOW_S = 1800000000, MAC_BYTES = 32 };

static const char key[] = "integration-test-signing-key!!!!";

/* Made with the hmac and base64 of Python. */
static const char foreign[] =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJzdWIiOiJhbGljZSIsInNjb3BlcyI6WyJncHUtcmVhZCIsImNwdS1yZWFkIl0sImV4cCI6OTk5OTk5OTk5OX0."
    "Z-WYo0N1nBvvHD9kGV5F7IMtRQB-FxO_qA3I2ot1mNA";

static void put_base64(const void *bytes, size_t length, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *at = bytes;
    size_t bits = length * 8;

    text += strlen(text);
    for (size_t bit = 0; bit < bits; bit += 6) {
        unsigned pair = (unsigned)at[bit / 8] << 8 | (bit / 8 + 1 < length ? at[bit / 8 + 1] : 0U);

        *text++ = digits[pair >> (10 - bit % 8) & 63];
    }
    *text = '\0';
}

/* Signs what stands there, whatever it is. */
static void sign(const char *head, const char *claims, char text[2 * SIGNED_TOKEN_MAX])
{
    unsigned char mac[MAC_BYTES];

    text[0] = '\0';
    put_base64(head, strlen(head), text);
    strcat(text, ".");
    put_base64(claims, strlen(claims), text);
    gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, strlen(key), text, strlen(text), mac);
    strcat(text, ".");
    put_base64(mac, sizeof mac, text);
}

static int ask(const char *text, struct signed_token *out_token)
{
    return signed_token_read(text, key, strlen(key), NOW_S, out_token, NULL);
}

static void test_foreign(void **state)
{
    struct signed_token token;

    (void)state;
    assert_int_equal(ask(foreign, &token), 0);
    assert_string_equal(token.subject, "alice");
    assert_int_equal(token.scopes, 1U << SIGNED_SCOPE_GPU_READ | 1U << SIGNED_SCOPE_CPU_READ);
    assert_true(token.expires);
    assert_int_equal(token.expires_s, 9999999999);
    assert_int_equal(signed_token_read(foreign, "another-key-of-the-right-length!", 32, NOW_S, &token, NULL),
                     FLY_EPERM);
    assert_int_equal(signed_token_read(foreign, "", 0, NOW_S, &token, NULL), FLY_EPERM);
}

/* Any other character in any place, any cut, and any addition is another token. */
static void test_forged(void **state)
{
    struct signed_token token;
    char text[sizeof foreign + 8];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof foreign; i++) {
        memcpy(text, foreign, sizeof foreign);
        text[i] = text[i] == 'A' ? 'B' : 'A';
        assert_int_equal(ask(text, &token), FLY_EPERM);
        text[i] = '\0';
        assert_int_equal(ask(text, &token), FLY_EPERM);
    }
    for (const char *const *more = (const char *const[]){"=", "A", ".", " ", "\n", ".A", NULL}; *more != NULL;
         more++) {
        snprintf(text, sizeof text, "%s%s", foreign, *more);
        assert_int_equal(ask(text, &token), FLY_EPERM);
    }
}

#define HEAD "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"
#define CLAIMS "{\"sub\":\"bob\",\"scopes\":[\"gpu-control\"]}"
#define CLAIMS_AND(more) "{\"sub\":\"bob\",\"scopes\":[]," more "}"

static const struct {
    const char *head, *claims;
    int code;
} signed_rows[] = {
    {HEAD, CLAIMS, 0},
    {"{\"alg\":\"HS256\"}", CLAIMS, 0},
    {"{\"typ\":\"JWT\",\"alg\":\"HS256\",\"kid\":\"1\"}", CLAIMS, 0},
    {"{\"alg\":\"none\",\"typ\":\"JWT\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"None\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"hs256\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"HS384\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"HS512\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"RS256\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":[\"HS256\"]}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"none\",\"alg\":\"HS256\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"HS256\",\"alg\":\"HS256\"}", CLAIMS, FLY_EPERM},
    {"{\"alg\":\"HS256\",\"crit\":[\"exp\"]}", CLAIMS, FLY_EPERM},
    {"{}", CLAIMS, FLY_EPERM},
    {"", CLAIMS, FLY_EPERM},
    {"HS256", CLAIMS, FLY_EPERM},
    {HEAD, "", FLY_EPERM},
    {HEAD, "{}", FLY_EPERM},
    {HEAD, "[]", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\"}", FLY_EPERM},
    {HEAD, "{\"scopes\":[\"gpu-read\"]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"\",\"scopes\":[]}", FLY_EPERM},
    {HEAD, "{\"sub\":7,\"scopes\":[]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"a\\u0000b\",\"scopes\":[]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"a\\nb\",\"scopes\":[]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[]}", 0},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":\"gpu-control\"}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[\"gpu-control\",\"everything\"]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[\"GPU-CONTROL\"]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"sub\":\"root\",\"scopes\":[]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"scopes\":[\"gpu-control\"]}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"iss\":\"me\",\"aud\":[\"you\"]}", 0},
    {HEAD, CLAIMS_AND("\"nbf\":9999999999"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":1800000060"), 0},
    {HEAD, CLAIMS_AND("\"nbf\":1800000061"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":1800000060.9"), 0},
    {HEAD, CLAIMS_AND("\"nbf\":1800000061.0"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":1.7e9"), 0},
    {HEAD, CLAIMS_AND("\"nbf\":1e30"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":9223372036854775807"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":-1"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":-1e300"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":\"1700000000\""), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":null"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":true"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":[0]"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":0,\"nbf\":9999999999"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"nbf\":1800000000,\"exp\":1800000001,\"iat\":1800000000"), 0},
    {HEAD, CLAIMS_AND("\"iat\":1799999999.25"), 0},
    {HEAD, CLAIMS_AND("\"iat\":\"yesterday\""), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"iat\":-5"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"iat\":null"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"iat\":1e999"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":null"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":false"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":{}"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":1800000000.5"), 0},
    {HEAD, CLAIMS_AND("\"exp\":1799999939.9"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":9223372036854775807"), 0},
    {HEAD, CLAIMS_AND("\"exp\":9223372036854775808"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":9.3e18"), FLY_EPERM},
    {HEAD, CLAIMS_AND("\"exp\":1799999000,\"exp\":9999999999"), FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":1800000000}", 0},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":1799999940}", 0},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":1799999939}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":0}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":-1}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":1e30}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":\"never\"}", FLY_EPERM},
    {HEAD, "{\"sub\":\"bob\",\"scopes\":[],\"exp\":99999999999999999999}", FLY_EPERM},
};

static void test_signed(void **state)
{
    static char text[2 * SIGNED_TOKEN_MAX];
    struct signed_token token;

    (void)state;
    for (size_t i = 0; i < sizeof signed_rows / sizeof signed_rows[0]; i++) {
        sign(signed_rows[i].head, signed_rows[i].claims, text);
        if (ask(text, &token) != signed_rows[i].code)
            fail_msg("%s . %s: not %d", signed_rows[i].head, signed_rows[i].claims, signed_rows[i].code);
    }
}

static void test_long(void **state)
{
    static char text[2 * SIGNED_TOKEN_MAX], claims[SIGNED_TOKEN_MAX];
    struct signed_token token;

    (void)state;
    snprintf(claims, sizeof claims, "{\"sub\":\"%.*s\",\"scopes\":[]}", SIGNED_SUBJECT_MAX - 1, "");
    for (int length = 255; length <= 256; length++) {
        char subject[300];

        memset(subject, 'x', sizeof subject);
        snprintf(claims, sizeof claims, "{\"sub\":\"%.*s\",\"scopes\":[]}", length, subject);
        sign(HEAD, claims, text);
        assert_int_equal(ask(text, &token), length == 255 ? 0 : FLY_EPERM);
    }
    memset(claims, ' ', sizeof claims);
    memcpy(claims, CLAIMS, strlen(CLAIMS));
    claims[3500] = '\0';
    sign(HEAD, claims, text);
    assert_true(strlen(text) >= SIGNED_TOKEN_MAX);
    assert_int_equal(ask(text, &token), FLY_EPERM);
}

static void test_written(void **state)
{
    struct signed_token token = {.subject = "carol", .scopes = 7, .expires = true, .expires_s = NOW_S + 1},
                        read;
    char text[SIGNED_TOKEN_MAX];

    (void)state;
    for (token.scopes = 0; token.scopes < 8; token.scopes++) {
        assert_int_equal(signed_token_write(&token, key, strlen(key), text, NULL), 0);
        assert_int_equal(ask(text, &read), 0);
        assert_string_equal(read.subject, token.subject);
        assert_int_equal(read.scopes, token.scopes);
        assert_int_equal(read.expires_s, token.expires_s);
    }
    token.expires = false;
    assert_int_equal(signed_token_write(&token, key, strlen(key), text, NULL), 0);
    assert_int_equal(ask(text, &read), 0);
    assert_false(read.expires);
    token.subject[0] = '\0';
    assert_int_equal(signed_token_write(&token, key, strlen(key), text, NULL), FLY_EUSAGE);
    strcpy(token.subject, "a\tb");
    assert_int_equal(signed_token_write(&token, key, strlen(key), text, NULL), FLY_EUSAGE);
}

/* A right signature with a key that can be guessed is none. */
static void test_short_key(void **state)
{
    struct signed_token token = {.subject = "carol", .scopes = 1}, read;
    char text[SIGNED_TOKEN_MAX];

    (void)state;
    for (size_t length = 0; length < SIGNED_KEY_MIN; length++) {
        unsigned char mac[MAC_BYTES];

        assert_int_equal(signed_token_write(&token, key, length, text, NULL), FLY_EUSAGE);
        assert_int_equal(signed_token_write(&token, key, strlen(key), text, NULL), 0);
        *strrchr(text, '.') = '\0';
        gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, length, text, strlen(text), mac);
        strcat(text, ".");
        put_base64(mac, sizeof mac, text);
        assert_int_equal(signed_token_read(text, key, length, NOW_S, &read, NULL), FLY_EPERM);
    }
}

static void test_names(void **state)
{
    static const struct {
        const char *subject, *name;
    } rows[] = {
        {"alice", "jwt:alice"},
        {"a-b_c.d", "jwt:a-b_c.d"},
        {"alice@example.org", "jwt:sha256-7a64adf28737ea90719cbdf0b1a87a5e"},
    };
    struct signed_token token;
    char name[SIGNED_NAME_MAX], other[SIGNED_NAME_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(token.subject, sizeof token.subject, "%s", rows[i].subject);
        signed_token_name(&token, name);
        assert_string_equal(name, rows[i].name);
    }
    memset(token.subject, 'x', 100);
    token.subject[100] = '\0';
    signed_token_name(&token, name);
    token.subject[99] = 'y';
    signed_token_name(&token, other);
    assert_string_not_equal(name, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign),   cmocka_unit_test(test_forged),  cmocka_unit_test(test_signed),
        cmocka_unit_test(test_long),      cmocka_unit_test(test_written), cmocka_unit_test(test_names),
        cmocka_unit_test(test_short_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
