/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signed token: only what the key has signed is read. The input is a token; and, so that what lies behind
 * the signature is reached, also the two parts before it, to which a right signature is given.
 */
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "fuzz.h"
#include "http/signed_token.h"

enum { TEXT_MAX = 10000, NOW_S = 1800000000, MAC_BYTES = 32 };

static const char key[] = "integration-test-signing-key!!!!";

static void put_base64(const unsigned char *bytes, size_t length, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t bit = 0; bit < length * 8; bit += 6) {
        unsigned pair = (unsigned)bytes[bit / 8] << 8 | (bit / 8 + 1 < length ? bytes[bit / 8 + 1] : 0U);

        *text++ = digits[pair >> (10 - bit % 8) & 63];
    }
    *text = '\0';
}

static void check(const char *text)
{
    struct signed_token token, again;
    char name[SIGNED_NAME_MAX], written[SIGNED_TOKEN_MAX];
    int code = signed_token_read(text, key, strlen(key), NOW_S, &token, NULL);

    FUZZ_CHECK(code == 0 || code == FLY_EPERM);
    if (code < 0)
        return;
    FUZZ_CHECK(token.subject[0] != '\0' && token.scopes < 1U << SIGNED_SCOPE_COUNT);
    FUZZ_CHECK(!token.expires || token.expires_s >= NOW_S - SIGNED_LEEWAY_S);
    FUZZ_CHECK(signed_token_read(text, key, strlen(key) - 1, NOW_S, &again, NULL) == FLY_EPERM);
    signed_token_name(&token, name);
    FUZZ_CHECK(strncmp(name, "jwt:", 4) == 0 && strlen(name) > 4);
    FUZZ_CHECK(signed_token_write(&token, key, strlen(key), written, NULL) == 0);
    FUZZ_CHECK(signed_token_read(written, key, strlen(key), NOW_S, &again, NULL) == 0);
    FUZZ_CHECK(strcmp(again.subject, token.subject) == 0 && again.scopes == token.scopes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 64];
    unsigned char mac[MAC_BYTES];

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check(text);
    size = strlen(text);
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, strlen(key), text, size, mac) < 0)
        return 0;
    text[size] = '.';
    put_base64(mac, sizeof mac, text + size + 1);
    check(text);
    return 0;
}
