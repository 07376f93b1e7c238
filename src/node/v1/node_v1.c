/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a request's route, reads its body by the route's shape, and writes answers and errors. */
#include "node/v1/node_v1.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "node/v1/v1_cache.h"
#include "node/v1/v1_events.h"
#include "node/v1/v1_private.h"

static const char front[] = "/v1/";

/* {id} stands for one part of the path. */
static const struct {
    const char *method, *path;
    v1_route_fn *answer;
    bool waits;  /* perhaps for a driver */
    bool cached; /* the answer depends on nothing but what a key of v1_cache.h has */
} routes[] = {
    {"GET", "/v1/gpus", v1_list_gpus, false, true},
    {"GET", "/v1/gpus/{id}", v1_show_gpu, false, true},
    {"GET", "/v1/leases", v1_list_leases, false, false},
    {"POST", "/v1/leases", v1_grant_lease, true, false},
    {"PATCH", "/v1/leases/{id}", v1_change_lease, true, false},
    {"DELETE", "/v1/leases/{id}", v1_end_lease, true, false},
    {"POST", "/v1/leases/{id}/renew", v1_renew_lease, true, false},
    {"GET", "/v1/stream", v1_open_stream, false, false},
    {"GET", "/v1/usage", v1_show_usage, true, false}, /* for nobody, but its rows may be many */
    {"POST", "/v1/release", v1_release, true, false},
    {"POST", "/v1/resume", v1_resume, true, false},
};
enum { ROUTES = sizeof routes / sizeof routes[0], NOT_ALLOWED = 405, BUSY = 503, RETRY_S = 1 };

bool node_v1_is_below(const char *path)
{
    return strncmp(path, front, sizeof front - 1) == 0;
}

/* Returns whether a path is the route's, and what stands for {id}. */
static bool fits(const char *pattern, const char *path, char id[V1_ID_MAX])
{
    size_t before = strcspn(pattern, "{"), length;

    id[0] = '\0';
    if (strncmp(pattern, path, before) != 0)
        return false;
    if (pattern[before] == '\0')
        return path[before] == '\0';
    length = strcspn(path + before, "/");
    if (length == 0 || length >= V1_ID_MAX)
        return false;
    snprintf(id, V1_ID_MAX, "%.*s", (int)length, path + before);
    return strcmp(pattern + before + strlen("{id}"), path + before + length) == 0;
}

/* Returns the route, or -1; then `out_allowed` are the methods that the path takes, "" for none. */
static int find(const struct serve_request *request, char id[V1_ID_MAX], const char **out_allowed)
{
    bool get = false, patch = false, post = false;
    int found = -1;

    for (int i = 0; i < ROUTES && found < 0; i++) {
        if (!fits(routes[i].path, request->path, id))
            continue;
        get = get || strcmp(routes[i].method, "GET") == 0;
        post = post || strcmp(routes[i].method, "POST") == 0;
        patch = patch || strcmp(routes[i].method, "PATCH") == 0;
        if (strcmp(routes[i].method, request->method) == 0)
            found = i;
    }
    *out_allowed = get && post ? "GET, POST" : get ? "GET" : post ? "POST" : patch ? "DELETE, PATCH" : "";
    return found;
}

bool node_v1_waits(const struct serve_request *request)
{
    char id[V1_ID_MAX];
    const char *allowed;
    int route = find(request, id, &allowed);

    return route >= 0 && routes[route].waits;
}

/* A text that was cut within a character is no UTF-8; then the code's own sentence stands for it. */
static void fail(struct serve_answer *answer, int status, const struct fly_error *error)
{
    const struct serve_failure failure = {fly_error_name(error->code), error->text};
    json_t *json = NULL;
    bool whole = shape_write(&shape_serve_failure, &failure, &json, NULL) == 0;

    json_decref(json);
    serve_answer_error(answer, status, fly_error_name(error->code),
                       whole ? error->text : fly_error_sentence(error->code));
    if (status == BUSY)
        answer->retry_after_s = RETRY_S;
}

static void refuse(const struct serve_request *request, const char *allowed, struct serve_answer *answer)
{
    struct fly_error error;

    if (allowed[0] == '\0') {
        error_set(&error, FLY_ENOTFOUND, "there is nothing at '%.200s'; see flyballd(8)", request->path);
        fail(answer, fly_error_http_status(FLY_ENOTFOUND), &error);
        return;
    }
    error_set(&error, FLY_EUSAGE, "'%.200s' does not take %.16s; it takes %s", request->path, request->method,
              allowed);
    fail(answer, NOT_ALLOWED, &error);
    answer->allow = allowed;
}

/* Answers by the route, or with what it answered before. */
static int answer(struct v1_exchange *exchange, int route)
{
    struct serve_answer *made = exchange->answer;
    struct v1_cache_key key;
    int code;

    if (!routes[route].cached)
        return routes[route].answer(exchange);
    v1_cache_key(exchange, &key);
    if (v1_cache_take(exchange->v1->cache, &key, &made->body)) {
        made->status = 200;
        made->type = "application/json";
        return 0;
    }
    code = routes[route].answer(exchange);
    if (code == 0 && made->status == 200)
        v1_cache_keep(exchange->v1->cache, &key, &made->body);
    return code;
}

void node_v1_answer(struct node_v1 *v1, const struct serve_request *request, struct serve_answer *out_answer)
{
    struct v1_exchange exchange = {.v1 = v1, .request = request, .answer = out_answer};
    const char *allowed;
    int route = find(request, exchange.id, &allowed), code;

    if (route < 0) {
        refuse(request, allowed, out_answer);
        return;
    }
    arena_init(&exchange.arena, V1_ARENA_MAX);
    code = answer(&exchange, route);
    if (code < 0) {
        exchange.error.code = code;
        buffer_clear(&out_answer->body);
        fail(out_answer, fly_error_http_status(code), &exchange.error);
    }
    arena_deinit(&exchange.arena);
}

int node_v1_open(const struct node_v1_options *options, struct node_v1 **out_v1, struct fly_error *out_error)
{
    struct node_v1 *v1 = calloc(1, sizeof *v1);
    int code = v1 == NULL ? error_no_memory(out_error) : v1_cache_new(&v1->cache, out_error);

    if (code == 0)
        code = v1_events_new(&v1->events, out_error);
    if (code < 0) {
        node_v1_close(v1);
        return code;
    }
    v1->options = *options;
    *out_v1 = v1;
    return 0;
}

void node_v1_close(struct node_v1 *v1)
{
    if (v1 == NULL)
        return;
    v1_events_free(v1->events);
    v1_cache_free(v1->cache);
    free(v1);
}

/* ---- the machine's root alone ---- */

static int need_root(struct v1_exchange *exchange)
{
    if (admit_is_root(exchange->request))
        return 0;
    return error_set(&exchange->error, FLY_EPERM,
                     "only the machine's root may release and resume its GPUs, over the Unix socket");
}

int v1_release(struct v1_exchange *exchange)
{
    static const double usual_s = 10;
    struct v1_release_request asked;
    int code = need_root(exchange);

    if (code == 0)
        code = v1_read_body(exchange, &shape_v1_release_request, &asked);
    if (code == 0)
        code = exchange->v1->options.release(exchange->v1->options.daemon,
                                             asked.most_s > 0 ? asked.most_s : usual_s, &exchange->error);
    return code < 0 ? code : v1_tell(exchange, &shape_v1_done, &(struct v1_done){true});
}

int v1_resume(struct v1_exchange *exchange)
{
    int code = need_root(exchange);

    if (code == 0)
        code = exchange->v1->options.resume(exchange->v1->options.daemon, &exchange->error);
    return code < 0 ? code : v1_tell(exchange, &shape_v1_done, &(struct v1_done){true});
}
