/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_STREAM_H
#define FLYBALL_HTTP_STREAM_H

#include <stdatomic.h>
#include <stddef.h>

/*
 * An answer without an end: server-sent events, of type text/event-stream.
 *
 *     struct events {
 *         struct serve_stream stream;
 *         ... where the client is ...
 *     };
 *     events->stream = (struct serve_stream){.pull = pull, .end = end, .self = events};
 *     task->answer.stream = &events->stream;
 *     task->finish(task);
 *     ... whenever there is something new ...
 *     serve_stream_wake(&events->stream);
 *
 * A stream belongs to the server from `finish` until the server calls `end`, which it does once:
 * the client has gone, took too long to take what it was sent, or `pull` said so, or the server
 * was quiesced, or it could not send the answer at all (a HEAD request gets no stream).
 *
 * A client that takes nothing delays no other: it is simply not pulled, until it takes what it was
 * given or is closed after request_timeout_s. What it misses meanwhile is the back's business.
 */
struct serve_stream {
    /*
     * Writes up to `maximum` (64 or more) bytes of events, each ended by an empty line, and returns
     * how many. An event may be cut, and goes on at the next pull. 0: there is nothing yet; only
     * between two events. Negative: the stream ends here. Must not block. The thread that serves the
     * connection calls it.
     */
    long (*pull)(void *self, char *bytes, size_t maximum);

    /* The server does not touch the stream any more. Must not block. */
    void (*end)(void *self);

    void *self;
    double heartbeat_s; /* a silent stream gets a comment each time this has passed; 0: STREAM_HEARTBEAT_S */
    _Atomic(void *) line; /* the server's; begin with NULL */
};

enum { STREAM_HEARTBEAT_S = 15 };

/*
 * Has a stream pulled again that had nothing. Wakes are never lost, and cost little. Any thread;
 * must not be called after `end` has returned, so guard both by the same lock. May be called from
 * before `finish` on, and while `pull` runs; not from `pull` and `end` themselves.
 */
void serve_stream_wake(struct serve_stream *stream);

#endif
