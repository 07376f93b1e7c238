/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_SOCKET_REACH_H
#define FLYBALL_BASE_SOCKET_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

/*
 * Connects to a Unix socket and looks who listens there, before anything is told to him.
 *
 *     const uid_t users[] = {0};
 *     const struct socket_trust trust = {.users = users, .user_count = 1, .required = true};
 *
 *     code = socket_reach("/run/flyballd/flyballd.sock", 1, &trust, "\r\n", &fd, out_error);
 *
 * A path says nothing about who listens: whoever may write to one of its directories can put a socket
 * of his own there. The kernel knows the user of the process that began to listen; for a socket of
 * systemd's that is root. In a user namespace all users that it does not know, root of the machine
 * among them, are one: 65534, "nobody".
 *
 * Thread-safe.
 */
struct socket_trust {
    const uid_t *users; /* who are trusted; borrowed */
    size_t user_count;
    const char *remedy; /* how to trust somebody else, for the error's text; NULL: none */
    bool required;      /* nobody else is spoken to */
    const int *files;   /* descriptors that a trusted listener gets with the first byte (SCM_RIGHTS); */
    size_t file_count;  /* they stay open here. SOCKET_FILES_MAX at most */
};
enum { SOCKET_FILES_MAX = 32, SOCKET_CARRIER_MAX = 16 };

/*
 * Looks who listens at the other end of a connected socket, and passes the files if he is trusted; `carrier`,
 * of 1 to SOCKET_CARRIER_MAX bytes, is sent with them, because files need bytes to travel with. Nothing else
 * is sent. `path` is for errors. FLY_EPERM (the listener is not trusted), FLY_EREAD (the files could not be
 * sent), FLY_ELIMIT.
 */
int socket_greet(int fd, const char *path, const struct socket_trust *trust, const char *carrier,
                 struct fly_error *out_error);

/*
 * Connects and greets; the socket is the caller's to close. Also FLY_ENOTFOUND (nobody listens, or takes the
 * connection in time), FLY_EPERM (the socket), FLY_EUSAGE (the path is too long).
 */
int socket_reach(const char *path, double timeout_s, const struct socket_trust *trust, const char *carrier,
                 int *out_fd, struct fly_error *out_error);

#endif
