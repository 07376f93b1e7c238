/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_DOOR_SHARES_H
#define FLYBALL_HTTP_DOOR_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "http/connections.h"

/*
 * How the connections of a TCP address are shared among those who connect: users where they are on this
 * machine (tcp_user.h), else addresses; of IPv6 the first 64 bits, which is what one network has. Nobody gets
 * more than a share, and at least a quarter of all is left for others.
 *
 *     door_shares_init(&shares, 512, 256);
 *     if (!door_shares_add(&shares, row))
 *         shutdown(row->fd, SHUT_RDWR);
 *     door_shares_busy(&shares, row);          its request is whole: the server is waited for now
 *     door_shares_wait(&shares, row);          the client is: to take the answer, to send the next request
 *     door_shares_remove(&shares, row);
 *
 * Where there is no room, the connection goes that has waited longest for its client: for a whole request, be
 * it one that was never begun, or for an answer to be taken; of the newcomer's share if that is full, else of
 * whoever has most. It is shut down, and no longer counts. If all are at work, the newcomer gets none. One
 * thread.
 */
enum { DOOR_SHARES_BUCKETS = 256 };

struct door_share;

struct door_shares {
    struct door_share *buckets[DOOR_SHARES_BUCKETS];
    size_t most, most_each, count;
};

void door_shares_init(struct door_shares *shares, unsigned most, unsigned most_each);

/* All connections have been removed. */
void door_shares_deinit(struct door_shares *shares);

/* Returns false if there is no room, or no memory; then the row does not count. */
bool door_shares_add(struct door_shares *shares, struct connection *row);

/* All three do nothing for a row that does not count. */
void door_shares_busy(struct door_shares *shares, struct connection *row);
void door_shares_wait(struct door_shares *shares, struct connection *row);
void door_shares_remove(struct door_shares *shares, struct connection *row);

#endif
