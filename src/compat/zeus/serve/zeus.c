/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of the public batch-size server, so that its clients work unchanged with the jobs of
 * a store. docs/howto/zeus_server.md says what they answer, and where they differ because that server
 * is at fault.
 *
 * These routes reach only jobs that were registered through them, since clients of that server
 * have no tokens.
 */
#include <math.h>
#include <string.h>

#include "compat/zeus/serve/serve_zeus.h"
#include "compat/zeus/serve/zeus_call.h"

_Static_assert(ZEUS_BODY_MAX == 65536, "as the message says");

enum { MEMORY_MAX = 1 << 20 /* of one request's texts and lists */ };

static const struct {
    const char *path, *method;
    const char *allow; /* all methods that the path takes */
    enum serve_scope scope;
    bool body;
    void (*answer)(struct zeus_call *call);
} routes[] = {
    {"/jobs", "POST", "POST, DELETE", SERVE_TRAIN, true, zeus_register},
    {"/jobs", "DELETE", "POST, DELETE", SERVE_MANAGE, false, zeus_delete},
    {"/jobs/batch_size", "GET", "GET", SERVE_TRAIN, false, zeus_predict},
    {"/report", "POST", "POST", SERVE_TRAIN, true, zeus_report},
    {"/trials", "PATCH", "PATCH", SERVE_TRAIN, true, zeus_end},
};
enum { ROUTES = sizeof routes / sizeof routes[0] };

static void take(struct zeus_call *call, size_t route)
{
    const struct serve_request *request = call->request;

    if (request->scope < routes[route].scope) {
        zeus_say(call, request->scope == SERVE_NOBODY ? ZEUS_UNAUTHORISED : ZEUS_FORBIDDEN,
                 routes[route].scope == SERVE_MANAGE ? "this needs a token that may manage jobs"
                                                     : "this needs a token that may train");
        return;
    }
    if (routes[route].body && request->body_length > ZEUS_BODY_MAX) {
        zeus_say(call, ZEUS_TOO_LONG, "the body is longer than 65536 bytes");
        return;
    }
    if (routes[route].body)
        call->body = zeus_parse(request->body, request->body_length, &call->detail);
    if (routes[route].body && call->body == NULL)
        zeus_complained(call);
    else
        routes[route].answer(call);
}

static bool zeus_answer(const struct jobs *jobs, const struct serve_request *request,
                        struct serve_answer *out_answer, struct serve_note *out_note)
{
    struct zeus_call call = {.jobs = jobs, .request = request, .answer = out_answer, .note = out_note};
    const char *allow = NULL;
    size_t route = 0;

    *out_note = (struct serve_note){.energy_j = NAN};
    for (; route < ROUTES; route++) {
        if (strcmp(routes[route].path, request->path) != 0)
            continue;
        allow = routes[route].allow;
        if (strcmp(routes[route].method, request->method) == 0)
            break;
    }
    if (allow == NULL)
        return false;
    out_answer->allow = NULL;
    out_answer->retry_after_s = 0;
    arena_init(&call.arena, MEMORY_MAX);
    if (route == ROUTES) {
        out_answer->allow = allow;
        zeus_say(&call, ZEUS_NOT_ALLOWED, "that method is none of this path's");
    } else {
        take(&call, route);
    }
    arena_deinit(&call.arena);
    json_decref(call.body);
    return true;
}

const bool serve_zeus_is_built = true;
const struct serve_routes serve_zeus = {.name = "zeus", .answer = zeus_answer};
