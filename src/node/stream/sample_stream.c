/* SPDX-License-Identifier: Apache-2.0 */
#include "node/stream/sample_stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/pool.h"
#include "base/wait.h"

enum { BATCH = 64, PENDING_MAX = 1 << 20, AT_ONCE = 32 };
static const double pause_s = 0.002; /* after so many at once */

/* A thread of its own wakes streams, some at a time: the server's thread has other clients to answer. */
struct sample_streams {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pool pool; /* of its thread */
    bool news, closing;
    struct sample_stream *first, *next; /* next: to be woken; NULL: all were */
};

/* One client. Only its thread of the server touches what stands below `next`. */
struct sample_stream {
    struct serve_stream stream;
    struct sample_streams *of;
    struct sample_stream_options options;
    struct sample_stream *before, *next; /* guarded by the lock */
    uint64_t after;                      /* the last sample that was written */
    struct buffer pending;               /* events that were written and not yet taken */
    size_t taken;
    max_align_t state[];
};

static void streams_deinit(struct sample_streams *streams)
{
    pthread_cond_destroy(&streams->changed);
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

/* Under the lock. */
static void wake_some(struct sample_streams *streams)
{
    for (int i = 0; i < AT_ONCE && streams->next != NULL; i++) {
        serve_stream_wake(&streams->next->stream);
        streams->next = streams->next->next;
    }
}

static void *wake_all(void *state)
{
    struct sample_streams *streams = state;

    pthread_mutex_lock(&streams->lock);
    while (!streams->closing) {
        struct mono_time until;

        if (streams->next == NULL && !streams->news) {
            pthread_cond_wait(&streams->changed, &streams->lock);
            continue;
        }
        if (streams->next == NULL) {
            streams->news = false;
            streams->next = streams->first;
        }
        wake_some(streams);
        until = mono_after_s(mono_now(), pause_s);
        while (streams->next != NULL && !streams->closing &&
               mono_wait(&streams->changed, &streams->lock, until))
            ;
    }
    pthread_mutex_unlock(&streams->lock);
    return NULL;
}

int sample_streams_new(struct sample_streams **out_streams, struct fly_error *out_error)
{
    struct sample_streams *streams = calloc(1, sizeof *streams);

    if (streams == NULL)
        return error_no_memory(out_error);
    pthread_mutex_init(&streams->lock, NULL);
    mono_cond_init(&streams->changed);
    if (pool_add(&streams->pool, 0, wake_all, streams) != 0) {
        streams_deinit(streams);
        return error_set(out_error, FLY_ENOMEM, "cannot start the thread that wakes streams");
    }
    *out_streams = streams;
    return 0;
}

void sample_streams_free(struct sample_streams *streams)
{
    if (streams == NULL)
        return;
    pthread_mutex_lock(&streams->lock);
    streams->closing = true;
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
    pool_join(&streams->pool);
    streams_deinit(streams);
}

void sample_streams_wake(struct sample_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    streams->news = true;
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
}

static void link_stream(struct sample_stream *stream)
{
    struct sample_streams *streams = stream->of;

    pthread_mutex_lock(&streams->lock);
    stream->next = streams->first;
    if (stream->next != NULL)
        stream->next->before = stream;
    streams->first = stream;
    pthread_mutex_unlock(&streams->lock);
}

static void end_stream(void *self)
{
    struct sample_stream *stream = self;

    pthread_mutex_lock(&stream->of->lock);
    if (stream->of->next == stream)
        stream->of->next = stream->next;
    if (stream->before != NULL)
        stream->before->next = stream->next;
    else
        stream->of->first = stream->next;
    if (stream->next != NULL)
        stream->next->before = stream->before;
    pthread_mutex_unlock(&stream->of->lock);
    buffer_deinit(&stream->pending);
    free(stream);
}

static bool is_wanted(const struct sample_stream_options *options, size_t place)
{
    if (place < WATCH_CPU_FIRST)
        return (options->gpus >> place & 1) != 0;
    return (options->cpus >> (place - WATCH_CPU_FIRST) & 1) != 0;
}

/* Writes the next samples; returns whether there is anything to send. */
static bool fill(struct sample_stream *stream)
{
    const struct sample_stream_options *options = &stream->options;
    struct watch_sample samples[BATCH];
    uint64_t lost = 0;
    size_t count;

    buffer_clear(&stream->pending);
    stream->taken = 0;
    do {
        count = watch_since(options->watch, stream->after, samples, BATCH, &lost);
        if (lost > 0 && options->lost != NULL)
            options->lost(lost, &stream->pending);
        for (size_t i = 0; i < count; i++) {
            if (is_wanted(options, samples[i].gpu))
                options->put(options->watch, stream->state, &samples[i], &stream->pending);
        }
        if (count > 0)
            stream->after = samples[count - 1].id;
    } while (count == BATCH && stream->pending.length == 0);
    return stream->pending.length > 0;
}

static long pull(void *self, char *bytes, size_t maximum)
{
    struct sample_stream *stream = self;
    size_t left;

    if (stream->options.is_over(stream->options.is_over_self, stream->options.since))
        return -1;
    if (stream->taken == stream->pending.length && !fill(stream))
        return 0;
    if (stream->pending.error < 0)
        return -1;
    left = stream->pending.length - stream->taken;
    left = left < maximum ? left : maximum;
    memcpy(bytes, stream->pending.data + stream->taken, left);
    stream->taken += left;
    return (long)left;
}

int sample_stream_open(struct sample_streams *streams, const struct sample_stream_options *options,
                       struct serve_stream **out_stream, struct fly_error *out_error)
{
    struct sample_stream *stream = calloc(1, sizeof *stream + options->state_bytes);

    if (stream == NULL)
        return error_no_memory(out_error);
    stream->of = streams;
    stream->options = *options;
    stream->after = options->after;
    if (options->state_bytes > 0)
        memcpy(stream->state, options->state, options->state_bytes);
    buffer_init(&stream->pending, PENDING_MAX);
    stream->stream = (struct serve_stream){
        .pull = pull, .end = end_stream, .self = stream, .heartbeat_s = options->heartbeat_s};
    link_stream(stream);
    *out_stream = &stream->stream;
    return 0;
}

uint64_t sample_stream_newest(struct watch *watch, uint64_t gpus, uint64_t cpus)
{
    const struct sample_stream_options wanted = {.gpus = gpus, .cpus = cpus};
    size_t end = WATCH_CPU_FIRST + watch_cpu_count(watch);
    uint64_t oldest = UINT64_MAX;

    for (size_t place = 0; place < end; place++) {
        struct watch_sample sample;

        if (is_wanted(&wanted, place) && watch_latest(watch, place, &sample, NULL) == 0 && sample.id < oldest)
            oldest = sample.id;
    }
    return oldest == UINT64_MAX || oldest == 0 ? 0 : oldest - 1;
}
