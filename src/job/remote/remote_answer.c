/* SPDX-License-Identifier: Apache-2.0 */
#include "job/remote/remote_answer.h"

#include <inttypes.h>
#include <string.h>

enum {
    OK = 200,
    NO_CONTENT = 204,
    NOT_FOUND = 404,
    BAD_GATEWAY = 502,
    UNAVAILABLE = 503,
    GATEWAY_TIMEOUT = 504,
    FAILURE_MAX = 64 << 10, /* bytes of an error's body that are read */
    LINE_MEMORY_MAX = 8 << 20,
};

/* ---- errors ---- */

/* Refuses a page of something in between, or of another program. */
static int refuse_stranger(const struct remote_reply *reply, enum remote_fate *out_fate,
                           struct fly_error *out_error)
{
    bool between = reply->status == BAD_GATEWAY || reply->status == GATEWAY_TIMEOUT;

    *out_fate = between ? REMOTE_LOST : reply->status == UNAVAILABLE ? REMOTE_LATER : REMOTE_ANSWERED;
    return error_set(out_error, FLY_EUNREACHABLE,
                     "what answers at '%.200s' with status %d is not the service; see whether the address is "
                     "right, and what stands in between",
                     reply->from, reply->status);
}

/* The code for a word that only a newer service knows, by its status. */
static int code_of_status(int status)
{
    static const struct {
        int status, code;
    } rows[] = {{401, FLY_EPERM},  {403, FLY_EPERM},  {404, FLY_ENOTFOUND}, {405, FLY_EUSAGE},
                {409, FLY_ESTATE}, {413, FLY_ELIMIT}, {422, FLY_EDATA},     {501, FLY_EUNSUPPORTED},
                {503, FLY_EBUSY},  {507, FLY_EWRITE}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].status == status)
            return rows[i].code;
    }
    return status < 500 ? FLY_EUSAGE : FLY_EREAD;
}

static int read_failure(const struct remote_reply *reply, enum remote_fate *out_fate,
                        struct fly_error *out_error)
{
    struct job_failure failure;
    json_t *json = NULL;
    struct arena arena;
    int code = 0;

    arena_init(&arena, FAILURE_MAX);
    if (reply->length > FAILURE_MAX || shape_parse(reply->body, reply->length, &json, NULL) < 0 ||
        shape_read(&shape_failure, json, SHAPE_LENIENT, &arena, &failure, NULL) < 0) {
        code = refuse_stranger(reply, out_fate, out_error);
    } else {
        code = api_error_code(failure.error.code);
        if (code == 0)
            code = code_of_status(reply->status);
        if (code == FLY_EUNSUPPORTED && reply->status == NOT_FOUND)
            error_set(out_error, code, "service '%.160s': %.300s; see whether its address is right",
                      reply->from, failure.error.message);
        else
            error_set(out_error, code, "%s", failure.error.message);
        *out_fate = code == FLY_EUNSURE            ? REMOTE_LOST
                    : reply->status == UNAVAILABLE ? REMOTE_LATER
                                                   : REMOTE_ANSWERED;
    }
    json_decref(json);
    arena_deinit(&arena);
    return code;
}

/* ---- answers ---- */

/* The call was done, but its result cannot be understood. */
static int refuse_form(const struct remote_reply *reply, const struct fly_error *why,
                       struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "the answer of '%.160s' has another form: %.200s; see whether it is as new as this",
                     reply->from, why->text);
}

int remote_reply_read(const struct remote_reply *reply, const struct api_route *route, struct arena *arena,
                      void *out_struct, enum remote_fate *out_fate, struct fly_error *out_error)
{
    int expected = route->answers_by == API_NOTHING ? NO_CONTENT : OK;
    struct fly_error why = {.text = ""};
    json_t *json;
    int code = 0;

    *out_fate = REMOTE_ANSWERED;
    if (reply->status >= 400)
        return read_failure(reply, out_fate, out_error);
    if (reply->status != expected)
        return refuse_stranger(reply, out_fate, out_error);
    if (route->answers_by != API_JSON)
        return 0;
    if (shape_parse(reply->body, reply->length, &json, NULL) < 0)
        return refuse_stranger(reply, out_fate, out_error);
    code = shape_read(route->answers, json, SHAPE_LENIENT, arena, out_struct, &why);
    json_decref(json);
    return code == FLY_ENOMEM ? error_no_memory(out_error)
           : code < 0         ? refuse_form(reply, &why, out_error)
                              : 0;
}

/* ---- pages ---- */

static int tell_line(const char *line, size_t length, uint64_t *after, store_visit *visit, void *state,
                     int *out_visited, struct fly_error *why)
{
    struct store_event event;
    struct arena arena;
    json_t *json;
    int code = shape_parse(line, length, &json, why);

    if (code < 0)
        return code;
    arena_init(&arena, LINE_MEMORY_MAX);
    code = shape_read(&shape_event, json, SHAPE_LENIENT, &arena, &event, why);
    json_decref(json);
    if (code == 0 && event.number <= *after)
        code =
            error_set(why, FLY_EDATA, "event %" PRIu64 " comes after event %" PRIu64, event.number, *after);
    if (code == 0) {
        *after = event.number;
        *out_visited = visit(state, &event, why);
    }
    arena_deinit(&arena);
    return code;
}

int remote_page_read(const struct remote_reply *reply, uint64_t *after, uint64_t *out_count,
                     store_visit *visit, void *state, struct fly_error *out_error)
{
    const char *line = reply->body, *end = line + reply->length;
    struct fly_error why = {.text = ""};
    int visited = 0;

    *out_count = 0;
    while (line < end && visited == 0) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline != NULL ? newline : end;
        int code = tell_line(line, (size_t)(line_end - line), after, visit, state, &visited, &why);

        if (code == FLY_ENOMEM)
            return error_no_memory(out_error);
        if (code < 0)
            return refuse_form(reply, &why, out_error);
        ++*out_count;
        line = newline != NULL ? newline + 1 : end;
    }
    if (visited < 0)
        error_set(out_error, visited, "%s", why.text);
    return visited;
}
