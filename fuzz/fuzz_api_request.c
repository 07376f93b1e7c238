/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to the service's own interface ("PUT /v1/jobs/a?x=1", and the body in the lines after it) over
 * jobs that answer everything in the same way. Every request is answered in the documented form, and what
 * reaches the jobs could be sent again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "job/core/api.h"
#include "job/core/definition.h"
#include "serve/route_family.h"

enum { HEAD_MAX = 4096, ANSWER_MAX = 4 << 20 };

/* ---- jobs ---- */

/* What was read from a body can be written to one. */
static void check_asked(const struct shape *shape, const void *asked)
{
    json_t *json = NULL;

    FUZZ_CHECK(shape_write(shape, asked, &json, NULL) == 0);
    json_decref(json);
}

static int define(void *self, const struct fly_job_definition *definition,
                  struct job_registered *out_registered, struct fly_error *out_error)
{
    (void)self;
    check_asked(&shape_definition, definition);
    if (job_definition_check(definition, out_error) < 0)
        return out_error->code;
    *out_registered = (struct job_registered){.trials = 1};
    return 0;
}

static int set(void *self, const struct job_setting *setting, struct fly_error *out_error)
{
    (void)self;
    check_asked(&shape_setting, setting);
    return setting->set_pin ? 0 : error_set(out_error, FLY_EBUSY, "it is locked");
}

static int propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                   struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    check_asked(&shape_question, question);
    *out_proposal = (struct job_proposal){
        .trial = 1, .attempt = 1, .batch_size = 1, .local_batch_size = 1, .limit_w = NAN};
    return 0;
}

static int profile(void *self, const struct job_profile *asked, struct job_choice *out_choice,
                   struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    check_asked(&shape_profile, asked);
    *out_choice = (struct job_choice){.limit_w = asked->point_count > 0 ? asked->points[0].limit_w : NAN};
    return 0;
}

static int heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    check_asked(&shape_beat, beat);
    return 0;
}

static int report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                  struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    check_asked(&shape_epoch, epoch);
    FUZZ_CHECK(epoch->trial > 0);
    *out_answered = (struct job_answered){.energy_j = epoch->energy_j, .ends = true};
    return 0;
}

static int end(void *self, const struct job_end *asked, struct job_ended *out_ended,
               struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    check_asked(&shape_end, asked);
    *out_ended = (struct job_ended){.outcome = asked->outcome, .energy_j = asked->energy_j};
    return 0;
}

static int expire(void *self, const char *job, uint64_t *out_expired, struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    FUZZ_CHECK(job_name_fits(job));
    *out_expired = 3;
    return 0;
}

static int list(void *self, struct arena *arena, struct job_list *out_list, struct fly_error *out_error)
{
    static struct job_summary summary = {.name = "a", .policy = "", .trouble = "caf\xc3\xa9"};

    (void)self;
    (void)arena;
    (void)out_error;
    *out_list = (struct job_list){&summary, 1};
    return 0;
}

static int show(void *self, const char *job, struct arena *arena, struct job_shown *out_shown,
                struct fly_error *out_error)
{
    (void)self;
    (void)arena;
    (void)out_shown;
    return error_set(out_error, FLY_ENOTFOUND, "no job '%s'", job);
}

static int read_log(void *self, const char *job, const struct store_query *query, store_visit *visit,
                    void *state, struct fly_error *out_error)
{
    int code = 0;

    (void)self;
    FUZZ_CHECK(job_name_fits(job) && query->limit > 0 && query->limit <= API_PAGE_EVENTS);
    for (uint64_t i = 1; i <= query->limit && i < 4 && code == 0; i++)
        code = visit(state, &(struct store_event){.number = i, .kind = "set", .key = "", .body = "{}"},
                     out_error);
    return code;
}

static int import(void *self, const char *job, const char *text, size_t length, struct fly_error *out_error)
{
    (void)self;
    (void)out_error;
    FUZZ_CHECK(job_name_fits(job) && strlen(text) <= length);
    return 0;
}

static int remove_job(void *self, const char *job, struct fly_error *out_error)
{
    (void)self;
    return error_set(out_error, FLY_EUNSURE, "%s", job);
}

static const struct job_backend backend = {
    .name = "same",
    .define = define,
    .set = set,
    .propose = propose,
    .profile = profile,
    .heartbeat = heartbeat,
    .report = report,
    .end = end,
    .expire = expire,
    .list = list,
    .show = show,
    .read = read_log,
    .import = import,
    .remove = remove_job,
};

/* ---- requests ---- */

static void check_answer(const struct serve_answer *answer)
{
    json_t *json = NULL;
    struct job_failure failure;
    struct arena arena;

    FUZZ_CHECK(answer->status >= 200 && answer->status < 600);
    if (answer->status == 204) {
        FUZZ_CHECK(answer->body.length == 0);
        return;
    }
    FUZZ_CHECK((answer->status == 405) == (answer->allow != NULL));
    if (strcmp(answer->type, API_JSON_TYPE) != 0)
        return;
    FUZZ_CHECK(shape_parse(answer->body.data, answer->body.length, &json, NULL) == 0);
    if (answer->status != 200) {
        arena_init(&arena, 1 << 16);
        FUZZ_CHECK(shape_read(&shape_failure, json, SHAPE_STRICT, &arena, &failure, NULL) == 0);
        FUZZ_CHECK(api_error_code(failure.error.code) < 0 && failure.error.message[0] != '\0');
        arena_deinit(&arena);
    }
    json_decref(json);
}

/* Cuts "METHOD path?name=value&..." in place. */
static void read_head(char *head, struct serve_request *request)
{
    char *path = strchr(head, ' '), *query;

    request->method = head;
    request->path = path != NULL ? path + 1 : "";
    if (path == NULL)
        return;
    *path++ = '\0';
    query = strchr(path, '?');
    if (query == NULL)
        return;
    *query++ = '\0';
    for (char *saved = NULL, *name = strtok_r(query, "&", &saved);
         name != NULL && request->query_count < SERVE_QUERY_MAX; name = strtok_r(NULL, "&", &saved)) {
        char *value = strchr(name, '=');

        if (value == NULL)
            return;
        *value++ = '\0';
        request->query[request->query_count++] = (struct serve_parameter){name, value};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct jobs jobs = {.backend = &backend};
    const uint8_t *newline = memchr(data, '\n', size);
    size_t head_length = newline != NULL ? (size_t)(newline - data) : size;
    size_t body_length = newline != NULL ? size - head_length - 1 : 0;
    char head[HEAD_MAX], *body = malloc(body_length + 1);
    struct serve_request request = {
        .body = body, .body_length = body_length, .scope = SERVE_MANAGE, .caller_name = ""};
    struct serve_answer answer = {.status = 0};
    struct serve_note note = {.job = ""};

    if (head_length >= sizeof head || body == NULL) {
        free(body);
        return 0;
    }
    memcpy(head, data, head_length);
    head[head_length] = '\0';
    if (body_length > 0)
        memcpy(body, newline + 1, body_length);
    body[body_length] = '\0';
    read_head(head, &request);
    buffer_init(&answer.body, ANSWER_MAX);
    if (serve_v1.answer(&jobs, &request, &answer, &note))
        check_answer(&answer);
    buffer_deinit(&answer.body);
    free(body);
    return 0;
}
