/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to the daemon's own interface, over made-up GPUs that cannot be turned:
 *
 *     W POST /v1/leases            who asks (below), method, path, ?name=value&...
 *     4711                         Last-Event-ID, or nothing
 *     {"gpus": ["0"], ...}         the body
 *
 * Every request is answered in the documented form, and a stream of events has only whole ones.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fuzz.h"
#include "node/stream/sample_stream.h"
#include "node/v1/node_v1.h"
#include "node/v1/v1_shapes.h"
#include "shapes/shape_rows.h"

enum { HEAD_MAX = 4096, ANSWER_MAX = 4 << 20, PULL_BYTES = 300, PULLS = 200, GPUS = 2 };

/* ---- a daemon ---- */

static void read_gpu(const struct device *device, quantity_set wanted, struct reading *values)
{
    (void)device;
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    values[QUANTITY_ENERGY] = (struct reading){.value = 1000, .state = READING_OK};
    values[QUANTITY_POWER_LIMIT_MIN] = (struct reading){.value = 100000, .state = READING_OK};
    values[QUANTITY_POWER_LIMIT_MAX] = (struct reading){.value = 400000, .state = READING_OK};
}

static void close_gpu(struct device *device)
{
    (void)device;
}

static const struct device_backend backend = {
    .name = "made-up", .kind = DEVICE_GPU, .close = close_gpu, .read = read_gpu};

static int open_list(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error)
{
    (void)options;
    memset(out_list, 0, sizeof *out_list);
    for (unsigned i = 0; i < GPUS; i++) {
        struct device_info info = {.kind = DEVICE_GPU, .name = "Made \"up\"", .index = i, .minor = (int)i};

        snprintf(info.uuid, sizeof info.uuid, "GPU-%u", i);
        snprintf(info.pci, sizeof info.pci, "00000000:0%u:00.0", i);
        if (device_list_add(out_list, &backend, &info, NULL, out_error) < 0)
            return out_error->code;
    }
    return 0;
}

static int borrow(void *devices, size_t gpu, const struct device **out_device, struct fly_error *out_error)
{
    (void)devices;
    (void)out_device;
    return error_set(out_error, FLY_EUNSUPPORTED, "GPU %zu cannot be turned", gpu);
}

static void give_back(void *devices, size_t gpu)
{
    (void)devices;
    (void)gpu;
}

static int release(void *daemon, double most_s, struct fly_error *out_error)
{
    (void)daemon;
    FUZZ_CHECK(most_s > 0);
    return error_set(out_error, FLY_EBUSY, "a driver has not answered within %g s", most_s);
}

static int resume(void *daemon, struct fly_error *out_error)
{
    (void)daemon;
    (void)out_error;
    return 0;
}

/* Opened with the first input, for all. */
static struct node_v1 *open_v1(void)
{
    static const struct watch_options watch_options = {.poll_s = 60, .ring = 64, .open_list = open_list};
    static const struct knob_options knob = {.program = "fuzz"};
    static const struct rights_rule rules[] = {
        {.who = RIGHTS_USER, .id = 1000, .gpu = "1", .scopes = RIGHTS_CONTROL | RIGHTS_OVERRULE},
        {.who = RIGHTS_ANYONE, .gpu = "*", .floor.share = 0.5, .ceiling.power_w = 300}};
    static const struct admit_rules all = {
        .rules = rules, .rule_count = 2, .proof = true, .contained = true, .readonly_path = "/none"};
    struct leases_options leases_options = {.gpu_count = GPUS,
                                            .borrow = borrow,
                                            .give_back = give_back,
                                            .knob = &knob,
                                            .table = {.maximum = 4, .per_user = 2}};
    struct node_v1_options options = {.leased = GPUS, .release = release, .resume = resume};
    struct node_v1 *v1;

    FUZZ_CHECK(watch_open(&watch_options, &options.watch, NULL) == 0);
    FUZZ_CHECK(admit_open(options.watch, &all, &options.admit, NULL) == 0);
    FUZZ_CHECK(leases_open(&leases_options, &options.leases, NULL) == 0);
    FUZZ_CHECK(sample_streams_new(&options.streams, NULL) == 0);
    FUZZ_CHECK(node_v1_open(&options, &v1, NULL) == 0);
    return v1;
}

/* ---- who asks ---- */

static void take_caller(char who, struct serve_request *request)
{
    request->peer = (struct serve_peer){.connection = 1,
                                        .local = true,
                                        .pid = getpid(),
                                        .uid = geteuid(),
                                        .gid = getegid(),
                                        .same_namespaces = true};
    if (who == 'U')
        request->peer.uid = 1000;
    if (who == 'C')
        request->peer.same_namespaces = false;
    if (who == 'P')
        request->peer = (struct serve_peer){
            .connection = 2, .local = true, .pid = getpid(), .uid = 1001, .minors = {1}, .minor_count = 1};
    if (who == 'T' || who == 'N')
        request->peer = SERVE_PEER_UNKNOWN;
    if (who == 'T') {
        request->caller_name = "a-token";
        request->scope = SERVE_TRAIN;
    }
}

/* Cuts "METHOD path?name=value&..." in place. */
static void read_head(char *head, struct serve_request *request)
{
    char *path = strchr(head, ' '), *query;

    request->method = head;
    if (path == NULL)
        return;
    *path++ = '\0';
    request->path = path;
    query = strchr(path, '?');
    if (query == NULL)
        return;
    *query++ = '\0';
    for (char *saved = NULL, *name = strtok_r(query, "&", &saved);
         name != NULL && request->query_count < SERVE_QUERY_MAX; name = strtok_r(NULL, "&", &saved)) {
        char *value = strchr(name, '=');

        if (value == NULL)
            return;
        *value++ = '\0';
        request->query[request->query_count++] = (struct serve_parameter){name, value};
    }
}

/* ---- answers ---- */

struct failed {
    struct serve_failure error;
};
static const struct shape_field failed_rows[] = {
    {SHAPE_AT(failed, error), SHAPE_IS_STRUCT(&shape_serve_failure)}};
static const struct shape shape_failed = {SHAPE_OF(failed, failed_rows)};

/* Lines of events are short names, a colon and a value. */
static void check_stream(struct serve_stream *stream)
{
    char bytes[PULL_BYTES], before = '\n';
    long count = 1;

    for (int i = 0; i < PULLS && count > 0; i++) {
        count = stream->pull(stream->self, bytes, sizeof bytes);
        FUZZ_CHECK(count <= PULL_BYTES);
        for (long at = 0; at < count; at++) {
            FUZZ_CHECK(bytes[at] != '\0' && bytes[at] != '\r');
            FUZZ_CHECK(before != '\n' || strchr("ied:\n", bytes[at]) != NULL);
            before = bytes[at];
        }
    }
    FUZZ_CHECK(count != 0 || before == '\n');
    stream->end(stream->self);
}

static void check_answer(const struct serve_answer *answer)
{
    struct failed failed;
    struct arena arena;
    json_t *json = NULL;

    FUZZ_CHECK(answer->status >= 200 && answer->status < 600);
    FUZZ_CHECK((answer->status == 405) == (answer->allow != NULL));
    if (answer->stream != NULL) {
        FUZZ_CHECK(answer->status == 200);
        check_stream(answer->stream);
        return;
    }
    FUZZ_CHECK(shape_parse(answer->body.data, answer->body.length, &json, NULL) == 0);
    if (answer->status != 200) {
        arena_init(&arena, 1 << 16);
        FUZZ_CHECK(shape_read(&shape_failed, json, SHAPE_STRICT, &arena, &failed, NULL) == 0);
        FUZZ_CHECK(strncmp(failed.error.code, "FLY_E", 5) == 0 && failed.error.message[0] != '\0');
        arena_deinit(&arena);
    }
    json_decref(json);
}

/* Cuts one line off in place; returns what follows it. */
static char *cut_line(char *text, char *end)
{
    char *newline = memchr(text, '\n', (size_t)(end - text));

    if (newline == NULL)
        return end;
    *newline = '\0';
    return newline + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct node_v1 *v1;
    struct serve_request request = {.path = "", .caller_name = ""};
    struct serve_answer answer = {.status = 0};
    char *text = malloc(size + 1), *event, *body;

    if (text == NULL || size < 3 || size > HEAD_MAX * 16) {
        free(text);
        return 0;
    }
    if (v1 == NULL)
        v1 = open_v1();
    memcpy(text, data, size);
    text[size] = '\0';
    event = cut_line(text, text + size);
    body = cut_line(event, text + size);
    take_caller(text[0], &request);
    read_head(text + 2, &request);
    request.last_event_id = event[0] != '\0' && event < body ? event : NULL;
    request.body = body;
    request.body_length = (size_t)(text + size - body);
    buffer_init(&answer.body, ANSWER_MAX);
    if (node_v1_is_below(request.path)) {
        (void)node_v1_waits(&request);
        node_v1_answer(v1, &request, &answer);
        check_answer(&answer);
    }
    buffer_deinit(&answer.body);
    free(text);
    return 0;
}
