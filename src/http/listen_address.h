/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_LISTEN_ADDRESS_H
#define FLYBALL_HTTP_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <flyball/error.h>

/* An address to listen at, read from text alone: no name is looked up. Pure; thread-safe. */
struct listen_address {
    struct sockaddr_storage at; /* AF_INET, AF_INET6 or AF_UNIX */
    socklen_t length;
    bool here;       /* only this machine can reach it: loopback or a Unix socket */
    const char *tls; /* "http://" or "https://", where the text says so; NULL: it does not */
    int fd;          /* a socket that listens already, of which the rest is not known yet; -1: none */
};

/*
 * Reads addresses as base/service_address.h has them: "127.0.0.1:7470", "[::1]:7470", "localhost:7470" (which
 * is 127.0.0.1), "unix:/run/flyball-serve/serve.sock", or "fd:3": a socket that whoever started the program
 * opened (listener_inherited). "http://127.0.0.1:7470" and a path with a '/' will do, too. With port 0 the
 * kernel chooses one. FLY_EUSAGE for anything else, host names included; FLY_ELIMIT for a path too long for a
 * socket.
 */
int listen_address_parse(const char *text, struct listen_address *out_address, struct fly_error *out_error);

/*
 * Writes the address as text and returns it: "127.0.0.1:7470", "[::1]:7470",
 * "unix:/run/flyball-serve/serve.sock", "fd:3" while it is not known where that socket listens.
 */
enum { LISTEN_TEXT_MAX = sizeof((struct sockaddr_un *)0)->sun_path + 8 };
char *listen_address_show(const struct listen_address *address, char text[LISTEN_TEXT_MAX]);

/* Returns whether only this machine can reach the socket's address; what `here` is. */
bool listen_address_is_here(const struct listen_address *address);

/* Returns whether a request's Host names this machine's loopback: "localhost", "127.0.0.1:80", "[::1]". */
bool listen_host_is_here(const char *host);

#endif
