/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PEER_H
#define FLYBALL_HTTP_PEER_H

#include "http/exchange.h"

/*
 * Who is at the other end of a Unix socket: what the kernel knows of the process that connected,
 * and which GPU devices it proves to have open by sending their descriptors with its first byte.
 * Thread-safe.
 */
struct peer_rules {
    unsigned device_major;        /* of GPU devices */
    const char *device_directory; /* which holds nvidia0, nvidia1 ... */
};

/* Asks the kernel who connected. What it does not tell stays unknown; never fails, and never waits. */
void peer_look(int socket, struct serve_peer *out_peer);

/*
 * Reads bytes without waiting, as recv, and closes all descriptors that came with them. Devices of
 * GPUs are added to the peer, unless that is NULL. `out_odd`: something came that is no device of
 * the driver, or too much.
 *
 * The descriptors are a stranger's. Nothing touches what is behind one before it is known to be a
 * device; but closing it may take as long as the stranger likes (a file of its own file system, a
 * socket that lingers). So only a process for which nobody else waits may call this: a front.
 */
ssize_t peer_receive(int socket, char *bytes, size_t maximum, const struct peer_rules *rules,
                     struct serve_peer *peer, bool *out_odd);

#endif
