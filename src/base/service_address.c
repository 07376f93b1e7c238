/* SPDX-License-Identifier: Apache-2.0 */
#include "base/service_address.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

enum { PORT_MAX = 65535, PORT_TEXT_MAX = 6, HOST_MAX = 256 };

static const char http[] = "http://", https[] = "https://", unix_socket[] = "unix:";

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- sockets ---- */

static int parse_socket(const char *path, struct service_address *address, struct fly_error *out_error)
{
    if (path[0] == '\0')
        return error_set(out_error, FLY_EUSAGE, "address 'unix:': name the socket's path after it");
    if (strlen(path) > SERVICE_SOCKET_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "address 'unix:%.60s...': a socket's path has at most %d bytes; shorten it", path,
                         SERVICE_SOCKET_MAX);
    snprintf(address->socket, sizeof address->socket, "%s", path);
    snprintf(address->url, sizeof address->url, "http://localhost");
    address->secret = address->local = true;
    return 0;
}

/* ---- hosts ---- */

static bool all_of(const char *text, size_t length, const char *allowed)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0' || strchr(allowed, text[i]) == NULL)
            return false;
    }
    return length > 0;
}

/* The length of a host's name or address at the start, with its brackets; 0: there is none. */
static size_t host_length(const char *text)
{
    static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    static const char of_addresses[] = "0123456789abcdefABCDEF:.%";
    size_t length;

    if (text[0] == '[') {
        length = strcspn(text, "]");
        return text[length] == ']' && all_of(text + 1, length - 1, of_addresses) ? length + 1 : 0;
    }
    length = strcspn(text, ":/");
    return all_of(text, length, of_names) ? length : 0;
}

static bool port_fits(const char *text, size_t length)
{
    char digits[PORT_TEXT_MAX];
    uint64_t port;

    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    return number_parse_u64(digits, PORT_MAX, &port);
}

/* A path begins with one slash: other programs write "unix:///run/x.sock". */
static const char *without_slashes(const char *path)
{
    while (begins(path, "//"))
        path++;
    return path;
}

enum address_form address_split(const char *text, const char **out_rest)
{
    static const struct {
        const char *scheme;
        enum address_form form;
    } rows[] = {{unix_socket, ADDRESS_SOCKET}, {http, ADDRESS_HTTP}, {https, ADDRESS_HTTPS}};
    size_t host = host_length(text);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!begins(text, rows[i].scheme))
            continue;
        *out_rest = text + strlen(rows[i].scheme);
        if (rows[i].form == ADDRESS_SOCKET)
            *out_rest = without_slashes(*out_rest);
        return rows[i].form;
    }
    *out_rest = without_slashes(text);
    return host > 0 && text[host] == ':' && port_fits(text + host + 1, strlen(text + host + 1))
               ? ADDRESS_HOST
               : ADDRESS_PATH;
}

/* Whether the name always means this machine. */
static bool is_loopback(const char *host, size_t length)
{
    static const char *const names[] = {"localhost", "[::1]"};
    static const char of_numbers[] = "0123456789.";

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length && strncmp(names[i], host, length) == 0)
            return true;
    }
    return begins(host, "127.") && all_of(host, length, of_numbers);
}

/* `host` is what follows the scheme. */
static int parse_url(const char *scheme, const char *host, struct service_address *address,
                     struct fly_error *out_error)
{
    bool encrypted = scheme == https;
    size_t length = strlen(host), host_bytes = host_length(host);
    const char *after = host + host_bytes, *port = *after == ':' ? after + 1 : "1";
    size_t port_bytes = strcspn(port, "/");

    if (strpbrk(host, "@?#") != NULL)
        return error_set(
            out_error, FLY_EUSAGE,
            "address '%s...': a user, a password or a query has no place in its address; a token "
            "stands in FLYBALL_TOKEN_FILE",
            scheme);
    for (const char *at = host; *at != '\0'; at++) {
        if ((unsigned char)*at <= 0x20 || *at == 0x7f)
            return error_set(out_error, FLY_EUSAGE, "address '%s...': there is a blank in its address",
                             scheme);
    }
    if (host_bytes == 0 || host_bytes > HOST_MAX || (*after != '\0' && *after != ':' && *after != '/') ||
        !port_fits(port, port_bytes) || strspn(port, "0") == port_bytes)
        return error_set(out_error, FLY_EUSAGE, "address '%s%.200s': expected %sHOST:PORT", scheme, host,
                         scheme);
    while (host[length - 1] == '/')
        length--;
    snprintf(address->url, sizeof address->url, "%s%.*s", scheme, (int)length, host);
    address->local = is_loopback(host, host_bytes);
    address->secret = encrypted || address->local;
    return 0;
}

int service_address_parse(const char *text, struct service_address *out_address, struct fly_error *out_error)
{
    struct service_address address = {.secret = false};
    const char *rest;
    int code = 0;

    if (strlen(text) + strlen(http) > SERVICE_ADDRESS_MAX)
        return error_set(out_error, FLY_ELIMIT, "an address has at most %d bytes; shorten it",
                         SERVICE_ADDRESS_MAX - (int)strlen(http));
    switch (address_split(text, &rest)) {
    case ADDRESS_HTTP:
    case ADDRESS_HOST:
        code = parse_url(http, rest, &address, out_error);
        break;
    case ADDRESS_HTTPS:
        code = parse_url(https, rest, &address, out_error);
        break;
    case ADDRESS_PATH:
        if (strchr(text, ':') != NULL && text[0] != '/')
            return error_set(out_error, FLY_EUSAGE,
                             "expected an address that begins with http://, https:// or unix:");
        /* fallthrough */
    case ADDRESS_SOCKET:
        code = parse_socket(rest, &address, out_error);
        break;
    }
    if (code == 0)
        *out_address = address;
    return code;
}
