/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of a public batch-size server's client: "METHOD PATH [JOB_ID]", and its body in the lines after
 * it. Every request is answered with JSON and a documented status, and what reaches a job is in the ranges
 * that a job accepts.
 */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "compat/zeus/serve/serve_zeus.h"
#include "compat/zeus/serve/zeus_job.h"
#include "fuzz.h"
#include "job/core/definition.h"
#include "serve/route_family.h"

enum { HEAD_MAX = 512, ANSWER_MAX = 1 << 20 };

static const uint32_t sizes[] = {8, 16, 32};
static const char client[] = "{\"gpu_model\":\"V100\",\"job_id_prefix\":\"\",\"max_power\":250.0,"
                             "\"number_of_gpus\":1}";

/* ---- a job's log that knows the job `known`, and accepts whatever is in range ---- */

static int fuzz_define(void *self, const struct fly_job_definition *definition,
                       struct job_registered *out_registered, struct fly_error *out_error)
{
    struct zeus_job before, after;
    struct arena arena;
    struct zeus_differences differences;
    json_t *object;
    char text[JOB_CLIENT_MAX + 1];
    struct fly_job_definition again;

    (void)self;
    FUZZ_CHECK(job_definition_check(definition, out_error) == 0);
    arena_init(&arena, 1 << 20);
    FUZZ_CHECK(zeus_job_recall(definition, &arena, &before));
    FUZZ_CHECK(zeus_job_define(&before, definition->name, text, &again) == 0);
    FUZZ_CHECK(zeus_job_recall(&again, &arena, &after));
    zeus_job_differences(&before, &after, &differences);
    FUZZ_CHECK(differences.count == 0 && strcmp(text, definition->client) == 0);
    zeus_differences_deinit(&differences);
    object = zeus_job_write(&after, definition->name);
    FUZZ_CHECK(object != NULL);
    json_decref(object);
    arena_deinit(&arena);
    if (strcmp(definition->name, "known") == 0)
        return error_set(out_error, FLY_ECONFLICT, "it is on record");
    *out_registered = (struct job_registered){.known = false};
    return 0;
}

static int fuzz_show(void *self, const char *job, struct arena *arena, struct job_shown *out_shown,
                     struct fly_error *out_error)
{
    (void)self;
    (void)arena;
    if (strcmp(job, "known") != 0)
        return error_set(out_error, FLY_ENOTFOUND, "no such job");
    *out_shown = (struct job_shown){.definition = job_definition_default};
    out_shown->definition.name = "known";
    out_shown->definition.policy = "zeus-server";
    out_shown->definition.batch_sizes = sizes;
    out_shown->definition.batch_count = sizeof sizes / sizeof sizes[0];
    out_shown->definition.default_batch_size = 16;
    out_shown->definition.max_epochs = 6;
    out_shown->definition.client = client;
    return 0;
}

static int fuzz_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                        struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    FUZZ_CHECK(strcmp(question->hardware.gpu_model, "V100") == 0 && question->hardware.gpu_count == 1);
    *out_proposal = (struct job_proposal){.trial = 1, .attempt = 1, .batch_size = 16};
    return 0;
}

static int fuzz_read(void *self, const char *job, const struct store_query *query, store_visit *visit,
                     void *state, struct fly_error *out_error)
{
    const struct store_event event = {
        .number = 2, .kind = "proposed", .trial = 1, .key = "", .body = "{\"batch_size\": 16}"};

    (void)self;
    FUZZ_CHECK(strcmp(job, "known") == 0 && query->trial > 0);
    return query->trial == 1 ? visit(state, &event, out_error) : 0;
}

static int fuzz_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                       struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    FUZZ_CHECK(epoch->trial == 1 && epoch->attempt == 1 && epoch->epoch >= 1 &&
               epoch->epoch <= JOB_EPOCHS_MAX);
    FUZZ_CHECK(isfinite(epoch->energy_j) && epoch->energy_j >= 0.0 && isfinite(epoch->time_s) &&
               epoch->time_s >= 0.0 && !isinf(epoch->metric));
    *out_answered = (struct job_answered){.ended = epoch->epoch >= 6, .energy_j = epoch->energy_j};
    return 0;
}

static int fuzz_end(void *self, const struct job_end *end, struct job_ended *out_ended,
                    struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    FUZZ_CHECK(end->trial == 1 && end->attempt == 1);
    *out_ended = (struct job_ended){.outcome = end->outcome};
    return 0;
}

static int fuzz_remove(void *self, const char *job, struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    FUZZ_CHECK(strcmp(job, "known") == 0);
    return 0;
}

static const struct job_backend backend = {.name = "fuzz",
                                           .define = fuzz_define,
                                           .show = fuzz_show,
                                           .propose = fuzz_propose,
                                           .read = fuzz_read,
                                           .report = fuzz_report,
                                           .end = fuzz_end,
                                           .remove = fuzz_remove};

/* ---- asking ---- */

static void check_answer(const struct serve_answer *answer)
{
    static const int statuses[] = {200, 201, 400, 404, 405, 409, 413, 422};
    json_t *json = json_loadb(answer->body.data, answer->body.length, JSON_DECODE_ANY, NULL);
    bool known = false;

    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        known |= answer->status == statuses[i];
    FUZZ_CHECK(known && json != NULL && strcmp(answer->type, "application/json") == 0);
    FUZZ_CHECK((answer->allow != NULL) == (answer->status == 405));
    if (answer->status == 422)
        FUZZ_CHECK(json_array_size(json_object_get(json, "detail")) > 0);
    else if (answer->status >= 300)
        FUZZ_CHECK(json_string_length(json_object_get(json, "message")) > 0);
    json_decref(json);
}

static void ask(char *head, const char *body, size_t body_length)
{
    const struct jobs jobs = {.backend = &backend};
    struct serve_request request = {
        .body = body, .body_length = body_length, .scope = SERVE_MANAGE, .caller_name = ""};
    struct serve_answer answer = {.status = 0};
    struct serve_note note;
    char *path = strchr(head, ' '), *job_id;

    if (path == NULL)
        return;
    *path++ = '\0';
    job_id = strchr(path, ' ');
    if (job_id != NULL) {
        *job_id++ = '\0';
        request.query[request.query_count++] = (struct serve_parameter){"job_id", job_id};
    }
    request.method = head;
    request.path = path;
    buffer_init(&answer.body, ANSWER_MAX);
    if (serve_zeus.answer(&jobs, &request, &answer, &note))
        check_answer(&answer);
    buffer_deinit(&answer.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    size_t head_length = newline != NULL ? (size_t)(newline - data) : size;
    size_t body_length = newline != NULL ? size - head_length - 1 : 0;
    char head[HEAD_MAX], *body;
    json_t *text;

    if (head_length >= sizeof head || memchr(data, '\0', head_length) != NULL)
        return 0;
    memcpy(head, data, head_length);
    head[head_length] = '\0';
    text = json_string(head); /* the server passes on only UTF-8 */
    if (text == NULL)
        return 0;
    json_decref(text);
    body = malloc(body_length + 1);
    FUZZ_CHECK(body != NULL);
    if (body_length > 0)
        memcpy(body, newline + 1, body_length);
    body[body_length] = '\0';
    ask(head, body, body_length);
    free(body);
    return 0;
}
