/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

void connections_init(struct connections *connections)
{
    connections->first = NULL;
    connections->count = 0;
    pthread_mutex_init(&connections->lock, NULL);
}

void connections_deinit(struct connections *connections)
{
    while (connections->first != NULL)
        connections_remove(connections, connections->first);
    pthread_mutex_destroy(&connections->lock);
}

struct connection *connections_add(struct connections *connections, int fd, struct mono_time deadline,
                                   void *owner)
{
    struct connection *made = calloc(1, sizeof *made);

    if (made == NULL)
        return NULL;
    made->fd = fd;
    made->deadline = deadline;
    made->owner = owner;
    made->peer = SERVE_PEER_UNKNOWN;
    pthread_mutex_lock(&connections->lock);
    made->next = connections->first;
    if (made->next != NULL)
        made->next->previous = made;
    connections->first = made;
    connections->count++;
    pthread_mutex_unlock(&connections->lock);
    return made;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
    pthread_mutex_lock(&connections->lock);
    connections->count--;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        connections->first = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    pthread_mutex_unlock(&connections->lock);
    free(connection);
}

void connections_set(struct connections *connections, struct connection *connection,
                     struct mono_time deadline)
{
    pthread_mutex_lock(&connections->lock);
    connection->deadline = deadline;
    pthread_mutex_unlock(&connections->lock);
}

size_t connections_count(struct connections *connections)
{
    size_t count;

    pthread_mutex_lock(&connections->lock);
    count = connections->count;
    pthread_mutex_unlock(&connections->lock);
    return count;
}

void connections_reap(struct connections *connections, struct mono_time now)
{
    pthread_mutex_lock(&connections->lock);
    for (struct connection *at = connections->first; at != NULL; at = at->next) {
        if (at->deadline.ns > now.ns)
            continue;
        shutdown(at->fd, SHUT_RDWR);
        at->deadline.ns = INT64_MAX;
    }
    pthread_mutex_unlock(&connections->lock);
}
