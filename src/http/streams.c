/* SPDX-License-Identifier: Apache-2.0 */
#include "http/streams.h"

#include <poll.h>
#include <string.h>
#include <sys/types.h>

static const char heartbeat[] = ":\n\n"; /* a comment, which clients skip */
static const struct mono_time never = {INT64_MAX};
static const double last_s = 1.0; /* to take the end of a stream that the server ends */
enum { BLOCK_BYTES = 4096 };

void streams_init(struct streams *streams, struct connections *connections, double take_s)
{
    *streams = (struct streams){.connections = connections, .take_s = take_s};
    pthread_mutex_init(&streams->lock, NULL);
}

void streams_deinit(struct streams *streams)
{
    pthread_mutex_destroy(&streams->lock);
}

/* Call it with the lock. */
static void wake(struct stream_line *line)
{
    line->woken = true;
    if (!line->waits)
        return;
    line->waits = false;
    MHD_resume_connection(line->connection);
}

void serve_stream_wake(struct serve_stream *stream)
{
    struct stream_line *line = atomic_load(&stream->line);

    /* A stream that has not begun is pulled when it does. */
    if (line == NULL)
        return;
    pthread_mutex_lock(&line->streams->lock);
    wake(line);
    pthread_mutex_unlock(&line->streams->lock);
}

static double heartbeat_s(const struct stream_line *line)
{
    return line->stream->heartbeat_s > 0 ? line->stream->heartbeat_s : STREAM_HEARTBEAT_S;
}

/* Notes that the client gets something, which it must take in time. */
static ssize_t give(struct stream_line *line, ssize_t bytes)
{
    struct streams *streams = line->streams;
    struct mono_time now = mono_now();

    pthread_mutex_lock(&streams->lock);
    line->beat = mono_after_s(now, heartbeat_s(line));
    connections_set(streams->connections, line->row,
                    mono_after_s(now, streams->stopping ? last_s : streams->take_s));
    pthread_mutex_unlock(&streams->lock);
    return bytes;
}

/* Returns whether the stream goes on; a wake after this call is not lost. */
static bool begin_pull(struct stream_line *line, ssize_t *out_end)
{
    bool ends;

    pthread_mutex_lock(&line->streams->lock);
    line->woken = false;
    *out_end = line->gone ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    ends = line->gone || line->streams->stopping;
    pthread_mutex_unlock(&line->streams->lock);
    return !ends;
}

enum silence {
    SILENCE_SUSPENDED, /* nothing is sent until somebody wakes the stream */
    SILENCE_WOKEN,     /* somebody did since the last pull */
    SILENCE_TOO_LONG,  /* the heart must beat */
};

static enum silence begin_silence(struct stream_line *line)
{
    enum silence silence = SILENCE_SUSPENDED;

    pthread_mutex_lock(&line->streams->lock);
    if (line->beat.ns <= mono_now().ns)
        silence = SILENCE_TOO_LONG;
    else if (line->woken)
        silence = SILENCE_WOKEN;
    if (silence == SILENCE_SUSPENDED) {
        line->waits = true;
        connections_set(line->streams->connections, line->row, never);
        MHD_suspend_connection(line->connection);
    }
    pthread_mutex_unlock(&line->streams->lock);
    return silence;
}

/* The library asks for more once all it got before was written to the socket. */
static ssize_t pull(void *state, uint64_t position, char *bytes, size_t maximum)
{
    struct stream_line *line = state;
    enum silence silence = SILENCE_WOKEN;
    ssize_t end;
    long length;

    (void)position;
    while (silence == SILENCE_WOKEN) {
        if (!begin_pull(line, &end))
            return end;
        length = line->stream->pull(line->stream->self, bytes, maximum);
        if (length < 0)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (length > 0)
            return give(line, length);
        silence = begin_silence(line);
    }
    if (silence == SILENCE_SUSPENDED)
        return 0;
    memcpy(bytes, heartbeat, sizeof heartbeat - 1);
    return give(line, sizeof heartbeat - 1);
}

static void add_line(struct stream_line *line)
{
    struct streams *streams = line->streams;

    pthread_mutex_lock(&streams->lock);
    line->next = streams->first;
    if (line->next != NULL)
        line->next->previous = line;
    streams->first = line;
    pthread_mutex_unlock(&streams->lock);
}

struct MHD_Response *streams_begin(struct streams *streams, struct stream_line *line,
                                   struct serve_stream *stream, struct MHD_Connection *connection,
                                   struct connection *row)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, pull, line, NULL);

    if (response == NULL)
        return NULL;
    *line = (struct stream_line){.streams = streams, .stream = stream, .connection = connection, .row = row};
    line->beat = mono_after_s(mono_now(), heartbeat_s(line));
    add_line(line);
    atomic_store(&stream->line, line);
    return response;
}

void streams_end(struct stream_line *line, struct serve_stream *stream)
{
    struct streams *streams = line->streams;

    if (line->stream != NULL) {
        pthread_mutex_lock(&streams->lock);
        if (line->previous != NULL)
            line->previous->next = line->next;
        else
            streams->first = line->next;
        if (line->next != NULL)
            line->next->previous = line->previous;
        pthread_mutex_unlock(&streams->lock);
    }
    stream->end(stream->self);
}

/*
 * Nobody reads the socket of a suspended connection. A client that has shut down only its own
 * side counts as gone as well: over TCP nothing tells it from one that closed.
 */
static bool client_has_gone(const struct stream_line *line)
{
    struct pollfd polled = {.fd = line->row->fd, .events = POLLRDHUP};

    return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void streams_tick(struct streams *streams, struct mono_time now)
{
    pthread_mutex_lock(&streams->lock);
    for (struct stream_line *line = streams->first; line != NULL; line = line->next) {
        if (!line->waits)
            continue;
        line->gone = client_has_gone(line);
        if (line->gone || line->beat.ns <= now.ns)
            wake(line);
    }
    pthread_mutex_unlock(&streams->lock);
}

void streams_stop(struct streams *streams)
{
    struct mono_time last = mono_after_s(mono_now(), last_s);

    pthread_mutex_lock(&streams->lock);
    streams->stopping = true;
    for (struct stream_line *line = streams->first; line != NULL; line = line->next) {
        connections_set(streams->connections, line->row, last);
        wake(line);
    }
    pthread_mutex_unlock(&streams->lock);
}
