/* SPDX-License-Identifier: Apache-2.0 */
#include "http/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "shapes/json_words.h"

const char *serve_query(const struct serve_request *request, const char *name)
{
    for (size_t i = 0; i < request->query_count; i++) {
        if (strcmp(request->query[i].name, name) == 0)
            return request->query[i].value;
    }
    return NULL;
}

static bool says_place(const char *text)
{
    return strstr(text, "store '") != NULL || strstr(text, "'/") != NULL || strstr(text, "'postgres") != NULL;
}

const char *serve_error_text(struct serve_answer *answer, int status, int code, const char *text)
{
    if (status < 500 || !says_place(text))
        return text;
    error_set(&answer->untold, code, "%s", text);
    return fly_error_sentence(code);
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
