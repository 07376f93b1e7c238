/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of the public batch-size server, so that its clients work unchanged over
 * the jobs of a store. docs/zeus_server.md says what they answer and where that server
 * is at fault and this is not.
 *
 * Only jobs that were registered here can be reached from here: clients of that server
 * have no tokens.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "serve/zeus_call.h"

_Static_assert(ZEUS_BODY_MAX == 65536, "as the message says");

enum {
    MEMORY_MAX = 1 << 20, /* of one request's texts and lists */
    RETRY_AFTER_S = 1,    /* what was busy or gone may be back */
};

/* ---- answers ---- */

void zeus_say(struct zeus_call *call, int status, const char *message)
{
    json_t *text = json_string(message); /* NULL: it was cut within a character */

    serve_answer_json(call->answer, status,
                      json_pack("{s:o}", "message",
                                text != NULL ? text : json_string("it does not fit what is on record")));
}

void zeus_complained(struct zeus_call *call)
{
    serve_answer_json(call->answer, ZEUS_UNPROCESSABLE, json_pack("{s:O}", "detail", call->detail));
}

/* The status of an error; what is missing has another one on each route, as on the public server. */
static int status_of(int code, int if_missing)
{
    switch (code) {
    case FLY_ENOTFOUND:
        return if_missing;
    case FLY_EUSAGE:
    case FLY_EDATA:
    case FLY_ELIMIT:
        return ZEUS_BAD_REQUEST;
    default:
        return fly_error_http_status(code);
    }
}

void zeus_fail(struct zeus_call *call, int code, int if_missing)
{
    int status = status_of(code, if_missing);

    call->answer->retry_after_s = status == ZEUS_UNAVAILABLE ? RETRY_AFTER_S : 0;
    zeus_say(call, status,
             call->error.text[0] != '\0' ? serve_error_text(call->answer, status, code, call->error.text)
                                         : fly_error_sentence(code));
}

/* ---- what requests are about ---- */

bool zeus_named_in_query(struct zeus_call *call)
{
    call->job_id = serve_query(call->request, "job_id");
    if (call->job_id != NULL)
        return true;
    zeus_complain(call->detail, "query", "job_id", "value_error.missing", "it is missing");
    zeus_complained(call);
    return false;
}

static int refuse_job(struct zeus_call *call)
{
    return error_set(&call->error, FLY_ENOTFOUND, "job '%.300s' is not known; register it first",
                     call->job_id);
}

int zeus_find_job(struct zeus_call *call, char name[JOB_NAME_MAX + 1], struct zeus_job *out_job)
{
    struct job_shown shown;
    int code;

    if (!zeus_job_name(call->job_id, name))
        return refuse_job(call);
    code = call->jobs->backend->show(call->jobs->self, name, &call->arena, &shown, &call->error);
    if (code == FLY_ENOTFOUND)
        return refuse_job(call);
    if (code == 0 && !zeus_job_recall(&shown.definition, &call->arena, out_job))
        code = error_set(&call->error, FLY_ENOTFOUND,
                         "job '%.300s' was not registered through this interface, and is not to be reached "
                         "from it",
                         call->job_id);
    if (code == 0) {
        snprintf(call->note->job, sizeof call->note->job, "%s", name);
        snprintf(call->note->gpu_model, sizeof call->note->gpu_model, "%s", out_job->gpu_model);
    }
    return code;
}

int zeus_random_text(char text[ZEUS_RANDOM_TEXT], struct fly_error *out_error)
{
    unsigned char bytes[8];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(out_error, FLY_EREAD, "random bytes cannot be had from this system");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* ---- routes ---- */

static const struct {
    const char *path, *method;
    const char *allow; /* all methods of the path */
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
        call->body = zeus_parse(request->body, request->body_length, call->detail);
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
    call.detail = json_array();
    arena_init(&call.arena, MEMORY_MAX);
    if (route == ROUTES) {
        out_answer->allow = allow;
        zeus_say(&call, ZEUS_NOT_ALLOWED, "that method is none of this path's");
    } else {
        take(&call, route);
    }
    arena_deinit(&call.arena);
    json_decref(call.body);
    json_decref(call.detail);
    return true;
}

const struct serve_routes serve_zeus = {.name = "zeus", .answer = zeus_answer};
