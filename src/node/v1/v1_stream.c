/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/stream: each sample of each GPU as a server-sent event, from the watch's bounded ring.
 *
 *     id: 4711
 *     event: gpu
 *     data: {"gpu":0,"figures":{...}}
 *
 * A client that comes back with Last-Event-ID goes on where it was. Whoever is slower than the ring
 * loses the oldest events and is told so: event "lost", data {"events":12}.
 */
#include "base/error.h"
#include "base/number.h"
#include "node/stream/sample_stream.h"
#include "node/v1/v1_events.h"
#include "node/v1/v1_private.h"
#include "shapes/shape_rows.h"

struct v1_event {
    uint64_t gpu;
    struct v1_figures *figures;
};
static const struct shape_field event_rows[] = {
    {SHAPE_AT(v1_event, gpu), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(v1_event, figures), .kind = SHAPE_POINTED, .shape = &shape_v1_figures},
};
static const struct shape shape_v1_event = {SHAPE_OF(v1_event, event_rows)};

static void write_event(struct watch *watch, const struct watch_sample *sample, struct buffer *events)
{
    struct v1_figures figures;
    struct device_info info;

    v1_figures_of(sample, &figures);
    watch_gpu_info(watch, sample->gpu, &info);
    buffer_printf(events, "id: %llu\nevent: gpu\ndata: ", (unsigned long long)sample->id);
    shape_put(&shape_v1_event, &(struct v1_event){info.index, &figures}, SHAPE_SPARE_ASCII, events, NULL);
    buffer_puts(events, "\n\n");
}

/* The first client who gets a sample has its event written. */
static void put_sample(struct watch *watch, void *state, const struct watch_sample *sample,
                       struct buffer *events)
{
    struct node_v1 *v1 = *(struct node_v1 **)state;
    size_t begin = events->length;

    if (v1_events_take(v1->events, sample->id, events))
        return;
    write_event(watch, sample, events);
    if (events->error == 0)
        v1_events_keep(v1->events, sample->id, events->data + begin, events->length - begin);
}

static void put_lost(uint64_t count, struct buffer *events)
{
    buffer_printf(events, "event: lost\ndata: {\"events\":%llu}\n\n", (unsigned long long)count);
}

static int read_start(struct v1_exchange *exchange, uint64_t *out_after)
{
    const char *asked = exchange->request->last_event_id;

    if (asked == NULL)
        asked = serve_query(exchange->request, "after");
    *out_after = sample_stream_newest(exchange->v1->options.watch, UINT64_MAX, 0);
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
    const struct node_v1_options *options = &exchange->v1->options;
    struct sample_stream_options stream = {.watch = options->watch,
                                           .put = put_sample,
                                           .lost = put_lost,
                                           .state = &exchange->v1,
                                           .state_bytes = sizeof exchange->v1,
                                           .is_over = admit_is_renewed,
                                           .is_over_self = options->admit,
                                           .since = admit_renewals(options->admit)};
    int code = read_start(exchange, &stream.after);

    if (code == 0)
        code = read_gpus(exchange, &stream.gpus);
    if (code == 0)
        code = sample_stream_open(options->streams, &stream, &exchange->answer->stream, &exchange->error);
    if (code == 0)
        exchange->answer->status = 200;
    return code;
}
