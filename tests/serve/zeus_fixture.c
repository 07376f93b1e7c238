/* SPDX-License-Identifier: Apache-2.0 */
#include "zeus_fixture.h"

#include "compat/zeus/serve/serve_zeus.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_MAX = 1 << 20 };

void zeus_fixture_open(struct zeus_fixture *fixture)
{
    job_fixture_open(&fixture->jobs);
    buffer_init(&fixture->last.body, ANSWER_MAX);
}

void zeus_fixture_close(struct zeus_fixture *fixture)
{
    buffer_deinit(&fixture->last.body);
    job_fixture_close(&fixture->jobs);
}

int zeus_fixture_setup(void **state)
{
    zeus_fixture_open(*state);
    return 0;
}

int zeus_fixture_teardown(void **state)
{
    zeus_fixture_close(*state);
    return 0;
}

/* Into `last` and `note`; the status. */
int zeus_fixture_ask_as(struct zeus_fixture *fixture, enum serve_scope scope, const char *method,
                        const char *path, const char *job_id, const char *body)
{
    struct serve_request request = {.method = method,
                                    .path = path,
                                    .query = {{"job_id", job_id}},
                                    .query_count = job_id != NULL,
                                    .body = body,
                                    .body_length = strlen(body),
                                    .scope = scope,
                                    .caller_name = ""};

    assert_true(serve_zeus.answer(&fixture->jobs.jobs, &request, &fixture->last, &fixture->note));
    assert_string_equal(fixture->last.type, "application/json");
    return fixture->last.status;
}

int zeus_fixture_ask(struct zeus_fixture *fixture, const char *method, const char *path, const char *job_id,
                     const char *body)
{
    return zeus_fixture_ask_as(fixture, SERVE_MANAGE, method, path, job_id, body);
}

/* With a JSON body that is taken, and the answer's JSON. */
int zeus_fixture_ask_json(struct zeus_fixture *fixture, const char *method, const char *path,
                          const char *job_id, json_t *body, json_t **out_answer)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    int status = zeus_fixture_ask(fixture, method, path, job_id, text != NULL ? text : "");

    *out_answer = json_loads(fixture->last.body.data, JSON_DECODE_ANY, NULL);
    assert_non_null(*out_answer);
    free(text);
    json_decref(body);
    return status;
}

/* A specification whose members `more` (taken; null: none) overrides. */
json_t *zeus_fixture_job(json_t *more)
{
    json_t *job =
        json_pack("{s:s, s:s, s:[iiiii], s:i, s:f, s:i, s:f, s:i, s:s}", "job_id", "job-1", "job_id_prefix",
                  "job", "batch_sizes", 8, 16, 32, 64, 128, "default_batch_size", 32, "target_metric", 0.9,
                  "max_epochs", 20, "max_power", 250.0, "number_of_gpus", 1, "gpu_model", "V100");

    assert_non_null(job);
    if (more != NULL)
        json_object_update(job, more);
    json_decref(more);
    return job;
}

void zeus_fixture_register(struct zeus_fixture *fixture, json_t *more)
{
    json_t *answer;

    assert_int_equal(zeus_fixture_ask_json(fixture, "POST", "/jobs", NULL, zeus_fixture_job(more), &answer),
                     201);
    json_decref(answer);
}

struct zeus_given zeus_fixture_predict(struct zeus_fixture *fixture, const char *job_id)
{
    struct zeus_given given;
    json_t *answer;

    assert_int_equal(zeus_fixture_ask_json(fixture, "GET", "/jobs/batch_size", job_id, NULL, &answer), 200);
    assert_string_equal(json_string_value(json_object_get(answer, "job_id")), job_id);
    given.batch_size = (uint32_t)json_integer_value(json_object_get(answer, "batch_size"));
    given.trial = (uint64_t)json_integer_value(json_object_get(answer, "trial_number"));
    json_decref(answer);
    return given;
}

json_t *zeus_fixture_report_json(struct zeus_given given, int epoch, double energy_j, double metric)
{
    return json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:i}", "job_id", "job-1", "batch_size",
                     (json_int_t)given.batch_size, "trial_number", (json_int_t)given.trial, "time",
                     energy_j / (100 + given.batch_size), "energy", energy_j, "metric", metric,
                     "current_epoch", epoch);
}

/* Whether it has to stop; the status has to be 200. */
bool zeus_fixture_report(struct zeus_fixture *fixture, struct zeus_given given, int epoch, double energy_j,
                         double metric, bool *out_converged)
{
    json_t *answer;
    bool stop;

    assert_int_equal(zeus_fixture_ask_json(fixture, "POST", "/report", NULL,
                                           zeus_fixture_report_json(given, epoch, energy_j, metric), &answer),
                     200);
    stop = json_is_true(json_object_get(answer, "stop_train"));
    if (out_converged != NULL)
        *out_converged = json_is_true(json_object_get(answer, "converged"));
    json_decref(answer);
    return stop;
}

/* A training of one epoch that reaches its target; what it was. */
struct zeus_given zeus_fixture_train(struct zeus_fixture *fixture, double energy_j)
{
    struct zeus_given given = zeus_fixture_predict(fixture, "job-1");
    bool converged;

    assert_true(zeus_fixture_report(fixture, given, 1, energy_j, 0.95, &converged));
    assert_true(converged);
    return given;
}

/* The specification's text with that member. */
char *zeus_fixture_job_text(const char *member, const char *text)
{
    json_t *job = zeus_fixture_job(NULL);
    char *rest, *whole = malloc(4096);

    json_object_del(job, member);
    rest = json_dumps(job, JSON_COMPACT);
    if (text != NULL)
        snprintf(whole, 4096, "{\"%s\": %s, %s", member, text, rest + 1);
    else
        snprintf(whole, 4096, "%s", rest);
    free(rest);
    json_decref(job);
    return whole;
}

int zeus_fixture_leave(struct zeus_fixture *fixture, struct zeus_given given)
{
    json_t *answer;
    int status = zeus_fixture_ask_json(fixture, "PATCH", "/trials", NULL,
                                       json_pack("{s:s, s:I, s:I}", "job_id", "job-1", "batch_size",
                                                 (json_int_t)given.batch_size, "trial_number",
                                                 (json_int_t)given.trial),
                                       &answer);

    json_decref(answer);
    return status;
}
