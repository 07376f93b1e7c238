/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_LISTENER_H
#define FLYBALL_HTTP_LISTENER_H

#include "http/listen_address.h"

/*
 * A listening socket.
 *
 * A Unix socket is created with mode 0600, or with 0660 and a group, before anybody can connect.
 * A socket that is left at its path is replaced if nobody listens on it: a listener holds a lock
 * on "PATH.lock", and the lock goes away when the listener dies. Anything else at the path stays
 * and is an error.
 */
struct listener {
    struct listen_address bound; /* the actual address */
    int fd;                      /* owned until somebody takes it; -1: none */
    int lock_fd;                 /* of a Unix socket; owned; -1: none */
};

/*
 * Opens the socket. `group` is a name or a number, or NULL. FLY_EBUSY: another process listens
 * there; FLY_EPERM; FLY_ENOTFOUND: no such directory, group or address of this machine;
 * FLY_EUSAGE.
 */
int listener_open(const struct listen_address *address, const char *group, struct listener *out_listener,
                  struct fly_error *out_error);

/*
 * Lets nobody connect any more, and frees a Unix socket's path. The socket stays open for whoever
 * polls it.
 */
void listener_refuse(struct listener *listener);

/* Does the same, and closes the socket unless somebody took it. May be called twice. */
void listener_close(struct listener *listener);

#endif
