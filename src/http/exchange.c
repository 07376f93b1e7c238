/* SPDX-License-Identifier: Apache-2.0 */
#include "http/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "shapes/json_words.h"
#include "shapes/shape_rows.h"

enum { RETRY_S = 1 };

size_t serve_caller_place(const struct serve_request *request)
{
    uint32_t hash = 2654435761U * ((uint32_t)request->peer.uid + 1U);

    if (request->caller_name[0] != '\0')
        hash = 5381U;
    for (const char *at = request->caller_name; *at != '\0'; at++)
        hash = 33U * hash + (unsigned char)*at;
    return (hash ^ hash >> 16) % SERVE_CALLERS;
}

const char *serve_query(const struct serve_request *request, const char *name)
{
    for (size_t i = 0; i < request->query_count; i++) {
        if (strcmp(request->query[i].name, name) == 0)
            return request->query[i].value;
    }
    return NULL;
}

void serve_answer_json(struct serve_answer *answer, int status, json_t *json)
{
    buffer_clear(&answer->body);
    if (json != NULL)
        json_words_put(&answer->body, json);
    if (json == NULL || answer->body.error < 0) {
        buffer_clear(&answer->body);
        buffer_puts(&answer->body, "null");
        status = 503;
    }
    answer->status = status;
    answer->type = "application/json";
    json_decref(json);
}

void serve_answer_struct(struct serve_answer *answer, int status, const struct shape *shape, const void *from)
{
    serve_answer_json(answer, status, shape_tell(shape, from));
}

/* ---- errors ---- */

static const struct shape_field failure_rows[] = {
    {SHAPE_AT(serve_failure, code), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(serve_failure, message), SHAPE_IS_TEXT(UINT32_MAX)},
};
const struct shape shape_serve_failure = {SHAPE_OF(serve_failure, failure_rows)};

struct failed {
    struct serve_failure error;
};

static const struct shape_field failed_rows[] = {
    {SHAPE_AT(failed, error), SHAPE_IS_STRUCT(&shape_serve_failure)}};
static const struct shape shape_failed = {SHAPE_OF(failed, failed_rows)};

void serve_answer_error(struct serve_answer *answer, int status, const char *code_word, const char *message)
{
    const struct failed failed = {.error = {code_word, message}};

    serve_answer_struct(answer, status, &shape_failed, &failed);
    if (answer->status == 503)
        answer->retry_after_s = RETRY_S;
}
