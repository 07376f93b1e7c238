/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PEER_H
#define FLYBALL_HTTP_PEER_H

#include "http/exchange.h"

/*
 * Who is at the other end of a Unix socket: what the kernel knows of the process that connected,
 * and which GPU devices it proves to have open by sending their descriptors with its first byte.
 *
 * The descriptors are a stranger's. They may stand for anything, and even closing one may take as
 * long as the stranger likes (a file of its own file system, a socket that lingers). So nothing
 * here touches what is behind a descriptor before it is known to be a device, and others are left
 * for the caller to close where it may take long. No function here blocks. Thread-safe.
 */
struct peer_rules {
    unsigned device_major;        /* of GPU devices */
    const char *device_directory; /* which holds nvidia0, nvidia1 ... */
};

/* Asks the kernel who connected. What it does not tell stays unknown; never fails. */
void peer_look(int socket, struct serve_peer *out_peer);

enum peer_word {
    PEER_SILENT, /* has sent nothing yet */
    PEER_SPOKE,  /* its first byte is there, which stays in the socket */
    PEER_SHOWED, /* the same, with descriptors; its reader needs peer_nudge */
    PEER_LEFT,   /* closed, or cannot be read */
    PEER_ODD,    /* sent descriptors that are no devices of the driver, or too many */
};

struct peer_strangers {
    int fds[SERVE_MINORS_MAX]; /* owned */
    size_t count;
};

/*
 * Looks whether the first byte is there, without waiting, and adds the devices that came with it
 * to the peer. Only PEER_ODD leaves descriptors in `out_strangers`.
 */
enum peer_word peer_listen(int socket, const struct peer_rules *rules, struct serve_peer *peer,
                           struct peer_strangers *out_strangers);

/*
 * The kernel ends a read behind bytes that came with descriptors, although more is there. A reader
 * that takes a short read for all there is, and waits for an edge of epoll, never reads the rest.
 * This makes such an edge if anything is unread. Returns whether something is.
 */
bool peer_nudge(int socket);

#endif
