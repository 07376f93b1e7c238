/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_SERVICE_ADDRESS_H
#define FLYBALL_JOB_REMOTE_SERVICE_ADDRESS_H

#include <stdbool.h>

#include <flyball/error.h>

/*
 * A service's address as text: http://HOST[:PORT][/PREFIX], https://..., or unix:PATH for a socket. Pure;
 * thread-safe.
 */
enum { SERVICE_ADDRESS_MAX = 1000, SERVICE_SOCKET_MAX = 107 };

struct service_address {
    char url[SERVICE_ADDRESS_MAX + 1];   /* "https://host:8443/prefix", without a slash at the end */
    char socket[SERVICE_SOCKET_MAX + 1]; /* "": over TCP; else the host is only a name */
    bool secret;                         /* what is sent stays on this machine, or is encrypted */
    bool local;                          /* on this machine: no proxy is asked */
};

/*
 * Parses an address. Returns FLY_EUSAGE for another scheme, a missing or malformed host, a user or password
 * (tokens have their own place), a query or a fragment; FLY_ELIMIT. Error texts never repeat what may be a
 * password.
 */
int service_address_parse(const char *text, struct service_address *out_address, struct fly_error *out_error);

#endif
