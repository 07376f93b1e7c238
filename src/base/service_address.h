/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_SERVICE_ADDRESS_H
#define FLYBALL_BASE_SERVICE_ADDRESS_H

#include <stdbool.h>

#include <flyball/error.h>

/*
 * The address of a service as text, wherever one is named: to listen at, to ask, to keep jobs. Pure;
 * thread-safe.
 *
 *     unix:PATH                       a socket
 *     http://HOST[:PORT][/PREFIX]
 *     https://HOST[:PORT][/PREFIX]
 *     HOST:PORT                       as http://
 *     PATH                            as unix:PATH, where no file of jobs may be meant
 */
enum address_form { ADDRESS_SOCKET, ADDRESS_HTTP, ADDRESS_HTTPS, ADDRESS_HOST, ADDRESS_PATH };

/*
 * Tells the forms apart, all else being ADDRESS_PATH. `out_rest` is what follows the scheme, "HOST:PORT" or
 * a path, borrowed from the text. Says nothing of whether the rest is well formed.
 */
enum address_form address_split(const char *text, const char **out_rest);

enum { SERVICE_ADDRESS_MAX = 1000, SERVICE_SOCKET_MAX = 107 };

struct service_address {
    char url[SERVICE_ADDRESS_MAX + 1];   /* "https://host:8443/prefix", without a slash at the end */
    char socket[SERVICE_SOCKET_MAX + 1]; /* "": over TCP; else the host is only a name */
    bool secret;                         /* what is sent stays on this machine, or is encrypted */
    bool local;                          /* on this machine: no proxy is asked */
};

/*
 * Parses an address to ask. Returns FLY_EUSAGE for another scheme, a missing or malformed host, a user or
 * password (tokens have their own place), a query or a fragment; FLY_ELIMIT. Error texts never repeat what
 * may be a password.
 */
int service_address_parse(const char *text, struct service_address *out_address, struct fly_error *out_error);

#endif
