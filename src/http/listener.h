/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_LISTENER_H
#define FLYBALL_HTTP_LISTENER_H

#include "http/listen_address.h"

/*
 * A listening socket.
 *
 * A Unix socket gets its owner, group and mode before anybody can connect.
 * A socket that is left at its path is replaced if nobody listens on it: a listener holds a lock
 * on "PATH.lock", and the lock goes away when the listener dies. Anything else at the path stays
 * and is an error.
 */
struct listener_access {
    const char *owner, *group; /* names or numbers; NULL: as the process has them */
    unsigned mode;             /* 0: 0660 with a group, 0600 without */
    bool no_descriptors; /* of a Unix socket: nobody may send any over it, where the kernel can forbid it */
};

struct listener {
    struct listen_address bound; /* the actual address */
    int fd;                      /* owned until somebody takes it; -1: none */
    int lock_fd;                 /* of a Unix socket; owned; -1: none */
    bool inherited;              /* somebody else opened it */
};

/*
 * Fills in what the number of a socket ("fd:3") leaves open: where it listens. Does nothing to
 * other addresses. FLY_EUSAGE: the program has no such socket, or it does not listen.
 */
int listener_look(struct listen_address *address, struct fly_error *out_error);

/*
 * Opens the socket, or takes the one whose number the address has, which then keeps its access
 * and its path. FLY_EBUSY: another process listens there; FLY_EPERM; FLY_ENOTFOUND: no such
 * directory, user, group or address of this machine; FLY_EUSAGE.
 */
int listener_open(const struct listen_address *address, const struct listener_access *access,
                  struct listener *out_listener, struct fly_error *out_error);

/*
 * Returns how many listening sockets the program was given by whoever started it, as systemd does
 * (LISTEN_PID, LISTEN_FDS): "fd:3", "fd:4" and so on. Takes the variables out of the environment,
 * and keeps the sockets from children; so call it once, before there are threads.
 */
size_t listener_inherited(void);

/*
 * Lets nobody connect any more, and frees a Unix socket's path. The socket stays open for whoever
 * polls it. A socket that was given to the program stays as it is: others may still listen on it.
 */
void listener_refuse(struct listener *listener);

/* Does the same, and closes the socket unless somebody took it. May be called twice. */
void listener_close(struct listener *listener);

#endif
