/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service's own interface: finds the route, reads the body by its shape, calls the job's
 * table, and writes the answer. job/core/api.h lists the routes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/v1_call.h"

enum {
    OK = 200,
    NO_CONTENT = 204,
    FORBIDDEN = 403,
    NOT_FOUND = 404,
    NOT_ALLOWED = 405,
    UNAVAILABLE = 503,
    ARENA_MAX = 64 << 20, /* bytes for what one request asks and gets */
    RETRY_S = 1,
};

static const char document_path[] = "/v1/openapi.json";

static const struct {
    enum serve_scope scope;
    const char *word;
} needs[] = {[API_TO_READ] = {SERVE_READ, "read"},
             [API_TO_TRAIN] = {SERVE_TRAIN, "train"},
             [API_TO_MANAGE] = {SERVE_MANAGE, "manage"}};

static void fail(struct serve_answer *answer, int status, const struct fly_error *error)
{
    const struct job_failure failure = {
        .error = {.code = fly_error_name(error->code),
                  .message = serve_error_text(answer, status, error->code, error->text)}};
    json_t *json = NULL;

    /* A text that was cut within a character is not valid UTF-8. */
    if (shape_write(&shape_failure, &failure, &json, NULL) < 0)
        json = shape_tell(&shape_failure,
                          &(struct job_failure){.error = {.code = failure.error.code,
                                                          .message = fly_error_sentence(error->code)}});
    serve_answer_json(answer, status, json);
    if (answer->status == UNAVAILABLE)
        answer->retry_after_s = RETRY_S;
}

/* Returns whether the caller may; otherwise answers what it lacks. */
static bool allowed(const struct serve_request *request, enum api_right right, struct serve_answer *answer)
{
    struct fly_error error;

    if (request->scope >= needs[right].scope)
        return true;
    error_set(&error, FLY_EPERM, "%s %.200s: the token lacks the scope '%s'; use another, or ask for it",
              request->method, request->path, needs[right].word);
    fail(answer, FORBIDDEN, &error);
    return false;
}

static int read_body(struct v1_call *call, const struct api_route *route)
{
    json_t *json;
    int code;

    if (route->asks_by == API_NOTHING && call->request->body_length > 0)
        return error_set(&call->error, FLY_EUSAGE, "'%s' takes no body; leave it out", call->request->path);
    if (route->asks_by != API_JSON)
        return 0;
    if (call->request->body_length > API_JSON_MAX) /* parsed, it takes up to eighty times its length */
        return error_set(&call->error, FLY_ELIMIT, "the body has %zu bytes; '%s' takes at most %d",
                         call->request->body_length, call->request->path, (int)API_JSON_MAX);
    code = shape_parse(call->request->body, call->request->body_length, &json, &call->error);
    if (code < 0)
        return code;
    code = shape_read(route->asks, json, SHAPE_STRICT, &call->arena, &call->asked, &call->error);
    json_decref(json);
    return code;
}

static int write_body(struct v1_call *call, const struct api_route *route)
{
    json_t *json = NULL;
    int code = 0;

    call->answer->status = route->answers_by == API_NOTHING ? NO_CONTENT : OK;
    call->answer->type = route->answers_by == API_LINES   ? API_LINES_TYPE
                         : route->answers_by == API_BYTES ? API_BYTES_TYPE
                                                          : API_JSON_TYPE;
    if (route->answers_by == API_JSON)
        code = shape_write(route->answers, &call->result, &json, &call->error);
    if (json != NULL)
        serve_answer_json(call->answer, OK, json);
    return code;
}

static void answer_call(struct v1_call *call)
{
    const struct api_route *route = &api_routes[call->place.operation];
    int code;

    snprintf(call->note->job, sizeof call->note->job, "%s", call->place.job);
    arena_init(&call->arena, ARENA_MAX);
    code = read_body(call, route);
    if (code == 0)
        code = v1_operations[call->place.operation](call);
    if (code == 0)
        code = write_body(call, route);
    if (code < 0) {
        buffer_clear(&call->answer->body);
        call->error.code = code;
        fail(call->answer, fly_error_http_status(code), &call->error);
    }
    arena_deinit(&call->arena);
}

static void answer_document(const struct serve_request *request, struct serve_answer *answer)
{
    struct fly_error error;

    if (strcmp(request->method, "GET") == 0) {
        if (allowed(request, API_TO_READ, answer))
            serve_answer_json(answer, OK, v1_document());
        return;
    }
    error_set(&error, FLY_EUSAGE, "'%s' takes GET only", document_path);
    fail(answer, NOT_ALLOWED, &error);
    answer->allow = "GET";
}

static bool answer(const struct jobs *jobs, const struct serve_request *request,
                   struct serve_answer *out_answer, struct serve_note *out_note)
{
    struct v1_call *call;
    const char *methods = NULL;
    struct fly_error error = {.text = ""};
    struct api_place place;
    int code;

    if (!api_is_below(request->path))
        return false;
    *out_note = (struct serve_note){.energy_j = NAN};
    if (strcmp(request->path, document_path) == 0) {
        answer_document(request, out_answer);
        return true;
    }
    code = api_find(request->method, request->path, &place, &methods, &error);
    if (code < 0) {
        fail(out_answer, methods != NULL ? NOT_ALLOWED : NOT_FOUND, &error);
        out_answer->allow = methods;
        return true;
    }
    if (!allowed(request, api_routes[place.operation].right, out_answer))
        return true;
    call = calloc(1, sizeof *call); /* a proposal is too large for a small stack */
    if (call == NULL) {
        error_no_memory(&error);
        fail(out_answer, UNAVAILABLE, &error);
        return true;
    }
    call->jobs = jobs;
    call->request = request;
    call->answer = out_answer;
    call->note = out_note;
    call->place = place;
    answer_call(call);
    free(call);
    return true;
}

const struct serve_routes serve_v1 = {.name = "v1", .answer = answer};
