/* SPDX-License-Identifier: Apache-2.0 */
/* The service's own interface over a store, without a socket: each route, and each way of being wrong. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/api.h"
#include "v1_client.h"

static struct job_fixture fixture;

static int setup(void **state)
{
    (void)state;
    job_fixture_open(&fixture);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    job_fixture_close(&fixture);
    return 0;
}

#define DEFINITION                                                                                     \
    "{\"batch_sizes\": [8, 16, 32], \"default_batch_size\": 32, \"objective\": {\"kind\": \"cost\"}, " \
    "\"target\": \"at_least\", \"target_metric\": 0.9, \"max_epochs\": 20}"
#define HARDWARE                                                                                        \
    "\"hardware\": {\"gpu_model\": \"Test GPU\", \"gpu_count\": 1, \"gpu_memory_bytes\": 17179869184, " \
    "\"world_size\": 1, \"limits_w\": [100, 150, 200]}"
#define QUESTION "{" HARDWARE "}"
#define PROFILE                                                                                           \
    "{\"points\": [{\"limit_w\": 100, \"power_w\": 90, \"time_s\": 20}, {\"limit_w\": 150, \"power_w\": " \
    "110, "                                                                                               \
    "\"time_s\": 11}, {\"limit_w\": 200, \"power_w\": 190, \"time_s\": 10}], \"units_per_epoch\": 1}"
#define EPOCH(number, metric, energy)                                                       \
    "{\"attempt\": 1, \"epoch\": " number ", \"metric\": " metric ", \"energy_j\": " energy \
    ", \"time_s\": 10}"

static struct v1_answer ask(const char *method, const char *target, const char *body)
{
    return v1_ask(&fixture.jobs, method, target, body);
}

/* Asks what has to succeed with that status. */
static struct v1_answer ask_well(int status, const char *method, const char *target, const char *body)
{
    struct v1_answer answer = ask(method, target, body);

    if (answer.answer.status != status)
        fail_msg("%s %s answers %d: %s", method, target, answer.answer.status, answer.answer.body.data);
    return answer;
}

static void do_well(int status, const char *method, const char *target, const char *body)
{
    struct v1_answer answer = ask_well(status, method, target, body);

    v1_answer_free(&answer);
}

/* ---- a job's life ---- */

static void test_life(void **state)
{
    struct v1_answer answer = ask_well(200, "PUT", "/v1/jobs/digits", DEFINITION);

    (void)state;
    assert_false(json_is_true(json_object_get(answer.json, "known")));
    assert_string_equal(answer.note.job, "digits");
    v1_answer_free(&answer);
    answer = ask_well(200, "PUT", "/v1/jobs/digits", DEFINITION);
    assert_true(json_is_true(json_object_get(answer.json, "known")));
    v1_answer_free(&answer);

    answer = ask_well(200, "POST", "/v1/jobs/digits/trials", QUESTION);
    check_double(v1_number(&answer, "trial"), 1);
    check_double(v1_number(&answer, "batch_size"), 32);
    assert_true(json_is_null(json_object_get(answer.json, "limit_w")));
    assert_true(json_is_true(json_object_get(answer.json, "wants_profile")));
    assert_string_equal(v1_text(&answer, "reason"), "explore");
    assert_true(answer.note.decided);
    assert_string_equal(answer.note.gpu_model, "Test GPU");
    v1_answer_free(&answer);

    do_well(204, "POST", "/v1/jobs/digits/trials/1/heartbeats", "{\"attempt\": 1}");
    answer = ask_well(200, "POST", "/v1/jobs/digits/trials/1/profile", PROFILE);
    check_double(v1_number(&answer, "limit_w"), 150);
    v1_answer_free(&answer);
    answer = ask_well(200, "POST", "/v1/jobs/digits/trials/1/epochs", EPOCH("1", "null", "1000"));
    assert_string_equal(v1_text(&answer, "answer"), "go_on");
    assert_false(answer.note.ended);
    assert_true(isnan(answer.note.energy_j));
    v1_answer_free(&answer);
    answer = ask_well(200, "POST", "/v1/jobs/digits/trials/1/epochs", EPOCH("2", "0.95", "2000"));
    assert_string_equal(v1_text(&answer, "answer"), "reached");
    assert_string_equal(v1_text(&answer, "outcome"), "reached");
    assert_true(answer.note.ended);
    assert_int_equal(answer.note.outcome, TRIAL_REACHED);
    assert_string_equal(answer.note.gpu_model, "Test GPU");
    check_double(answer.note.energy_j, 2000);
    v1_answer_free(&answer);

    answer = ask_well(200, "GET", "/v1/jobs/digits", NULL);
    check_double(v1_number(&answer, "trials"), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(answer.json, "definition"), "name")), "digits");
    v1_answer_free(&answer);
    answer = ask_well(200, "GET", "/v1/jobs", NULL);
    assert_int_equal(json_array_size(json_object_get(answer.json, "jobs")), 1);
    v1_answer_free(&answer);
    answer = ask_well(200, "POST", "/v1/jobs/digits/expire", NULL);
    check_double(v1_number(&answer, "expired"), 0);
    v1_answer_free(&answer);
    do_well(204, "DELETE", "/v1/jobs/digits", NULL);
    do_well(404, "DELETE", "/v1/jobs/digits", NULL);
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
    do_well(200, "PUT", "/v1/jobs/j", DEFINITION);
    for (int i = 0; i < 2; i++) {
        answer = ask_well(200, "POST", "/v1/jobs/j/trials", "{\"request\": \"r\", " HARDWARE "}");
        assert_int_equal(answer.note.decided, i == 0);
        assert_int_equal(json_is_true(json_object_get(answer.json, "repeated")), i);
        v1_answer_free(&answer);
    }
    for (int i = 0; i < 2; i++) {
        answer = ask_well(200, "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.95", "2000"));
        assert_int_equal(answer.note.ended, i == 0);
        assert_int_equal(isnan(answer.note.energy_j), i);
        v1_answer_free(&answer);
    }
    for (int i = 0; i < 2; i++) {
        answer = ask_well(200, "POST", "/v1/jobs/j/trials/1/end", end);
        assert_false(answer.note.ended);
        check_double(v1_number(&answer, "energy_j"), 2500);
        if (i == 0)
            check_double(answer.note.energy_j, 500);
        else
            assert_true(isnan(answer.note.energy_j));
        v1_answer_free(&answer);
    }
    do_well(200, "POST", "/v1/jobs/j/trials", QUESTION);
    for (int i = 0; i < 2; i++) {
        answer = ask_well(200, "POST", "/v1/jobs/j/trials/2/end", crash);
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
    do_well(200, "PUT", "/v1/jobs/j", DEFINITION);
    do_well(204, "PATCH", "/v1/jobs/j", "{\"pin\": {\"batch_size\": 16}, \"control_every\": 5}");
    answer = ask_well(200, "GET", "/v1/jobs/j", NULL);
    check_double(v1_number(&answer, "pin_batch_size"), 16);
    assert_true(json_is_null(json_object_get(answer.json, "pin_limit_w")));
    check_double(v1_number(&answer, "control_every"), 5);
    v1_answer_free(&answer);
    do_well(204, "PATCH", "/v1/jobs/j",
            "{\"pin\": {\"batch_size\": 0}, \"objective\": {\"kind\": \"energy\", \"max_slowdown\": 1.03}}");
    answer = ask_well(200, "GET", "/v1/jobs/j", NULL);
    check_double(v1_number(&answer, "pin_batch_size"), 0);
    check_double(v1_number(&answer, "control_every"), 5);
    check_double(
        json_number_value(json_object_get(json_object_get(answer.json, "objective"), "max_slowdown")), 1.03);
    v1_answer_free(&answer);
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
        answer = ask_well(200, "GET", target, NULL);
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
    struct job_definition definition = job_fixture_definition("a");
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
    do_well(204, "POST", "/v1/jobs/b/events", large.data);
    do_well(409, "POST", "/v1/jobs/b/events", large.data);
    (void)read_pages("b", 100, &copy);
    assert_int_equal(copy.length, large.length); /* but for its name */
    buffer_deinit(&small);
    buffer_deinit(&large);
    buffer_deinit(&copy);
    answer = ask_well(200, "GET", "/v1/jobs/a/events?key=end/3", NULL);
    check_contains(answer.answer.body.data, "\"kind\":\"ended\",\"trial\":3,");
    v1_answer_free(&answer);
    answer = ask_well(200, "GET", "/v1/jobs/a/events?trial=2&limit=1", NULL);
    check_contains(answer.answer.body.data, "\"kind\":\"proposed\",\"trial\":2,");
    v1_answer_free(&answer);
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
    static const struct {
        int status;
        const char *code, *method, *target, *body, *words;
    } rows[] = {
        /* what is no JSON */
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "", "no JSON"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "{", "line 1, column 1 is no JSON"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "{\"a\": NaN}", "no JSON"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "{\"a\": 1} {}", "no JSON"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "{\"a\": 1, \"a\": 1}", "duplicate"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "{\"a\": \"\\ud800\"}", "no JSON"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n", "{\"a\": \"\xff\"}", "no JSON"},
        /* what has another shape */
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n", "[]", "no JSON object"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n", "{}", "'batch_sizes' is missing"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n", "{\"batch_sizes\": 8}", "'batch_sizes': expected a list"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n", "{\"batch_sizes\": [8, 0]}",
         "'batch_sizes[1]': expected a whole number of at least 1"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n", "{\"batch_sizes\": [8], \"default_batch_size\": 8.0}",
         "'default_batch_size': expected a whole number"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 1000001}",
         "'max_epochs': expected a whole number from 1 to 1000000"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"objective\": {\"kind\": \"enery\"}}",
         "'objective.kind': expected one of 'energy', 'time'"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"objective\": {\"kind\": \"cost\", \"eta\": 2}}",
         "'objective.eta': expected a number from 0 to 1"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3, \"max_epoch\": 3}",
         "'max_epoch' is not known here; did you mean 'max_epochs'?"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3, \"zzzzzzzzzzz\": 3}",
         "leave it out"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3, \"policy\": \"a\\u0007\"}",
         "'policy' has a control character"},
        {422, "FLY_EDATA", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3, \"trains_on\": 1}",
         "'trains_on': expected true or false"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials", "{}", "'hardware' is missing"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials",
         "{\"hardware\": {\"gpu_model\": \"x\", \"gpu_count\": 0}}",
         "'hardware.gpu_count': expected a whole number of at least 1"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials", "{\"hardware\": {\"gpu_model\": 7}}",
         "'hardware.gpu_model': expected a text"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "\"NaN\"", "1"),
         "'metric': expected a number, or null"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "-1"),
         "'energy_j': expected a number from 0"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("0", "0.5", "1"), "'epoch'"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "null"), "'energy_j'"},
        {400, "FLY_EUSAGE", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "1e999", "1"), "no JSON"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/profile", "{\"points\": [7]}",
         "'points[0]': expected an object"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/profile", "{\"points\": [{\"limit_w\": 0}]}",
         "'points[0].limit_w': expected a number above 0"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/end", "{\"attempt\": 1, \"outcome\": \"expired\"}",
         "'outcome': expected one of"},
        /* what does not fit the job */
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 9, \"max_epochs\": 3}", "not in batch_sizes"},
        {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3, \"policy\": \"zues\"}",
         "no policy 'zues'"},
        {409, "FLY_ECONFLICT", "PUT", "/v1/jobs/j",
         "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3}", "max_epochs (20, now 3)"},
        {409, "FLY_ECONFLICT", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "1001"),
         "the first report stays"},
        {409, "FLY_ESTATE", "POST", "/v1/jobs/j/trials/1/heartbeats", "{\"attempt\": 2}", "attempt 1, not 2"},
        {400, "FLY_EUSAGE", "PATCH", "/v1/jobs/j", "{\"pin\": {\"batch_size\": 7}}", "not one of its"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/n/events", "{}", "line 1"},
        {422, "FLY_EDATA", "POST", "/v1/jobs/n/events", "", "no events"},
        /* what is not there */
        {404, "FLY_ENOTFOUND", "GET", "/v1/jobs/nobody", NULL, "nobody"},
        {404, "FLY_ENOTFOUND", "POST", "/v1/jobs/nobody/trials", QUESTION, "nobody"},
        {404, "FLY_ENOTFOUND", "GET", "/v1/jobs/nobody/events", NULL, "nobody"},
        {404, "FLY_ENOTFOUND", "POST", "/v1/jobs/j/trials/9/epochs", EPOCH("1", "0.5", "1"), "no trial 9"},
        {404, "FLY_ENOTFOUND", "POST", "/v1/jobs/j/trials/0/epochs", EPOCH("1", "0.5", "1"), "trial '0'"},
        {404, "FLY_ENOTFOUND", "POST", "/v1/jobs/j/trials/x/epochs", EPOCH("1", "0.5", "1"), "trial 'x'"},
        {404, "FLY_ENOTFOUND", "PUT", "/v1/jobs/.n", DEFINITION, "cannot be"},
        {404, "FLY_ENOTFOUND", "PUT", "/v1/jobs/a%20b", DEFINITION, "cannot be"},
        {404, "FLY_ENOTFOUND", "PUT", "/v1/jobs/a%2", DEFINITION, "cannot be"},
        {404, "FLY_ENOTFOUND", "PUT", "/v1/jobs/a%00", DEFINITION, "cannot be"},
        {404, "FLY_ENOTFOUND", "GET", "/v1/jobs/", NULL, "cannot be"},
        {404, "FLY_ENOTFOUND", "GET", "/v1", NULL, "openapi.json"},
        {404, "FLY_ENOTFOUND", "GET", "/v1/", NULL, "openapi.json"},
        {404, "FLY_ENOTFOUND", "GET", "/v1/nothing", NULL, "there is nothing at"},
        {404, "FLY_ENOTFOUND", "GET", "/v1/jobs/j/trials/1/epochs/2", NULL, "there is nothing at"},
        /* the wrong method or query */
        {405, "FLY_EUSAGE", "GET", "/v1/jobs/j/trials", NULL, "it takes POST"},
        {405, "FLY_EUSAGE", "POST", "/v1/jobs/j", "{}", "it takes GET, PUT, PATCH, DELETE"},
        {405, "FLY_EUSAGE", "HEAD", "/v1/jobs/j/events", NULL, "it takes GET, POST"},
        {405, "FLY_EUSAGE", "POST", "/v1/openapi.json", "{}", "GET"},
        {400, "FLY_EUSAGE", "GET", "/v1/jobs/j/events?after=-1", NULL, "'after=-1': expected a whole number"},
        {400, "FLY_EUSAGE", "GET", "/v1/jobs/j/events?limit=0", NULL, "'limit=0'"},
        {400, "FLY_EUSAGE", "GET", "/v1/jobs/j/events?since=1", NULL, "'since' is not known"},
        {400, "FLY_EUSAGE", "DELETE", "/v1/jobs/j", "{}", "takes no body"},
    };

    (void)state;
    do_well(200, "PUT", "/v1/jobs/j", DEFINITION);
    do_well(200, "POST", "/v1/jobs/j/trials", QUESTION);
    do_well(200, "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "1000"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct v1_answer answer = ask(rows[i].method, rows[i].target, rows[i].body);
        const char *code = json_string_value(json_object_get(json_object_get(answer.json, "error"), "code"));

        if (answer.answer.status != rows[i].status || code == NULL || strcmp(code, rows[i].code) != 0 ||
            strstr(v1_message(&answer), rows[i].words) == NULL)
            fail_msg("%s %s %s answers %d: %s; expected %d, %s, '%s'", rows[i].method, rows[i].target,
                     rows[i].body != NULL ? rows[i].body : "", answer.answer.status, answer.answer.body.data,
                     rows[i].status, rows[i].code, rows[i].words);
        assert_int_equal(answer.answer.allow != NULL, rows[i].status == 405);
        assert_false(answer.note.ended || answer.note.decided);
        v1_answer_free(&answer);
    }
    assert_int_equal(job_fixture_count(&fixture, "j", "epoch", 0), 1);
}

/* Texts and lists at their limits, and one beyond. */
static void test_limits(void **state)
{
    char body[1 << 15], text[600];
    struct v1_answer answer;

    (void)state;
    do_well(200, "PUT", "/v1/jobs/j", DEFINITION);
    for (size_t length = JOB_TEXT_MAX - 1; length <= JOB_TEXT_MAX; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        snprintf(body, sizeof body, "{\"submission\": \"%s\", " HARDWARE "}", text);
        answer = ask("POST", "/v1/jobs/j/trials", body);
        assert_int_equal(answer.answer.status, length < JOB_TEXT_MAX ? 200 : 413);
        if (length == JOB_TEXT_MAX)
            check_contains(v1_message(&answer), "'submission': longer than 127 bytes");
        v1_answer_free(&answer);
    }
    for (size_t count = JOB_BATCHES_MAX; count <= JOB_BATCHES_MAX + 1; count++) {
        size_t length = (size_t)snprintf(body, sizeof body, "{\"batch_sizes\": [1");

        for (size_t i = 2; i <= count; i++)
            length += (size_t)snprintf(body + length, sizeof body - length, ",%zu", i);
        snprintf(body + length, sizeof body - length, "], \"default_batch_size\": 1, \"max_epochs\": 1}");
        answer = ask("PUT", "/v1/jobs/many", body);
        assert_int_equal(answer.answer.status, count == JOB_BATCHES_MAX ? 200 : 413);
        v1_answer_free(&answer);
    }
}

static void test_scopes(void **state)
{
    static const char *const words[] = {
        [API_TO_READ] = "read", [API_TO_TRAIN] = "train", [API_TO_MANAGE] = "manage"};

    (void)state;
    for (size_t i = 0; i < API_OPERATIONS; i++) {
        const struct api_place place = {.operation = (enum api_operation)i, .job = "j", .trial = 1};
        enum api_right right = api_routes[i].right;
        struct buffer path;

        buffer_init(&path, API_PATH_MAX);
        api_put_path(&place, &path);
        for (int scope = SERVE_NOBODY; scope <= SERVE_MANAGE; scope++) {
            struct v1_answer answer =
                v1_ask_as(&fixture.jobs, (enum serve_scope)scope, api_routes[i].method, path.data, NULL);

            assert_int_equal(answer.answer.status == 403, scope < (int)right + SERVE_READ);
            if (answer.answer.status == 403)
                check_contains(v1_message(&answer), words[right]);
            v1_answer_free(&answer);
        }
        buffer_deinit(&path);
    }
}

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
    struct v1_answer answer = ask_well(200, "GET", "/v1/openapi.json", NULL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_set, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scopes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_paths, setup, teardown),
        cmocka_unit_test(test_paths),
        cmocka_unit_test_setup_teardown(test_document, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
