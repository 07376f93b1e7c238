/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_client.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/http_client.h"
#include "base/service_address.h"
#include "http/exchange.h"
#include "shapes/shape_rows.h"

enum { ANSWER_MAX = 1 << 16, URL_BYTES = 256, ARENA_BYTES = 1 << 16, CODES_MAX = 100 };

static const double connect_s = 5, most_s = 120;

static const char *find_socket(const struct config *config)
{
    const struct cli_list *listen = config_list(config, KEY_LISTEN);

    for (size_t i = 0; i < listen->count; i++) {
        const char *rest;
        enum address_form form = address_split(listen->words[i], &rest);

        if (form == ADDRESS_SOCKET || (form == ADDRESS_PATH && strchr(rest, '/') != NULL))
            return rest;
    }
    return NULL;
}

struct refusal {
    struct serve_failure error;
};
static const struct shape_field refusal_rows[] = {
    {SHAPE_AT(refusal, error), SHAPE_IS_STRUCT(&shape_serve_failure)}};
static const struct shape shape_refusal = {SHAPE_OF(refusal, refusal_rows)};

/* Returns the code of that name; FLY_EREAD for one that this version does not know. */
static int find_code(const char *name)
{
    for (int code = -1; code > -CODES_MAX; code--)
        if (strcmp(fly_error_name(code), name) == 0)
            return code;
    return FLY_EREAD;
}

static int read_failure(const struct http_answer *answer, struct fly_error *out_error)
{
    struct refusal refusal;
    struct arena arena;
    int code;

    arena_init(&arena, ARENA_BYTES);
    code = shape_read_text(&shape_refusal, answer->body.data, answer->body.length, SHAPE_LENIENT, &arena,
                           &refusal, NULL, NULL);
    if (code == 0)
        code = error_set(out_error, find_code(refusal.error.code), "%s", refusal.error.message);
    else
        code = error_set(out_error, FLY_EREAD, "the daemon answered with status %d", answer->status);
    arena_deinit(&arena);
    return code;
}

int node_client_ask(const struct config *config, const char *path, struct fly_error *out_error)
{
    const char *socket = find_socket(config);
    char url[URL_BYTES];
    const struct http_request request = {.method = "POST",
                                         .url = url,
                                         .unix_socket = socket,
                                         .body = "{}",
                                         .answer_maximum = ANSWER_MAX,
                                         .connect_timeout_s = connect_s,
                                         .total_timeout_s = most_s,
                                         .past_proxies = true};
    struct http_answer answer;
    int code;

    if (socket == NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "the daemon's 'server.listen' has no Unix socket, over which alone this is asked");
    snprintf(url, sizeof url, "http://localhost%s", path);
    code = http_ask(&request, &answer, out_error);
    if (code < 0)
        return code;
    if (answer.status != 200)
        code = read_failure(&answer, out_error);
    http_answer_deinit(&answer);
    return code;
}
