/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer to a service's client: "propose 200", and the body in the lines after it. It is either refused
 * with a reason, or one that the service could have written.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "job/remote/remote_answer.h"

enum { ARENA_MAX = 1 << 20, HEAD_MAX = 64, STRUCT_MAX = 64 << 10 };

static int visit_event(void *state, const struct store_event *event, struct fly_error *out_error)
{
    unsigned *left = state;
    json_t *json = NULL;

    FUZZ_CHECK(event->number > 0 && shape_write(&shape_event, event, &json, out_error) == 0);
    json_decref(json);
    return (*left)-- == 0 ? error_set(out_error, FLY_ESTATE, "enough") : 0;
}

static void check_page(const struct remote_reply *reply)
{
    struct fly_error error = {.text = ""};
    uint64_t after = 0, count = 0;
    unsigned left = 50;
    int code = remote_page_read(reply, &after, &count, visit_event, &left, &error);

    FUZZ_CHECK(code == 0 || (code == error.code && error.text[0] != '\0'));
    FUZZ_CHECK(count <= after);
}

static void check_reply(const struct remote_reply *reply, const struct api_route *route)
{
    static _Alignas(16) char out[STRUCT_MAX];
    struct fly_error error = {.text = ""};
    enum remote_fate fate = REMOTE_LOST;
    struct arena arena;
    json_t *json = NULL;
    int code;

    arena_init(&arena, ARENA_MAX);
    code = remote_reply_read(reply, route, &arena, out, &fate, &error);
    FUZZ_CHECK(code == 0 ? fate == REMOTE_ANSWERED : code == error.code && error.text[0] != '\0');
    if (code == 0 && route->answers_by == API_JSON) {
        FUZZ_CHECK(shape_write(route->answers, out, &json, &error) == 0);
        json_decref(json);
    }
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    size_t head_length = newline != NULL ? (size_t)(newline - data) : 0;
    struct remote_reply reply = {.from = "unix:/run/x"};
    char head[HEAD_MAX], *status, *body;

    if (newline == NULL || head_length >= sizeof head)
        return 0;
    memcpy(head, data, head_length);
    head[head_length] = '\0';
    status = strchr(head, ' ');
    if (status == NULL)
        return 0;
    *status++ = '\0';
    reply.status = (int)strtol(status, NULL, 10);
    reply.length = size - head_length - 1;
    body = malloc(reply.length + 1); /* in its own block, which shows reads beyond its end */
    if (body == NULL)
        return 0;
    memcpy(body, newline + 1, reply.length);
    body[reply.length] = '\0';
    reply.body = body;
    for (size_t i = 0; i < API_OPERATIONS; i++) {
        if (strcmp(api_routes[i].name, head) == 0)
            check_reply(&reply, &api_routes[i]);
    }
    if (strcmp(head, api_routes[API_READ].name) == 0)
        check_page(&reply);
    free(body);
    return 0;
}
