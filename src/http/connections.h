/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_CONNECTIONS_H
#define FLYBALL_HTTP_CONNECTIONS_H

#include <pthread.h>
#include <stddef.h>

#include "base/clock.h"

/*
 * The open connections, each with the moment by which its client has to have done
 * what is up to it: to send a whole request since it connected or got its last answer,
 * or to take an answer. A client that sends a byte now and then keeps within any limit
 * on silence; this one it does not. Thread-safe.
 */
struct connection {
    int fd;
    struct mono_time deadline; /* INT64_MAX: it is not the client that is waited for */
    void *owner;               /* the caller's */
    struct connection *previous, *next;
};

struct connections {
    pthread_mutex_t lock;
    struct connection *first;
    size_t count;
};

void connections_init(struct connections *connections);
void connections_deinit(struct connections *connections);

/* One that was made; NULL without memory. It stays the list's until it is removed, before its socket is
 * closed. */
struct connection *connections_add(struct connections *connections, int fd, struct mono_time deadline,
                                   void *owner);
void connections_remove(struct connections *connections, struct connection *connection);

void connections_set(struct connections *connections, struct connection *connection,
                     struct mono_time deadline);

size_t connections_count(struct connections *connections);

/* Shuts down those that are late; who reads or writes them closes them then. */
void connections_reap(struct connections *connections, struct mono_time now);

#endif
