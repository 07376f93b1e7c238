/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_FRONT_H
#define FLYBALL_HTTP_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/peer.h"

/*
 * A front: a process that reads what the clients of one user send, and passes bytes on.
 *
 * A client may send any descriptor over a Unix socket, and closing one may take as long as its
 * owner likes. It is closed by whoever reads the socket, or closes it. So the server never holds a
 * client's socket: a front does, passes the bytes on through a socket of its own, whose other end
 * the server gets, and closes the descriptors. If it hangs, only that user's connections do, and
 * the porter (porter.h) starts another. A front has no rights that it could lend to anybody.
 */
enum { FRONT_DOORS_MAX = 16, FRONT_UNCOUNTED = FRONT_DOORS_MAX, FRONT_PATH_MAX = 256 };

struct front_rules {
    unsigned device_major;                 /* of GPU devices */
    char device_directory[FRONT_PATH_MAX]; /* which holds nvidia0, nvidia1 ... */
    double patience_s; /* for a client to send its first byte, and to take the last ones */
};

/* What a front and the porter share, in memory. */
struct front_desk {
    _Atomic int64_t busy_since_ns; /* the front does since then what a client could make last; 0: nothing */

    /* Connections that came in by each address and have not ended; FRONT_UNCOUNTED: the server's own. */
    atomic_uint connections[FRONT_DOORS_MAX + 1];
};

/*
 * What the porter says of a connection, after it has sent its socket in a message of one byte. The
 * front touches the socket only then, so that the porter's close of it is not the last one.
 */
struct front_visit {
    unsigned door;
    bool refused;   /* it is only to be closed */
    bool uncounted; /* it is the server's own */
    struct serve_peer peer;
};

/* What a front says to the server of a connection that has sent its first byte, with its socket. */
struct front_guest {
    uint64_t front; /* the number of the front */
    unsigned door;
    struct serve_peer peer;
};

/* Where a connection counts. */
static inline atomic_uint *front_count_of(struct front_desk *desk, const struct front_visit *visit)
{
    return &desk->connections[visit->uncounted ? FRONT_UNCOUNTED : visit->door];
}

struct front_place {
    int channel; /* from the porter; when that ends, so does the front */
    int intake;  /* to the server */
    uint64_t number;
    struct front_desk *desk;
};

/*
 * Messages of a fixed size between processes of one program, each with a descriptor or without.
 * Their sockets keep messages apart (SOCK_SEQPACKET), and only processes that trust each other
 * hold them. Thread-safe.
 *
 * front_message_send sends one; `fd` goes with it, -1: none, and stays the caller's. Returns whether it
 * was sent.
 */
bool front_message_send(int socket, const void *bytes, size_t length, int fd, bool wait);

/*
 * Receives a message of that length without waiting. Returns its length, 0 when the other side
 * has ended, or -1 as recv. What came with it is in `out_fd`, owned and closed on exec; -1: nothing.
 */
ssize_t front_message_receive(int socket, void *bytes, size_t length, int *out_fd);

/* Does a front's work until the porter ends. It owns the descriptors. */
_Noreturn void front_run(const struct front_place *place, const struct front_rules *rules);

#endif
