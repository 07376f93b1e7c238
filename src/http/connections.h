/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_CONNECTIONS_H
#define FLYBALL_HTTP_CONNECTIONS_H

#include <pthread.h>
#include <stddef.h>

#include "base/clock.h"
#include "http/exchange.h"

/*
 * The open connections, each with a deadline for its client: to send a whole request after it
 * connected or got its last answer, or to take an answer. A client that sends one byte now and
 * then never reaches a limit on silence, but it does reach this deadline. Thread-safe.
 */
struct connection {
    int fd;
    struct mono_time deadline; /* INT64_MAX: the server does not wait for the client now */
    void *owner;               /* the caller's */
    bool kept_open;            /* its client may be silent between requests for as long as it likes */
    struct serve_peer peer;    /* the caller's; unknown at first */
    struct connection *previous, *next;

    /* Those of door_shares.h, of a TCP address: */
    struct door_share *share; /* NULL: it does not count */
    bool waits;               /* for its client, */
    struct mono_time waits_since;
    struct connection *older, *newer; /* among such of its share */
};

struct connections {
    pthread_mutex_t lock;
    struct connection *first;
    size_t count;
};

void connections_init(struct connections *connections);
void connections_deinit(struct connections *connections);

/*
 * Adds a new connection. Returns NULL without memory. The list owns it until it is removed;
 * remove it before its socket is closed.
 */
struct connection *connections_add(struct connections *connections, int fd, struct mono_time deadline,
                                   void *owner);
void connections_remove(struct connections *connections, struct connection *connection);

void connections_set(struct connections *connections, struct connection *connection,
                     struct mono_time deadline);

size_t connections_count(struct connections *connections);

/* Shuts down connections past their deadline. Whoever reads or writes them then closes them. */
void connections_reap(struct connections *connections, struct mono_time now);

#endif
