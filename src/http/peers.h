/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PEERS_H
#define FLYBALL_HTTP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "http/peer.h"

/*
 * Accepts connections of Unix sockets, finds out who connects (peer.h), and hands each one over
 * once its first byte is there. One thread does so for all sockets and waits for nobody, so that a
 * client that connects and says nothing keeps no other from being served; after a while it is
 * closed. Until a connection ends, it counts for its socket and for its user.
 *
 *     code = peers_open(&options, &peers, out_error);
 *     code = peers_add(peers, listening_fd, door, out_error);     for each socket
 *     code = peers_start(peers, out_error);
 *     ... `take` is called, peers_claim, peers_forget ...
 *     peers_stop(peers);
 *     peers_close(peers);
 */
struct peers_options {
    struct peer_rules rules;       /* texts are borrowed */
    unsigned connections;          /* open at once, of each socket; further ones wait to be accepted */
    unsigned connections_per_user; /* further ones are closed; 0: no limit */
    /*
     * More connections of each socket, which root alone gets; then no limit of a user holds for root,
     * and others' further connections are closed instead of waiting. 0: root is like everybody.
     */
    unsigned root_connections;
    double first_byte_s; /* to send the first byte */

    /*
     * Gets an accepted socket, and owns it; returns false if it had to close it. Whoever reads the
     * socket claims its peer. Must not block. Called by the thread that accepts.
     */
    bool (*take)(void *door, int fd);
};

enum { PEERS_DOORS_MAX = 16 };

struct peers;

/* FLY_ENOMEM; FLY_ELIMIT: no descriptors are left. */
int peers_open(const struct peers_options *options, struct peers **out_peers, struct fly_error *out_error);

/* Borrows a listening socket that does not block. `door` is what `take` gets. Call it before the start. */
int peers_add(struct peers *peers, int fd, void *door, struct fly_error *out_error);

int peers_start(struct peers *peers, struct fly_error *out_error);

/*
 * Returns in `out_peer` who is at the other end of a socket that `take` got, and gives it its
 * number; only the number is known of a socket that came in another way. Thread-safe.
 */
void peers_claim(struct peers *peers, int fd, uint64_t number, struct serve_peer *out_peer);

/* The connection with that number has ended. Unknown numbers are none of ours. Thread-safe. */
void peers_forget(struct peers *peers, uint64_t number);

/* Ends the thread, and closes connections that have said nothing yet. May be called twice. */
void peers_stop(struct peers *peers);

/* Call it after the stop, when no thread claims or forgets any more. NULL: nothing. */
void peers_close(struct peers *peers);

#endif
