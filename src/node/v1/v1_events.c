/* SPDX-License-Identifier: Apache-2.0 */
#include "node/v1/v1_events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { EVENTS = 128, EVENT_BYTES = 512 };

/* An event's place is its number's remainder, so that a newer one takes the place of an older. */
struct v1_events {
    pthread_mutex_t lock;
    struct {
        uint64_t id; /* 0: empty */
        size_t length;
        char text[EVENT_BYTES];
    } places[EVENTS];
};

int v1_events_new(struct v1_events **out_events, struct fly_error *out_error)
{
    struct v1_events *events = calloc(1, sizeof *events);

    if (events == NULL)
        return error_no_memory(out_error);
    pthread_mutex_init(&events->lock, NULL);
    *out_events = events;
    return 0;
}

void v1_events_free(struct v1_events *events)
{
    if (events == NULL)
        return;
    pthread_mutex_destroy(&events->lock);
    free(events);
}

bool v1_events_take(struct v1_events *events, uint64_t id, struct buffer *text)
{
    size_t place = id % EVENTS;
    bool found;

    pthread_mutex_lock(&events->lock);
    found = events->places[place].id == id;
    if (found)
        buffer_append(text, events->places[place].text, events->places[place].length);
    pthread_mutex_unlock(&events->lock);
    return found;
}

void v1_events_keep(struct v1_events *events, uint64_t id, const char *bytes, size_t length)
{
    size_t place = id % EVENTS;

    if (length > EVENT_BYTES)
        return;
    pthread_mutex_lock(&events->lock);
    if (events->places[place].id < id) {
        events->places[place].id = id;
        events->places[place].length = length;
        memcpy(events->places[place].text, bytes, length);
    }
    pthread_mutex_unlock(&events->lock);
}
