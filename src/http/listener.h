/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_LISTENER_H
#define FLYBALL_HTTP_LISTENER_H

#include "http/listen_address.h"

/*
 * A socket that listens.
 *
 * A Unix socket is made with mode 0600, or 0660 and a group's, before anybody can
 * connect. What lies at its path is replaced where it is a socket that nobody listens
 * on: who does so holds a lock on "PATH.lock", and drops it by dying. Anything else
 * at the path stays, and is an error.
 */
struct listener {
    struct listen_address bound; /* the address it really has */
    int fd;                      /* owned until it is taken; -1: none */
    int lock_fd;                 /* of a Unix socket; owned; -1: none */
};

/*
 * `group`: a name or number, or NULL. FLY_EBUSY: another one listens there; FLY_EPERM, FLY_ENOTFOUND (no
 * such directory, group or address of this machine), FLY_EUSAGE.
 */
int listener_open(const struct listen_address *address, const char *group, struct listener *out_listener,
                  struct fly_error *out_error);

/* Nobody can connect any more, and a Unix socket's path is free. The socket stays, for who polls it. */
void listener_refuse(struct listener *listener);

/* The same, and closes the socket unless it was taken. Harmless twice. */
void listener_close(struct listener *listener);

#endif
