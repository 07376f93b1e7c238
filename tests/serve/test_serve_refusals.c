/* SPDX-License-Identifier: Apache-2.0 */
/* The service's own interface over a store, without a socket: each way of being wrong. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/api.h"
#include "v1_client.h"

static struct job_fixture fixture;

/* What is asked in vain, after a job, its first trial and that trial's epoch. */
static const struct {
    int status;
    const char *code, *method, *target, *body, *words;
} refusals[] = {
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
    {422, "FLY_EDATA", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "true"),
     "'energy_j': expected a number from 0, or null"},
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
     "no policy 'zues' is known here; choose one of auto, bayes, default, grid, zeus, zeus-server (did you "
     "mean 'zeus'?)"},
    {400, "FLY_EUSAGE", "PUT", "/v1/jobs/n",
     "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3, \"policy\": \"/tmp/mine.so\"}",
     "policy '/tmp/mine.so' is a path, and no client's path is loaded; name the"},
    {409, "FLY_ECONFLICT", "PUT", "/v1/jobs/j",
     "{\"batch_sizes\": [8], \"default_batch_size\": 8, \"max_epochs\": 3}", "max_epochs (20, now 3)"},
    {409, "FLY_ECONFLICT", "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "null"),
     "the first report stays"},
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
    {404, "FLY_EUNSUPPORTED", "GET", "/v1", NULL, "openapi.json"},
    {404, "FLY_EUNSUPPORTED", "GET", "/v1/", NULL, "openapi.json"},
    {404, "FLY_EUNSUPPORTED", "GET", "/v1/nothing", NULL, "there is nothing at"},
    {404, "FLY_EUNSUPPORTED", "GET", "/v1/jobs/j/trials/1/epochs/2", NULL, "there is nothing at"},
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

static void test_refused(void **state)
{
    (void)state;
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/j", DEFINITION);
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials", QUESTION);
    v1_do(&fixture.jobs, 200, "POST", "/v1/jobs/j/trials/1/epochs", EPOCH("1", "0.5", "1000"));
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct v1_answer answer =
            v1_ask(&fixture.jobs, refusals[i].method, refusals[i].target, refusals[i].body);
        const char *code = json_string_value(json_object_get(json_object_get(answer.json, "error"), "code"));

        if (answer.answer.status != refusals[i].status || code == NULL ||
            strcmp(code, refusals[i].code) != 0 || strstr(v1_message(&answer), refusals[i].words) == NULL)
            fail_msg("%s %s %s answers %d: %s; expected %d, %s, '%s'", refusals[i].method, refusals[i].target,
                     refusals[i].body != NULL ? refusals[i].body : "", answer.answer.status,
                     answer.answer.body.data, refusals[i].status, refusals[i].code, refusals[i].words);
        assert_int_equal(answer.answer.allow != NULL, refusals[i].status == 405);
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
    v1_do(&fixture.jobs, 200, "PUT", "/v1/jobs/j", DEFINITION);
    for (size_t length = JOB_TEXT_MAX - 1; length <= JOB_TEXT_MAX; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        snprintf(body, sizeof body, "{\"submission\": \"%s\", " HARDWARE "}", text);
        answer = v1_ask(&fixture.jobs, "POST", "/v1/jobs/j/trials", body);
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
        answer = v1_ask(&fixture.jobs, "PUT", "/v1/jobs/many", body);
        assert_int_equal(answer.answer.status, count == JOB_BATCHES_MAX ? 200 : 413);
        v1_answer_free(&answer);
    }
}

/* Parsed, a body takes many times its length. */
static void test_long_bodies(void **state)
{
    char *body = calloc(1, API_JSON_MAX + 2);

    (void)state;
    assert_non_null(body);
    for (size_t length = API_JSON_MAX; length <= API_JSON_MAX + 1; length++) {
        struct v1_answer answer;

        memset(body, ' ', length);
        answer = v1_ask(&fixture.jobs, "PUT", "/v1/jobs/j", body);
        assert_int_equal(answer.answer.status, length == API_JSON_MAX ? 400 : 413);
        check_contains(v1_message(&answer), length == API_JSON_MAX ? "no JSON" : "takes at most 262144");
        v1_answer_free(&answer);
        answer = v1_ask(&fixture.jobs, "POST", "/v1/jobs/j/events", body);
        assert_int_not_equal(answer.answer.status, 413);
        v1_answer_free(&answer);
    }
    free(body);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_refused),
        job_test(test_limits),
        job_test(test_long_bodies),
        job_test(test_scopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
