/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/stream: each sample of each GPU as a server-sent event, from the watch's bounded ring.
 *
 *     id: 4711
 *     event: gpu
 *     data: {"gpu":0,"figures":{...}}
 *
 * A client that comes back with Last-Event-ID goes on where it was. Whoever is slower than the ring
 * loses the oldest events and is told so: event "lost", data {"events":12}. Streams are linked and
 * woken by the thread that reads the GPUs; each client's own thread of the server pulls.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "http/stream.h"
#include "node/v1/v1_private.h"
#include "shapes/shape_rows.h"

enum { BATCH = 64, PENDING_MAX = 1 << 20 };

struct v1_streams {
    pthread_mutex_t lock;
    struct v1_stream *first;
};

/* One client. Only its thread of the server touches what stands below `next`. */
struct v1_stream {
    struct serve_stream stream;
    struct v1_streams *of;
    struct watch *watch;
    struct v1_stream *before, *next; /* guarded by the lock */
    uint64_t gpus;                   /* that the client may read and asked for */
    uint64_t after;                  /* the last sample that was written */
    struct buffer pending;           /* events that were written and not yet taken */
    size_t taken;
};

struct v1_event {
    uint64_t gpu;
    struct v1_figures *figures;
};
static const struct shape_field event_rows[] = {
    {SHAPE_AT(v1_event, gpu), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(v1_event, figures), .kind = SHAPE_POINTED, .shape = &shape_v1_figures},
};
static const struct shape shape_v1_event = {SHAPE_OF(v1_event, event_rows)};

int v1_streams_new(struct v1_streams **out_streams, struct fly_error *out_error)
{
    struct v1_streams *streams = calloc(1, sizeof *streams);

    if (streams == NULL)
        return error_no_memory(out_error);
    pthread_mutex_init(&streams->lock, NULL);
    *out_streams = streams;
    return 0;
}

void v1_streams_free(struct v1_streams *streams)
{
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

void v1_streams_wake(struct v1_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    for (struct v1_stream *at = streams->first; at != NULL; at = at->next)
        serve_stream_wake(&at->stream);
    pthread_mutex_unlock(&streams->lock);
}

static void link_stream(struct v1_stream *stream)
{
    struct v1_streams *streams = stream->of;

    pthread_mutex_lock(&streams->lock);
    stream->next = streams->first;
    if (stream->next != NULL)
        stream->next->before = stream;
    streams->first = stream;
    pthread_mutex_unlock(&streams->lock);
}

static void end_stream(void *self)
{
    struct v1_stream *stream = self;

    pthread_mutex_lock(&stream->of->lock);
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

static void put_sample(struct v1_stream *stream, const struct watch_sample *sample)
{
    struct v1_figures figures;
    struct device_info info;

    if ((stream->gpus >> sample->gpu & 1) == 0)
        return;
    v1_figures_of(sample, &figures);
    watch_gpu_info(stream->watch, sample->gpu, &info);
    buffer_printf(&stream->pending, "id: %llu\nevent: gpu\ndata: ", (unsigned long long)sample->id);
    shape_put(&shape_v1_event, &(struct v1_event){info.index, &figures}, SHAPE_SPARE_ASCII, &stream->pending,
              NULL);
    buffer_puts(&stream->pending, "\n\n");
}

/* Writes the next samples; returns whether there is anything to send. */
static bool fill(struct v1_stream *stream)
{
    struct watch_sample samples[BATCH];
    uint64_t lost = 0;
    size_t count;

    buffer_clear(&stream->pending);
    stream->taken = 0;
    do {
        count = watch_since(stream->watch, stream->after, samples, BATCH, &lost);
        if (lost > 0)
            buffer_printf(&stream->pending, "event: lost\ndata: {\"events\":%llu}\n\n",
                          (unsigned long long)lost);
        for (size_t i = 0; i < count; i++)
            put_sample(stream, &samples[i]);
        if (count > 0)
            stream->after = samples[count - 1].id;
    } while (count == BATCH && stream->pending.length == 0);
    return stream->pending.length > 0;
}

static long pull(void *self, char *bytes, size_t maximum)
{
    struct v1_stream *stream = self;
    size_t left;

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

/* The sample before the newest ones: a new client begins with one of each GPU. */
static uint64_t newest(struct watch *watch)
{
    size_t count = watch_gpu_count(watch);
    uint64_t oldest = UINT64_MAX;

    for (size_t gpu = 0; gpu < count; gpu++) {
        struct watch_sample sample;

        if (watch_latest(watch, gpu, &sample, NULL) == 0 && sample.id < oldest)
            oldest = sample.id;
    }
    return oldest == UINT64_MAX || oldest == 0 ? 0 : oldest - 1;
}

static int read_start(struct v1_exchange *exchange, uint64_t *out_after)
{
    const char *asked = exchange->request->last_event_id;

    if (asked == NULL)
        asked = serve_query(exchange->request, "after");
    *out_after = newest(exchange->v1->options.watch);
    if (asked == NULL || number_parse_u64(asked, INT64_MAX, out_after))
        return 0;
    return error_set(&exchange->error, FLY_EUSAGE, "'after' and Last-Event-ID take the number of an event");
}

/* Finds the GPUs that the caller asked for and may read. */
static int read_gpus(struct v1_exchange *exchange, uint64_t *out_gpus)
{
    const struct node_v1_options *options = &exchange->v1->options;
    const char *asked = serve_query(exchange->request, "gpu");
    size_t count = watch_gpu_count(options->watch), only = 0;
    struct rights_decision decision = {.may_read = false};
    int code = asked != NULL ? v1_find_gpu(exchange, asked, &only) : 0;

    if (code < 0)
        return code;
    for (size_t gpu = 0; gpu < count && gpu < LEASE_GPUS_MAX; gpu++) {
        if (asked != NULL && gpu != only)
            continue;
        admit_decide(options->admit, exchange->request, gpu, &decision);
        *out_gpus |= decision.may_read ? UINT64_C(1) << gpu : 0;
    }
    if (*out_gpus == 0 && count > 0)
        return error_set(&exchange->error, FLY_EPERM, "%s", decision.why);
    return 0;
}

int v1_open_stream(struct v1_exchange *exchange)
{
    struct v1_stream *stream;
    uint64_t after = 0, gpus = 0;
    int code = read_start(exchange, &after);

    if (code == 0)
        code = read_gpus(exchange, &gpus);
    if (code < 0)
        return code;
    stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return error_no_memory(&exchange->error);
    stream->of = exchange->v1->streams;
    stream->watch = exchange->v1->options.watch;
    stream->gpus = gpus;
    stream->after = after;
    buffer_init(&stream->pending, PENDING_MAX);
    stream->stream.pull = pull;
    stream->stream.end = end_stream;
    stream->stream.self = stream;
    link_stream(stream);
    exchange->answer->status = 200;
    exchange->answer->stream = &stream->stream;
    return 0;
}
