/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/service_address.h"

enum { PORT_MAX = 65535, LOOPBACK_NET = 127, HOST_MAX = INET6_ADDRSTRLEN, HOST_PORT_MAX = HOST_MAX + 16 };
static const char number_prefix[] = "fd:";

static int parse_unix(const char *path, struct listen_address *address, struct fly_error *out_error)
{
    struct sockaddr_un *at = (struct sockaddr_un *)&address->at;
    size_t length = strlen(path);

    if (length == 0)
        return error_set(out_error, FLY_EUSAGE,
                         "listen address 'unix:' lacks the path, as in 'unix:/run/flyball-serve/serve.sock'");
    if (length >= sizeof at->sun_path)
        return error_set(out_error, FLY_ELIMIT,
                         "listen address 'unix:%.60s...' is too long: a socket's path has at most %zu bytes",
                         path, sizeof at->sun_path - 1);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path, path, length + 1);
    address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    address->here = true;
    return 0;
}

bool listen_address_is_here(const struct listen_address *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->at;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->at;

    if (address->at.ss_family == AF_INET)
        return ntohl(four->sin_addr.s_addr) >> 24 == LOOPBACK_NET;
    if (address->at.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    return address->at.ss_family == AF_UNIX;
}

static int parse_number(const char *text, struct listen_address *address, struct fly_error *out_error)
{
    uint64_t number;

    if (!number_parse_u64(text, INT16_MAX, &number) || number <= STDERR_FILENO)
        return error_set(out_error, FLY_EUSAGE,
                         "listen address 'fd:%.20s' is none: give the number of a socket, from 3 on", text);
    address->fd = (int)number;
    return 0;
}

/* Splits "HOST:PORT" and "[HOST]:PORT". Returns whether the text has that form. */
static bool split(const char *text, char host[HOST_MAX], bool *out_bracketed, const char **out_port)
{
    const char *colon = strrchr(text, ':');
    size_t length;

    if (colon == NULL)
        return false;
    length = (size_t)(colon - text);
    *out_bracketed = length > 2 && text[0] == '[' && colon[-1] == ']';
    if (*out_bracketed) {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= HOST_MAX)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    *out_port = colon + 1;
    return true;
}

static bool parse_tcp(const char *text, struct listen_address *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&address->at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->at;
    char host[HOST_MAX];
    const char *port_text = "";
    uint64_t port;
    bool bracketed;

    if (!split(text, host, &bracketed, &port_text) || !number_parse_u64(port_text, PORT_MAX, &port))
        return false;
    if (bracketed) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        address->length = sizeof *six;
        if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
            return false;
        address->here = listen_address_is_here(address);
        return true;
    }
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    address->length = sizeof *four;
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr) != 1)
        return false;
    address->here = listen_address_is_here(address);
    return true;
}

int listen_address_parse(const char *text, struct listen_address *out_address, struct fly_error *out_error)
{
    struct listen_address address = {.fd = -1};
    const char *rest;
    enum address_form form = address_split(text, &rest);
    char host[HOST_PORT_MAX];
    int code = 0;

    if (form == ADDRESS_HTTP || form == ADDRESS_HTTPS)
        address.tls = form == ADDRESS_HTTPS ? "https://" : "http://";
    snprintf(host, sizeof host, "%.*s", (int)strcspn(rest, "/"), rest);
    if (form == ADDRESS_SOCKET || (form == ADDRESS_PATH && strchr(rest, '/') != NULL))
        code = parse_unix(rest, &address, out_error);
    else if (strncmp(text, number_prefix, sizeof number_prefix - 1) == 0)
        code = parse_number(text + sizeof number_prefix - 1, &address, out_error);
    else if (rest[strcspn(rest, "/")] != '\0' && strcmp(strchr(rest, '/'), "/") != 0)
        code = error_set(out_error, FLY_EUSAGE,
                         "listen address '%.100s' has a path; leave out what follows the port", text);
    else if (!parse_tcp(host, &address))
        code = error_set(out_error, FLY_EUSAGE,
                         "listen address '%.100s' is none; give an address in numbers with its port, as in "
                         "'127.0.0.1:7470', '[::1]:7470' or '0.0.0.0:7470', or 'unix:' and a path",
                         text);
    if (code == 0)
        *out_address = address;
    return code;
}

char *listen_address_show(const struct listen_address *address, char text[LISTEN_TEXT_MAX])
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->at;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->at;
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->at.ss_family == AF_UNSPEC) {
        snprintf(text, LISTEN_TEXT_MAX, "%s%d", number_prefix, address->fd);
    } else if (address->at.ss_family == AF_UNIX) {
        snprintf(text, LISTEN_TEXT_MAX, "unix:%s", ((const struct sockaddr_un *)&address->at)->sun_path);
    } else if (address->at.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(text, LISTEN_TEXT_MAX, "[%s]:%d", host, ntohs(six->sin6_port));
    } else {
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(text, LISTEN_TEXT_MAX, "%s:%d", host, ntohs(four->sin_port));
    }
    return text;
}

bool listen_host_is_here(const char *host)
{
    struct listen_address address = {.fd = -1};
    char with_port[HOST_MAX + 8];
    const char *bracket = strrchr(host, ']');
    bool has_port = strchr(bracket != NULL ? bracket : host, ':') != NULL;

    if (snprintf(with_port, sizeof with_port, "%s%s", host, has_port ? "" : ":0") >= (int)sizeof with_port)
        return false;
    return parse_tcp(with_port, &address) && address.here;
}
