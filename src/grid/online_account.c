/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/online_account.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/number.h"

static const char timeout_variable[] = "FLYBALL_CARBON_TIMEOUT";
static const double usual_timeout_s = 20.0, longest_timeout_s = 600.0;

static const char *given(const char *variable)
{
    const char *value = variable != NULL ? getenv(variable) : NULL;

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Returns whether an address is at `host`. */
static bool is_at(const char *base, const char *host)
{
    const char *begin = strstr(base, "://");
    size_t length = strlen(host);

    return begin != NULL && strncasecmp(begin + 3, host, length) == 0 &&
           strchr(":/", begin[3 + length]) != NULL; /* the end of the text counts too */
}

/* Returns whether the host is a name of this machine, as in "http://127.0.0.1:8090/v3", and nothing else. */
static bool is_within_machine(const char *base)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (is_at(base, hosts[i]))
            return true;
    }
    return false;
}

static int find_key_header(const struct online_provider *provider, struct online_account *account,
                           struct fly_error *out_error)
{
    const char *header = given(provider->header_variable);

    if (header != NULL &&
        (strlen(header) >= sizeof account->key_header ||
         strspn(header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
             strlen(header)))
        return error_set(out_error, FLY_ECONFIG,
                         "bad value for %s: expected a header's name of letters, digits, '-' and '_'",
                         provider->header_variable);
    if (header == NULL)
        header = provider->gateway != NULL && is_at(account->base, provider->gateway)
                     ? provider->gateway_header
                     : provider->key_header;
    snprintf(account->key_header, sizeof account->key_header, "%s", header != NULL ? header : "");
    return 0;
}

static int find_timeout(struct online_account *account, struct fly_error *out_error)
{
    const char *text = given(timeout_variable);

    account->timeout_s = usual_timeout_s;
    if (text == NULL)
        return 0;
    if (!number_parse_double(text, &account->timeout_s) || account->timeout_s < 0.1 ||
        account->timeout_s > longest_timeout_s)
        return error_set(out_error, FLY_ECONFIG, "bad value '%.40s' for %s: expected 0.1 to 600 s", text,
                         timeout_variable);
    return 0;
}

int online_account_find(const struct online_provider *provider, struct online_account *out_account,
                        struct fly_error *out_error)
{
    struct online_account account = {.base = ""};
    const char *base = given(provider->base_variable);
    size_t length;
    int code;

    if (base == NULL)
        base = provider->base;
    if (base == NULL)
        return error_set(out_error, FLY_ECONFIG,
                         "the address of %s is not known; set %s to it, as http://HOST:PORT", provider->name,
                         provider->base_variable);
    length = strlen(base);
    while (length > 0 && base[length - 1] == '/')
        length--;
    if ((strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0) ||
        length >= sizeof account.base || strpbrk(base, " @?#\"\\\r\n\t") != NULL)
        return error_set(
            out_error, FLY_ECONFIG,
            "bad value for %s: expected http://HOST:PORT or https://HOST, without a user's name, "
            "'?' or '#'",
            provider->base_variable);
    memcpy(account.base, base, length);
    account.base[length] = '\0';
    account.within_machine = is_within_machine(account.base);
    code = find_timeout(&account, out_error);
    if (code == 0)
        code = find_key_header(provider, &account, out_error);
    if (code == 0)
        *out_account = account;
    return code;
}

static bool is_header_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || (unsigned char)*text == 0x7F)
            return false;
    }
    return true;
}

static int take_key(const char *text, const char *from, char key[ACCOUNT_KEY_MAX],
                    struct fly_error *out_error)
{
    size_t length = strlen(text);

    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0 || length >= ACCOUNT_KEY_MAX)
        return error_set(out_error, FLY_ECONFIG, "%s holds no key: expected a line of 1 to %d bytes", from,
                         ACCOUNT_KEY_MAX - 1);
    memcpy(key, text, length);
    key[length] = '\0';
    if (!is_header_text(key))
        return error_set(out_error, FLY_ECONFIG, "%s holds no key: expected one line of text", from);
    return 0;
}

static int read_key_file(const char *path, char key[ACCOUNT_KEY_MAX], struct fly_error *out_error)
{
    char text[ACCOUNT_KEY_MAX + 1], from[ACCOUNT_KEY_MAX];
    FILE *file = fopen(path, "re");
    size_t length;

    if (file == NULL)
        return error_set(out_error,
                         errno == ENOENT   ? FLY_ENOTFOUND
                         : errno == EACCES ? FLY_EPERM
                                           : FLY_EREAD,
                         "the key's file '%.200s' cannot be read: %s", path, strerror(errno));
    length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[memchr(text, '\0', length) != NULL ? 0 : length] = '\0';
    snprintf(from, sizeof from, "the file '%.200s'", path);
    return take_key(text, from, key, out_error);
}

int online_account_unlock(const struct online_provider *provider, struct online_account *account,
                          struct fly_error *out_error)
{
    const char *file = given(provider->key_file_variable), *key = given(provider->key_variable);
    const char *user = given(provider->user_variable);

    if (provider->secret == ONLINE_OPEN)
        return 0;
    if (strncmp(account->base, "http://", 7) == 0 && !account->within_machine)
        return error_set(out_error, FLY_ECONFIG,
                         "the key of %s would travel in the clear; set %s to an address with https://",
                         provider->name, provider->base_variable);
    if (provider->secret == ONLINE_LOGIN && user == NULL)
        return error_set(out_error, FLY_ECONFIG, "%s wants an account; set %s and %s", provider->name,
                         provider->user_variable, provider->key_file_variable);
    if (user != NULL && (strlen(user) >= sizeof account->user || !is_header_text(user)))
        return error_set(out_error, FLY_ECONFIG, "%s holds no name", provider->user_variable);
    if (user != NULL)
        snprintf(account->user, sizeof account->user, "%s", user);
    if (file != NULL)
        return read_key_file(file, account->key, out_error);
    if (key != NULL)
        return take_key(key, provider->key_variable, account->key, out_error);
    return error_set(out_error, FLY_ECONFIG, "%s wants a key; set %s to the file that holds it",
                     provider->name, provider->key_file_variable);
}
