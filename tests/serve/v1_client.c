/* SPDX-License-Identifier: Apache-2.0 */
#include "v1_client.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_MAX = 16 << 20, TARGET_MAX = 1024 };

static void split_query(char *target, struct serve_request *request)
{
    char *at = strchr(target, '?'), *rest;

    if (at == NULL)
        return;
    *at++ = '\0';
    for (char *name = strtok_r(at, "&", &rest); name != NULL; name = strtok_r(NULL, "&", &rest)) {
        char *value = strchr(name, '=');

        assert_non_null(value);
        *value++ = '\0';
        request->query[request->query_count++] = (struct serve_parameter){name, value};
    }
}

struct v1_answer v1_ask_as(const struct jobs *jobs, enum serve_scope scope, const char *method,
                           const char *target, const char *body)
{
    char path[TARGET_MAX];
    struct serve_request request = {.method = method,
                                    .path = path,
                                    .body = body != NULL ? body : "",
                                    .body_length = body != NULL ? strlen(body) : 0,
                                    .scope = scope,
                                    .caller_name = ""};
    struct v1_answer answered = {.answer = {.status = 0}, .note = {.energy_j = NAN}};

    snprintf(path, sizeof path, "%s", target);
    split_query(path, &request);
    buffer_init(&answered.answer.body, ANSWER_MAX);
    assert_true(serve_v1.answer(jobs, &request, &answered.answer, &answered.note));
    if (answered.answer.status != 204 && strcmp(answered.answer.type, "application/json") == 0) {
        answered.json = json_loads(answered.answer.body.data, 0, NULL);
        assert_non_null(answered.json);
    }
    return answered;
}

struct v1_answer v1_ask(const struct jobs *jobs, const char *method, const char *target, const char *body)
{
    return v1_ask_as(jobs, SERVE_MANAGE, method, target, body);
}

struct v1_answer v1_well(const struct jobs *jobs, int status, const char *method, const char *target,
                         const char *body)
{
    struct v1_answer answer = v1_ask(jobs, method, target, body);

    if (answer.answer.status != status)
        fail_msg("%s %s answers %d: %s", method, target, answer.answer.status, answer.answer.body.data);
    return answer;
}

void v1_do(const struct jobs *jobs, int status, const char *method, const char *target, const char *body)
{
    struct v1_answer answer = v1_well(jobs, status, method, target, body);

    v1_answer_free(&answer);
}

void v1_answer_free(struct v1_answer *answer)
{
    json_decref(answer->json);
    buffer_deinit(&answer->answer.body);
}

const char *v1_message(const struct v1_answer *answer)
{
    const char *text = json_string_value(json_object_get(json_object_get(answer->json, "error"), "message"));

    return text != NULL ? text : "";
}

double v1_number(const struct v1_answer *answer, const char *name)
{
    return json_number_value(json_object_get(answer->json, name));
}

const char *v1_text(const struct v1_answer *answer, const char *name)
{
    const char *text = json_string_value(json_object_get(answer->json, name));

    return text != NULL ? text : "";
}
