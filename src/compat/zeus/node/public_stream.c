/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power as server-sent events, one for each sample that differs from the one before:
 *
 *     data: {"timestamp_ms":1795528406307,"gpu_id":0,"power_mw":57676}
 *
 * A stream begins with the newest sample. There are no ids and no heartbeats, as in that daemon.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "compat/zeus/node/public_private.h"
#include "shapes/shape_rows.h"

static const double never_s = 1e9;

/* ---- of GPUs ---- */

/* What a client was told last, of each GPU; -1: nothing. */
struct gpu_state {
    int64_t power_mw[WATCH_GPUS_MAX];
};

struct gpu_event {
    int64_t timestamp_ms;
    uint64_t gpu_id, power_mw;
};
static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(gpu_event, timestamp_ms), SHAPE_IS_TIME},
    {SHAPE_AT(gpu_event, gpu_id), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(gpu_event, power_mw), SHAPE_IS_U64(0, INT64_MAX)},
};
static const struct shape gpu_shape = {SHAPE_OF(gpu_event, gpu_rows)};

static void put_event(const struct shape *shape, const void *from, struct buffer *events)
{
    buffer_puts(events, "data: ");
    shape_put(shape, from, SHAPE_COMPACT, events, NULL);
    buffer_puts(events, "\n\n");
}

static void put_gpu(struct watch *watch, void *state, const struct watch_sample *sample,
                    struct buffer *events)
{
    int64_t *last_mw = &((struct gpu_state *)state)->power_mw[sample->gpu];
    struct gpu_event event = {.timestamp_ms = sample->unix_ms};
    struct device_info info;

    if (public_power_mw(sample, &event.power_mw, NULL) < 0 || (int64_t)event.power_mw == *last_mw)
        return;
    *last_mw = (int64_t)event.power_mw;
    watch_gpu_info(watch, sample->gpu, &info);
    event.gpu_id = info.index;
    put_event(&gpu_shape, &event, events);
}

/* Finds the places of the GPUs that are asked for and may be read; false if the answer is made. */
static bool take_gpus(struct public_exchange *exchange, uint64_t *out_gpus)
{
    const struct node_public_options *options = &exchange->public->options;
    struct public_query *query = &exchange->query;

    public_all_gpus(exchange, query);
    for (size_t i = 0; i < query->id_count; i++) {
        int gpu = public_find_gpu(options->watch, query->ids[i]);
        struct rights_decision decision = {.may_read = false};

        if (gpu >= 0)
            admit_decide(options->admit, exchange->request, (size_t)gpu, &decision);
        if (decision.may_read)
            *out_gpus |= UINT64_C(1) << gpu;
        else
            public_fail(&exchange->failures, query->ids[i], gpu < 0 ? PUBLIC_BAD : PUBLIC_FORBIDDEN,
                        gpu < 0 ? "there is no such GPU" : decision.why);
    }
    return !public_answer_failures(exchange);
}

static void open_stream(struct public_exchange *exchange, struct sample_stream_options *stream)
{
    const struct node_public_options *options = &exchange->public->options;
    struct fly_error error;

    stream->watch = options->watch;
    stream->after = sample_stream_newest(options->watch, stream->gpus, stream->cpus);
    stream->heartbeat_s = never_s;
    stream->is_over = admit_is_renewed;
    stream->is_over_self = options->admit;
    exchange->answer->status = PUBLIC_OK;
    if (sample_stream_open(options->streams, stream, &exchange->answer->stream, &error) < 0)
        public_refuse(exchange->answer, PUBLIC_FAILED, error.text);
}

void public_stream_gpus(struct public_exchange *exchange)
{
    struct gpu_state state;
    struct sample_stream_options stream = {.put = put_gpu,
                                           .state = &state,
                                           .state_bytes = sizeof state,
                                           .since = admit_renewals(exchange->public->options.admit)};

    memset(state.power_mw, -1, sizeof state.power_mw);
    if (take_gpus(exchange, &stream.gpus))
        open_stream(exchange, &stream);
}

/* ---- of CPUs ---- */

struct cpu_state {
    size_t count;
    struct public_cpu cpus[WATCH_CPUS_MAX];
    int64_t cpu_mw[WATCH_CPUS_MAX], dram_mw[WATCH_CPUS_MAX]; /* told last; -1: nothing */
};

struct cpu_event {
    int64_t timestamp_ms;
    uint64_t cpu_id;
    int64_t cpu_mw, dram_mw; /* -1: unknown */
};
static const struct shape_field cpu_rows[] = {
    {SHAPE_AT(cpu_event, timestamp_ms), SHAPE_IS_TIME},
    {SHAPE_AT(cpu_event, cpu_id), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(cpu_event, cpu_mw), .kind = SHAPE_I64, .most = INT64_MAX},
    {SHAPE_AT(cpu_event, dram_mw), .kind = SHAPE_I64, .most = INT64_MAX, .null = SHAPE_BELOW_0},
};
static const struct shape cpu_shape = {SHAPE_OF(cpu_event, cpu_rows)};

static void put_cpu(struct watch *watch, void *state, const struct watch_sample *sample,
                    struct buffer *events)
{
    struct cpu_state *told = state;
    struct cpu_event event = {
        .timestamp_ms = sample->unix_ms, .cpu_mw = public_mean_mw(sample), .dram_mw = -1};
    struct watch_sample memory;
    size_t at = 0;

    while (at < told->count && told->cpus[at].cpu != sample->gpu)
        at++;
    if (at == told->count || event.cpu_mw < 0)
        return;
    if (told->cpus[at].dram >= 0 && watch_latest(watch, (size_t)told->cpus[at].dram, &memory, NULL) == 0)
        event.dram_mw = public_mean_mw(&memory);
    if (event.cpu_mw == told->cpu_mw[at] && event.dram_mw == told->dram_mw[at])
        return;
    told->cpu_mw[at] = event.cpu_mw;
    told->dram_mw[at] = event.dram_mw;
    event.cpu_id = told->cpus[at].id;
    put_event(&cpu_shape, &event, events);
}

void public_stream_cpus(struct public_exchange *exchange)
{
    struct cpu_state state = {.count = 0};
    struct sample_stream_options stream = {.put = put_cpu,
                                           .state = &state,
                                           .state_bytes = sizeof state,
                                           .since = admit_renewals(exchange->public->options.admit)};

    if (!public_take_cpus(exchange, state.cpus, &state.count))
        return;
    memset(state.cpu_mw, -1, sizeof state.cpu_mw);
    memset(state.dram_mw, -1, sizeof state.dram_mw);
    for (size_t i = 0; i < state.count; i++)
        stream.cpus |= UINT64_C(1) << (state.cpus[i].cpu - WATCH_CPU_FIRST);
    open_stream(exchange, &stream);
}
