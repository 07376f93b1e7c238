/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_LISTEN_H
#define FLYBALL_NODE_NODE_LISTEN_H

#include <stddef.h>

#include <flyball/error.h>

#include "cli/frame/call.h"
#include "http/server.h"

/*
 * Where the daemon listens: the addresses of its configuration, and sockets that it was started with, as
 * a socket unit of systemd does. A configured address at which such a socket listens is served by that
 * socket, which keeps its owner, mode and path. A socket at another address is served in addition.
 *
 *     node_listen_choose(configured, listener_inherited(), &where, out_error);
 *     options.listen = where.words;
 */
enum { LISTEN_WORD_MAX = 16 };

struct node_listen {
    const char
        *words[SERVER_ADDRESSES_MAX]; /* as listen_address_parse takes them; borrowed, also from here */
    size_t count;
    char inherited[SERVER_ADDRESSES_MAX][LISTEN_WORD_MAX];
};

/*
 * FLY_EUSAGE: an address that cannot be read, or an inherited descriptor that is no listening socket;
 * FLY_ELIMIT: more than SERVER_ADDRESSES_MAX addresses.
 */
int node_listen_choose(const struct cli_list *configured, size_t inherited, struct node_listen *out_listen,
                       struct fly_error *out_error);

#endif
