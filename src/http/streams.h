/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_STREAMS_H
#define FLYBALL_HTTP_STREAMS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "http/connections.h"
#include "http/stream.h"

/*
 * The streams that a server sends now (stream.h). A stream that has nothing to say suspends its
 * connection, which then costs nothing, until somebody wakes it, its heartbeat is due, its client
 * closes, or the server is quiesced. Thread-safe unless said otherwise.
 */
struct streams {
    pthread_mutex_t lock;
    struct stream_line *first;
    struct connections *connections; /* borrowed */
    double take_s;                   /* a client must take what it was sent within this time */
    bool stopping;
};

/* One stream on its way to its client. Its owner, the request, keeps it in place. */
struct stream_line {
    struct streams *streams;
    struct serve_stream *stream; /* NULL: this request has none */
    struct MHD_Connection *connection;
    struct connection *row;
    bool waits; /* its connection is suspended */
    bool woken; /* somebody wants it pulled */
    bool gone;  /* its client has closed */
    struct mono_time beat;
    struct stream_line *previous, *next;
};

void streams_init(struct streams *streams, struct connections *connections, double take_s);
void streams_deinit(struct streams *streams); /* all streams have ended */

/*
 * Makes the answer that sends a stream to the connection of a row; NULL without memory. The line
 * must stay until streams_end, and the caller owns the response. Call it and the next from the
 * thread that serves the connection.
 */
struct MHD_Response *streams_begin(struct streams *streams, struct stream_line *line,
                                   struct serve_stream *stream, struct MHD_Connection *connection,
                                   struct connection *row);

/* Ends the stream, also one that never began. */
void streams_end(struct stream_line *line, struct serve_stream *stream);

/* Lets hearts beat, and ends streams whose client has closed. A few times a second. */
void streams_tick(struct streams *streams, struct mono_time now);

/* Ends all streams, also those that begin later. A client that takes nothing is closed soon. */
void streams_stop(struct streams *streams);

#endif
