/* SPDX-License-Identifier: Apache-2.0 */
/* The service's own interface over a store, without a socket: each route. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/api.h"
#include "v1_client.h"

static struct job_fixture fixture;

#define GRID_DEFINITION(grid)                                                                            \
    "{\"batch_sizes\": [8, 16, 32], \"default_batch_size\": 32, \"objective\": {\"kind\": \"carbon\"}, " \
    "\"target\": \"at_least\", \"target_metric\": 0.9, \"max_epochs\": 20, \"grid\": " grid "}"

/* ---- a job's life ---- */

static void test_life(void **state)
{
    struct v1_answer answer = v1_well(&fixture.jobs, 200, "PUT", "/v1/jobs/digits", DEFINITION);

    (void)state;
    assert_false(json_is_true(json_object_get(answer.json, "known")));
    assert_string_equal(answer.note.job, "digits");
    v1_answer_free(&answer);
    answer = v1_well(&fixture.jobs, 200, "PUT", "/v1/jobs/digits", DEFINITION);
    assert_true(json_is_true(json_object_get(answer.json, "known")));
    v1_answer_free(&answer);

    answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/digits/trials", QUESTION);
    check_double(v1_number(&answer, "trial"), 1);
    check_double(v1_number(&answer, "batch_size"), 32);
    assert_true(json_is_null(json_object_get(answer.json, "limit_w")));
    assert_true(json_is_true(json_object_get(answer.json, "wants_profile")));
    assert_string_equal(v1_text(&answer, "reason"), "explore");
    assert_true(answer.note.decided);
    assert_string_equal(answer.note.gpu_model, "Test GPU");
    v1_answer_free(&answer);

    v1_do(&fixture.jobs, 204, "POST", "/v1/jobs/digits/trials/1/heartbeats", "{\"attempt\": 1}");
    answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/digits/trials/1/profile", PROFILE);
    check_double(v1_number(&answer, "limit_w"), 150);
    v1_answer_free(&answer);
    answer =
        v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/digits/trials/1/epochs", EPOCH("1", "null", "1000"));
    assert_string_equal(v1_text(&answer, "answer"), "go_on");
    assert_false(answer.note.ended);
    assert_true(isnan(answer.note.energy_j));
    v1_answer_free(&answer);
    answer =
        v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/digits/trials/1/epochs", EPOCH("2", "0.95", "2000"));
    assert_string_equal(v1_text(&answer, "answer"), "reached");
    assert_string_equal(v1_text(&answer, "outcome"), "reached");
    assert_true(answer.note.ended);
    assert_int_equal(answer.note.outcome, TRIAL_REACHED);
    assert_string_equal(answer.note.gpu_model, "Test GPU");
    check_double(answer.note.energy_j, 2000);
    v1_answer_free(&answer);

    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs/digits", NULL);
    check_double(v1_number(&answer, "trials"), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(answer.json, "definition"), "name")), "digits");
    v1_answer_free(&answer);
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs", NULL);
    assert_int_equal(json_array_size(json_object_get(answer.json, "jobs")), 1);
    v1_answer_free(&answer);
    answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/digits/expire", NULL);
    check_double(v1_number(&answer, "expired"), 0);
    v1_answer_free(&answer);
    v1_do(&fixture.jobs, 204, "DELETE", "/v1/jobs/digits", NULL);
    v1_do(&fixture.jobs, 404, "DELETE", "/v1/jobs/digits", NULL);
}

/* What a repeated request counts: nothing. What a run took after its end counts once. */
static void test_notes(void **state)
{
    static const char *const end =
        "{\"attempt\": 1, \"outcome\": \"reached\", \"energy_j\": 2500, \"time_s\": 25}";
    static const char *const crash = "{\"attempt\": 1, \"outcome\": \"crashed\", \"energy_j\": 70, "
                                     "\"time_s\": 2, \"text\": \"two\\nlines\"}";
    struct v1_answer answer;

    (void)state;
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/j", DEFINITION);
    for (int i = 0; i < 2; i++) {
        answer =
            v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials", "{\"request\": \"r\", " HARDWARE "}");
        assert_int_equal(answer.note.decided, i == 0);
        assert_int_equal(json_is_true(json_object_get(answer.json, "repeated")), i);
        v1_answer_free(&answer);
    }
    for (int i = 0; i < 2; i++) {
        answer =
            v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.95", "2000"));
        assert_int_equal(answer.note.ended, i == 0);
        assert_int_equal(isnan(answer.note.energy_j), i);
        v1_answer_free(&answer);
    }
    for (int i = 0; i < 2; i++) {
        answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials/1/end", end);
        assert_false(answer.note.ended);
        check_double(v1_number(&answer, "energy_j"), 2500);
        if (i == 0)
            check_double(answer.note.energy_j, 500);
        else
            assert_true(isnan(answer.note.energy_j));
        v1_answer_free(&answer);
    }
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials", QUESTION);
    for (int i = 0; i < 2; i++) {
        answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials/2/end", crash);
        assert_int_equal(answer.note.ended, i == 0);
        assert_int_equal(answer.note.outcome, TRIAL_CRASHED);
        assert_int_equal(isnan(answer.note.energy_j), i);
        assert_string_equal(answer.note.gpu_model, "Test GPU");
        v1_answer_free(&answer);
    }
}

static void test_set(void **state)
{
    struct v1_answer answer;

    (void)state;
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/j", DEFINITION);
    v1_do(&fixture.jobs, 204, "PATCH", "/v1/jobs/j", "{\"pin\": {\"batch_size\": 16}, \"control_every\": 5}");
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs/j", NULL);
    check_double(v1_number(&answer, "pin_batch_size"), 16);
    assert_true(json_is_null(json_object_get(answer.json, "pin_limit_w")));
    check_double(v1_number(&answer, "control_every"), 5);
    v1_answer_free(&answer);
    v1_do(&fixture.jobs, 204, "PATCH", "/v1/jobs/j",
          "{\"pin\": {\"batch_size\": 0}, \"objective\": {\"kind\": \"energy\", \"max_slowdown\": 1.03}}");
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs/j", NULL);
    check_double(v1_number(&answer, "pin_batch_size"), 0);
    check_double(v1_number(&answer, "control_every"), 5);
    check_double(
        json_number_value(json_object_get(json_object_get(answer.json, "objective"), "max_slowdown")), 1.03);
    v1_answer_free(&answer);
}

/* Trials that somebody's call wrote down as expired, for the figures: once, and by their GPU. */
static void test_expired(void **state)
{
    struct job_expiries expiries;
    struct v1_answer answer;

    (void)state;
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/j", DEFINITION);
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials", QUESTION);
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials",
          "{\"hardware\": {\"gpu_model\": \"Other\", \"gpu_count\": 1, \"world_size\": 1, "
          "\"max_power_w\": 100}}");
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials", QUESTION);
    fixture.jobs.backend->take_expired(fixture.jobs.self, &expiries);
    assert_int_equal(expiries.count, 0);
    fixture.now_us += (int64_t)86401e6;
    answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials", QUESTION);
    assert_false(answer.note.ended);
    v1_answer_free(&answer);
    fixture.jobs.backend->take_expired(fixture.jobs.self, &expiries);
    assert_int_equal(expiries.count, 2);
    assert_string_equal(expiries.of[0].gpu_model, "Test GPU");
    assert_int_equal(expiries.of[0].trials, 2);
    assert_string_equal(expiries.of[1].gpu_model, "Other");
    assert_int_equal(expiries.of[1].trials, 1);
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/expire", NULL);
    fixture.jobs.backend->take_expired(fixture.jobs.self, &expiries);
    assert_int_equal(expiries.count, 0);
}

/* ---- the log ---- */

/* Reads the log page by page. */
static size_t read_pages(const char *job, unsigned limit, struct buffer *out)
{
    uint64_t after = 0;
    size_t pages = 0;

    for (;;) {
        char target[200];
        struct v1_answer answer;
        const char *last;

        snprintf(target, sizeof target, "/v1/jobs/%s/events?after=%llu&limit=%u", job,
                 (unsigned long long)after, limit);
        answer = v1_well(&fixture.jobs, 200, "GET", target, NULL);
        assert_string_equal(answer.answer.type, "application/x-ndjson");
        if (answer.answer.body.length == 0) {
            v1_answer_free(&answer);
            return pages;
        }
        pages++;
        buffer_puts(out, answer.answer.body.data);
        answer.answer.body.data[answer.answer.body.length - 1] = '\0';
        last = strrchr(answer.answer.body.data, '\n');
        after = strtoull(strstr(last != NULL ? last : answer.answer.body.data, "\"number\":") +
                             strlen("\"number\":"),
                         NULL, 10);
        v1_answer_free(&answer);
    }
}

static void test_log(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("a");
    struct job_question question = job_fixture_question("a");
    struct buffer small, large, copy;
    struct v1_answer answer;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 10; i++)
        job_fixture_train(&fixture, &question, 3, 1000, 10, 0.95, NULL);
    buffer_init(&small, 1 << 20);
    buffer_init(&large, 1 << 20);
    buffer_init(&copy, 1 << 20);
    assert_true(read_pages("a", 7, &small) > 7);
    assert_int_equal(read_pages("a", 1000000, &large), 1);
    assert_string_equal(small.data, large.data);
    v1_do(&fixture.jobs, 204, "POST", "/v1/jobs/b/events", large.data);
    v1_do(&fixture.jobs, 409, "POST", "/v1/jobs/b/events", large.data);
    (void)read_pages("b", 100, &copy);
    assert_int_equal(copy.length, large.length); /* but for its name */
    buffer_deinit(&small);
    buffer_deinit(&large);
    buffer_deinit(&copy);
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs/a/events?key=end/3", NULL);
    check_contains(answer.answer.body.data, "\"kind\":\"ended\",\"trial\":3,");
    v1_answer_free(&answer);
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs/a/events?trial=2&limit=1", NULL);
    check_contains(answer.answer.body.data, "\"kind\":\"proposed\",\"trial\":2,");
    v1_answer_free(&answer);
}

/* ---- paths ---- */

static void test_other_paths(void **state)
{
    static const char *const paths[] = {"/", "/jobs", "/v10/jobs", "/v1x", ""};
    struct serve_answer answer = {.status = 0};
    struct serve_note note;

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++)
        assert_false(serve_v1.answer(&fixture.jobs,
                                     &(struct serve_request){.method = "GET", .path = paths[i], .body = ""},
                                     &answer, &note));
}

/* Every path is found again from what it is written as. */
static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < API_OPERATIONS; i++) {
        const struct api_route *route = &api_routes[i];
        bool has_job = strstr(route->path, "{job}") != NULL,
             has_trial = strstr(route->path, "{trial}") != NULL;
        struct api_place place = {.operation = (enum api_operation)i, .trial = has_trial ? 77 : 0}, found;
        const char *allowed = NULL;
        struct fly_error error;
        struct buffer path;

        snprintf(place.job, sizeof place.job, "%s", has_job ? "a.b_C-9" : "");
        buffer_init(&path, API_PATH_MAX);
        api_put_path(&place, &path);
        check_fine(api_find(route->method, path.data, &found, &allowed, &error), error);
        assert_int_equal(found.operation, i);
        assert_string_equal(found.job, place.job);
        assert_true(found.trial == place.trial);
        assert_int_equal(api_find("BREW", path.data, &found, &allowed, &error), FLY_EUSAGE);
        assert_non_null(strstr(allowed, route->method));
        buffer_deinit(&path);
    }
}

/* ---- the document ---- */

static void test_document(void **state)
{
    struct v1_answer answer = v1_well(&fixture.jobs, 200, "GET", "/v1/openapi.json", NULL);
    json_t *paths = json_object_get(answer.json, "paths");
    json_t *schemas = json_object_get(json_object_get(answer.json, "components"), "schemas");
    size_t count = 0;
    const char *name;
    json_t *path;

    (void)state;
    assert_string_equal(v1_text(&answer, "openapi"), "3.1.0");
    for (size_t i = 0; i < API_OPERATIONS; i++) {
        char method[16];
        json_t *operation;

        snprintf(method, sizeof method, "%s", api_routes[i].method);
        for (char *at = method; *at != '\0'; at++)
            *at = (char)(*at + 'a' - 'A');
        operation = json_object_get(json_object_get(paths, api_routes[i].path), method);
        assert_non_null(operation);
        assert_string_equal(json_string_value(json_object_get(operation, "operationId")), api_routes[i].name);
        assert_non_null(json_object_get(json_object_get(operation, "responses"), "422"));
    }
    json_object_foreach(paths, name, path) count += json_object_size(path);
    assert_int_equal(count, API_OPERATIONS);
    assert_non_null(json_object_get(schemas, "Hardware"));
    assert_non_null(json_object_get(schemas, "Failure"));
    v1_answer_free(&answer);
}

/* A grid is part of the definition, and an objective of it needs one. */
static void test_grid(void **state)
{
    static const char with[] = GRID_DEFINITION("\"gb:national\""), other[] = GRID_DEFINITION("\"gb:13\""),
                      without[] = GRID_DEFINITION("\"\""), number[] = GRID_DEFINITION("7");
    static const char epoch[] = "{\"attempt\": 1, \"epoch\": 1, \"metric\": 0.95, \"energy_j\": 1000, "
                                "\"time_s\": 10, \"reference_per_kwh\": 230.5}";
    struct v1_answer answer;

    (void)state;
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/digits", with);
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/digits", with);
    answer = v1_well(&fixture.jobs, 409, "PUT", "/v1/jobs/digits", other);
    check_contains(v1_message(&answer), "grid (\"gb:national\", now \"gb:13\")");
    v1_answer_free(&answer);
    answer = v1_well(&fixture.jobs, 400, "PUT", "/v1/jobs/none", without);
    check_contains(v1_message(&answer), "counts by a grid");
    v1_answer_free(&answer);
    answer = v1_ask(&fixture.jobs, "PUT", "/v1/jobs/none", number);
    check_contains(v1_message(&answer), "grid");
    v1_answer_free(&answer);

    answer = v1_well(&fixture.jobs, 200, "POST", "/v1/jobs/digits/trials", QUESTION);
    assert_true(json_is_null(json_object_get(answer.json, "expected_epochs")));
    v1_answer_free(&answer);
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/digits/trials/1/epochs", epoch);
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/jobs/digits/events?key=end/1", NULL);
    check_contains(answer.answer.body.data, "\"reference_per_kwh\":230.5");
    v1_answer_free(&answer);
    answer = v1_well(&fixture.jobs, 200, "GET", "/v1/openapi.json", NULL);
    check_contains(answer.answer.body.data, "\"reference_per_kwh\"");
    v1_answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_life),          job_test(test_notes),    job_test(test_expired),
        job_test(test_set),           job_test(test_log),      job_test(test_other_paths),
        cmocka_unit_test(test_paths), job_test(test_document), job_test(test_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
