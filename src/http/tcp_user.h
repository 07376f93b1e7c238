/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TCP_USER_H
#define FLYBALL_HTTP_TCP_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * Finds out which user is at the other end of a TCP connection, if that end is on this machine: by whichever
 * address, the loopback's or another of its own, and in this network namespace. The kernel tells whose socket
 * it is (inet_diag; where netlink is not to be had, /proc/net/tcp, which takes longer the more there are).
 *
 * `peer` is the client's address, `own` the server's. Returns false for another machine's, and for a socket
 * that its process has closed already. Never blocks; thread-safe.
 */
bool tcp_user_find(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, uid_t *out_uid);

/*
 * The same of a connected socket; (uid_t)-1: not known. While the answer is sought it stays connected, so no
 * other socket can have had its other end's addresses: what is found may give rights. A program that forwards
 * connections counts for all whom it forwards.
 */
uid_t tcp_user_of(int socket);

/* Makes an IPv4 address of one that IPv6 carries (::ffff:192.0.2.1). Does nothing to others. */
void tcp_user_unmap(struct sockaddr_storage *address);

#endif
