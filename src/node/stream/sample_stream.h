/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_STREAM_SAMPLE_STREAM_H
#define FLYBALL_NODE_STREAM_SAMPLE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "http/stream.h"
#include "node/watch/watch.h"

/*
 * Streams of the watch's samples, for all families of routes: each client goes through the watch's bounded
 * ring on its own, and what a sample looks like is its family's.
 *
 *     sample_stream_open(streams, &options, &answer->stream, out_error);
 *     ... after each sample ...
 *     sample_streams_wake(streams);
 *
 * Who is slower than the ring loses the oldest samples, and `lost` is told how many. A thread of this room
 * wakes the streams, 32 every two milliseconds, so that requests are answered between them; the server's
 * thread pulls. Thread-safe but for the end.
 */
struct sample_streams;

/* FLY_ENOMEM. */
int sample_streams_new(struct sample_streams **out_streams, struct fly_error *out_error);

/* All streams must have ended. Accepts NULL. */
void sample_streams_free(struct sample_streams *streams);

/* Tells all streams that there is a new sample. Any thread. */
void sample_streams_wake(struct sample_streams *streams);

struct sample_stream_options {
    struct watch *watch; /* borrowed */
    uint64_t gpus;       /* places that the client gets: bit N is place N */
    uint64_t cpus;       /* bit N is place WATCH_CPU_FIRST + N */
    uint64_t after;      /* the sample after which it begins */
    double heartbeat_s;  /* as in struct serve_stream */

    /* Writes the event of a sample; `state` is the client's own. Must not block. */
    void (*put)(struct watch *watch, void *state, const struct watch_sample *sample, struct buffer *events);
    void (*lost)(uint64_t count, struct buffer *events); /* NULL: nothing is said */
    const void *state;                                   /* copied; NULL with 0 bytes */
    size_t state_bytes;

    /* Returns whether what was decided when the stream was opened is no longer so; the stream ends then. */
    bool (*is_over)(void *self, uint64_t since);
    void *is_over_self; /* borrowed */
    uint64_t since;
};

/* Opens a stream, which the server ends. FLY_ENOMEM. */
int sample_stream_open(struct sample_streams *streams, const struct sample_stream_options *options,
                       struct serve_stream **out_stream, struct fly_error *out_error);

/*
 * Returns the number of the sample before the newest ones of these places, as in the options: a new client
 * begins with one of each.
 */
uint64_t sample_stream_newest(struct watch *watch, uint64_t gpus, uint64_t cpus);

#endif
