/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a request's route, decides whether its caller may ask, reads its parameters, and writes errors. */
#include "compat/zeus/node/node_public.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compat/zeus/node/public_private.h"
#include "knob/way/operation.h"

enum { LINE_MAX_BYTES = 640, NO_GROUP = -1 };

#define GPUS PUBLIC_BIT(PUBLIC_GPU_IDS)
#define CPUS PUBLIC_BIT(PUBLIC_CPU_IDS)
#define BLOCK PUBLIC_BIT(PUBLIC_BLOCK)
#define CLOCKS (PUBLIC_BIT(PUBLIC_MIN_CLOCK_MHZ) | PUBLIC_BIT(PUBLIC_MAX_CLOCK_MHZ))

/* clang-format off */
static const struct public_route routes[] = {
    {"GET", "/discover", 0, 0, public_discover, 0},
    {"GET", "/time", 0, 0, public_time, 0},
    {"GET", "/auth/whoami", 0, 0, public_whoami, 0},
    {"POST", "/gpu/set_power_limit", GPUS | BLOCK | PUBLIC_BIT(PUBLIC_POWER_LIMIT_MW), 0, public_turn,
     OPERATION_SET_POWER_LIMIT},
    {"POST", "/gpu/set_persistence_mode", GPUS | BLOCK | PUBLIC_BIT(PUBLIC_ENABLED), 0, public_turn,
     OPERATION_SET_PERSISTENCE_MODE},
    {"POST", "/gpu/set_gpu_locked_clocks", GPUS | BLOCK | CLOCKS, 0, public_turn, OPERATION_SET_GPU_LOCKED_CLOCKS},
    {"POST", "/gpu/reset_gpu_locked_clocks", GPUS | BLOCK, 0, public_turn, OPERATION_RESET_GPU_LOCKED_CLOCKS},
    {"POST", "/gpu/set_mem_locked_clocks", GPUS | BLOCK | CLOCKS, 0, public_turn, OPERATION_SET_MEM_LOCKED_CLOCKS},
    {"POST", "/gpu/reset_mem_locked_clocks", GPUS | BLOCK, 0, public_turn, OPERATION_RESET_MEM_LOCKED_CLOCKS},
    {"POST", "/gpu/reset_locked_clocks", GPUS | BLOCK, 0, public_turn, OPERATION_RESET_LOCKED_CLOCKS},
    {"GET", "/gpu/get_cumulative_energy", 0, GPUS, public_read_gpus, PUBLIC_READ_ENERGY},
    {"GET", "/gpu/stream_power", 0, GPUS, public_stream_gpus, 0},
    {"GET", "/cpu/get_cumulative_energy", PUBLIC_BIT(PUBLIC_CPU) | PUBLIC_BIT(PUBLIC_DRAM), CPUS, public_cpu_energy, 0},
    {"GET", "/cpu/get_power", 0, CPUS, public_cpu_power, 0},
    {"GET", "/cpu/stream_power", 0, CPUS, public_stream_cpus, 0},
    {"GET", "/gpu/get_power", 0, GPUS, public_read_gpus, PUBLIC_READ_POWER},
    {"GET", "/gpu/get_power_limit", 0, GPUS, public_read_gpus, PUBLIC_READ_LIMIT},
    {"GET", "/gpu/get_power_limit_constraints", 0, GPUS, public_read_gpus, PUBLIC_READ_CONSTRAINTS},
    {"GET", "/gpu/get_persistence_mode", 0, GPUS, public_read_gpus, PUBLIC_READ_PERSISTENCE},
};
/* clang-format on */
enum { ROUTES = sizeof routes / sizeof routes[0] };

/* To which group a path belongs, by its beginning; the first that fits counts. */
static const struct {
    const char *front;
    int group;
} fronts[] = {
    {"/gpu/set_", SIGNED_SCOPE_GPU_CONTROL},
    {"/gpu/reset_", SIGNED_SCOPE_GPU_CONTROL},
    {"/gpu/", SIGNED_SCOPE_GPU_READ},
    {"/cpu/", SIGNED_SCOPE_CPU_READ},
    {"/auth/", NO_GROUP},
};
enum { FRONTS = sizeof fronts / sizeof fronts[0] };

static bool begins(const char *path, const char *front)
{
    return strncmp(path, front, strlen(front)) == 0;
}

static bool is_for_anybody(const char *path)
{
    return strcmp(path, "/discover") == 0 || strcmp(path, "/time") == 0;
}

bool node_public_is_below(const char *path)
{
    for (size_t i = 0; i < FRONTS; i++) {
        if (begins(path, fronts[i].front))
            return true;
    }
    return is_for_anybody(path);
}

static int group_of(const char *path)
{
    for (size_t i = 0; i < FRONTS; i++) {
        if (begins(path, fronts[i].front))
            return fronts[i].group;
    }
    return NO_GROUP;
}

/* Returns the route of a path, or NULL; HEAD asks for the head of what GET answers. */
static const struct public_route *find(const struct serve_request *request, const char **out_allowed)
{
    bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;

    *out_allowed = NULL;
    for (size_t i = 0; i < ROUTES; i++) {
        bool is_read = strcmp(routes[i].method, "GET") == 0;

        if (strcmp(routes[i].path, request->path) != 0)
            continue;
        if (is_read ? reads : strcmp(routes[i].method, request->method) == 0)
            return &routes[i];
        *out_allowed = is_read ? "GET, HEAD" : "POST";
    }
    return NULL;
}

bool node_public_waits(const struct serve_request *request)
{
    const char *allowed;
    const struct public_route *route = find(request, &allowed);

    return route != NULL && route->answer == public_turn;
}

/* ---- who asks ---- */

/* Returns whether the caller's token is good for the group; otherwise the answer is made. */
static bool may(const struct serve_request *request, int group, struct serve_answer *answer)
{
    char text[LINE_MAX_BYTES];

    if (request->caller_name[0] == '\0') {
        public_refuse(answer, PUBLIC_STRANGER,
                      request->bearer == NULL
                          ? "a token is wanted: 'Authorization: Bearer ...'"
                          : "the token is not one that was signed here, or it has expired");
        answer->challenge = "Bearer realm=\"zeusd\"";
        return false;
    }
    if (group == NO_GROUP || (public_scopes(request) >> group & 1) != 0)
        return true;
    snprintf(text, sizeof text, "the token has no scope '%s'", signed_scope_words[group]);
    public_refuse(answer, PUBLIC_FORBIDDEN, text);
    return false;
}

/* Returns whether the request goes on; otherwise the answer is made. */
static bool is_let_in(const struct node_public *public, const struct serve_request *request,
                      struct serve_answer *answer)
{
    int group = group_of(request->path);

    if (group != NO_GROUP && (public->options.groups >> group & 1) == 0) {
        public_refuse(answer, PUBLIC_NOT_FOUND,
                      "this group of routes is not enabled; see 'server.public_groups'");
        return false;
    }
    if (!public->options.wants_tokens && begins(request->path, "/auth/")) {
        public_refuse(answer, PUBLIC_NOT_FOUND, "no tokens are wanted here");
        return false;
    }
    return is_for_anybody(request->path) || !public->options.wants_tokens || may(request, group, answer);
}

static void refuse_route(const struct serve_request *request, const char *allowed,
                         struct serve_answer *answer)
{
    char text[LINE_MAX_BYTES];

    if (allowed == NULL) {
        snprintf(text, sizeof text, "there is nothing at '%.200s'", request->path);
        public_refuse(answer, PUBLIC_NOT_FOUND, text);
        return;
    }
    snprintf(text, sizeof text, "'%.200s' does not take %.16s; it takes %s", request->path, request->method,
             allowed);
    public_refuse(answer, PUBLIC_NOT_ALLOWED, text);
    answer->allow = allowed;
}

void node_public_answer(struct node_public *public, const struct serve_request *request,
                        struct serve_answer *out_answer)
{
    struct public_failure rows[PUBLIC_IDS_MAX];
    struct public_exchange exchange = {
        .public = public, .request = request, .answer = out_answer, .failures = {.rows = rows}};
    const char *allowed;
    struct fly_error error;

    if (!is_let_in(public, request, out_answer))
        return;
    exchange.route = find(request, &allowed);
    if (exchange.route == NULL) {
        refuse_route(request, allowed, out_answer);
        return;
    }
    if (public_query_read(request, exchange.route->needed, exchange.route->optional, &exchange.query,
                          &error) < 0) {
        public_refuse(out_answer, PUBLIC_BAD, error.text);
        return;
    }
    exchange.route->answer(&exchange);
}

/* ---- opening and closing ---- */

int node_public_open(const struct node_public_options *options, struct node_public **out_public,
                     struct fly_error *out_error)
{
    struct node_public *public = calloc(1, sizeof *public);
    const struct public_later_options later = {
        .carry_out = public_carry_out, .failed = public_tell_failed, .self = public};
    int code =
        public == NULL ? error_no_memory(out_error) : public_later_new(&later, &public->later, out_error);

    if (code < 0) {
        free(public);
        return code;
    }
    public->options = *options;
    *out_public = public;
    return 0;
}

void node_public_close(struct node_public *public)
{
    if (public == NULL)
        return;
    public_later_free(public->later);
    free(public);
}
