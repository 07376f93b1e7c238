/* SPDX-License-Identifier: Apache-2.0 */
#include "http/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "shapes/json_words.h"

enum { RETRY_S = 1 };

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

void serve_answer_error(struct serve_answer *answer, int status, const char *code_word, const char *message)
{
    json_t *json = json_pack("{s:{s:s, s:s}}", "error", "code", code_word, "message", message);

    serve_answer_json(answer, status, json);
    if (answer->status == 503)
        answer->retry_after_s = RETRY_S;
}
