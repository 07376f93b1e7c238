/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PEERS_H
#define FLYBALL_HTTP_PEERS_H

#include <flyball/error.h>

#include "http/porter.h"

/*
 * The server's side of connections of Unix sockets. The porter (porter.h) accepts them and finds
 * out who connects; once a client has sent its first byte, its front passes on what it sends
 * through a socket that the server gets here. So a client that connects and says nothing keeps no
 * other from being served; after a while it is closed. Until a connection ends, it counts for its
 * socket and for its user.
 *
 *     code = peers_open(&options, &peers, out_error);
 *     code = peers_add(peers, listening_fd, inherited, door, out_error);     for each socket
 *     code = peers_start(peers, out_error);
 *     ... `take` is called, peers_claim, peers_forget ...
 *     peers_stop(peers);
 *     peers_close(peers);
 */
struct peers_options {
    struct porter *porter;         /* borrowed; its connections end with the peers */
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
     * Gets a socket, and owns it; returns false if it had to close it. Whoever reads the socket claims
     * its peer. Must not block. Called by a thread of the peers.
     */
    bool (*take)(void *door, int fd);

    /* Gets lines for the log. Called by the same thread. */
    void (*tell)(void *state, const char *line);
    void *tell_state;
};

struct peers;

/* FLY_ENOMEM; FLY_ELIMIT: no descriptors are left. */
int peers_open(const struct peers_options *options, struct peers **out_peers, struct fly_error *out_error);

/*
 * Gives a listening socket that does not block to the porter; `fd` is -1 then. `inherited`: others may
 * go on listening at it. `door` is what `take` gets.
 */
int peers_add(struct peers *peers, int *fd, bool inherited, void *door, struct fly_error *out_error);

int peers_start(struct peers *peers, struct fly_error *out_error);

/*
 * Returns in `out_peer` who is at the other end of a socket that `take` got, and gives it its
 * number; only the number is known of a socket that came in another way. Thread-safe.
 */
void peers_claim(struct peers *peers, int fd, uint64_t number, struct serve_peer *out_peer);

/* The connection with that number has ended. Unknown numbers are none of ours. Thread-safe. */
void peers_forget(struct peers *peers, uint64_t number);

/*
 * Asks for "/healthz" on a connection of this process's own, which goes the way of all and counts for
 * nothing, and returns its socket, which does not block; owned. -1: there is none. Call it from one thread.
 */
int peers_probe(struct peers *peers);

/* Returns whether connections still come: false if the porter has died. Call it from that thread. */
bool peers_come(struct peers *peers);

/* Accepts no more, and closes connections that have said nothing yet. May be called twice. */
void peers_stop(struct peers *peers);

/* Call it after the stop, when no thread claims or forgets any more. Ends the porter. NULL: nothing. */
void peers_close(struct peers *peers);

#endif
