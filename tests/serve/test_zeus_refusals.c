/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes of the public batch-size server answer to requests that are wrong. */
#include "zeus_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "compat/zeus/serve/serve_zeus.h"

static struct zeus_fixture fixture;

/* A specification with one member in other words: text of JSON, or NULL for without it. */
static const struct {
    const char *member, *text;
    int status;
    const char *words[3];
} jobs_asked[] = {
    {"job_id", NULL, 201, {"\"job_id\":\"job-"}},
    {"job_id", "null", 201, {"\"job_id\":\"job-"}},
    {"job_id", "\"other-1\"", 422, {"__root__", "does not begin with job_id_prefix", "value_error"}},
    {"job_id", "\"\"", 422, {"\"loc\":[\"body\",\"job_id\"]", "at most 100 bytes"}},
    {"job_id", "7", 422, {"type_error.str", "expected a text, or null"}},
    {"job_id", "\"job \\u00e9/1\"", 201, {"\"job_id\":\"job \xc3\xa9/1\""}},
    {"job_id", "\"job ////////////////////////////////\"", 422, {"shorten it"}},
    {"job_id_prefix", NULL, 422, {"\"loc\":[\"body\",\"job_id_prefix\"]", "value_error.missing"}},
    {"job_id_prefix", "null", 422, {"type_error.none.not_allowed"}},
    {"batch_sizes", NULL, 422, {"value_error.missing"}},
    {"batch_sizes", "[]", 422, {"expected 1 to 1024 numbers, not 0"}},
    {"batch_sizes", "[64, 32, 8]", 201, {"\"batch_sizes\":[8,32,64]"}},
    {"batch_sizes", "[32, 32.0]", 422, {"stands there twice"}},
    {"batch_sizes", "[32, 8.5]", 422, {"type_error.list"}},
    {"batch_sizes", "[32, \"8\"]", 422, {"type_error.list"}},
    {"batch_sizes", "[32, 0]", 422, {"value_error.number.not_ge"}},
    {"batch_sizes", "[32, 5000000000]", 422, {"value_error.number.not_le"}},
    {"batch_sizes", "{\"32\": 1}", 422, {"type_error.list"}},
    {"batch_sizes", "32", 422, {"type_error.list"}},
    {"default_batch_size", "48", 422, {"__root__", "default_batch_size is not one of batch_sizes"}},
    {"default_batch_size", "0", 422, {"value_error.number.not_gt"}},
    {"default_batch_size", "32.0", 201, {"\"default_batch_size\":32,"}},
    {"default_batch_size", "true", 422, {"type_error.integer"}},
    {"default_batch_size", "1e300", 422, {"type_error.integer"}},
    {"eta_knob", "1.01", 422, {"value_error.number.not_le", "from 0, at most 1"}},
    {"eta_knob", "-0.5", 422, {"value_error.number.not_ge"}},
    {"eta_knob", "NaN", 422, {"eta_knob"}},
    {"eta_knob", "1", 201, {"\"eta_knob\":1.0"}},
    {"eta_knob", NULL, 201, {"\"eta_knob\":0.5"}},
    {"beta_knob", "0", 422, {"value_error.number.not_gt"}},
    {"beta_knob", "-1", 422, {"value_error.number.not_gt"}},
    {"beta_knob", "null", 201, {"\"beta_knob\":null"}},
    {"beta_knob", "Infinity", 201, {"\"beta_knob\":null"}},
    {"beta_knob", NULL, 201, {"\"beta_knob\":2.0"}},
    {"beta_knob", "\"two\"", 422, {"type_error.float"}},
    {"target_metric", NULL, 201, {"\"target_metric\":0.5"}},
    {"target_metric", "-Infinity", 422, {"target_metric"}},
    {"target_metric", "1e308", 422, {"value_error.number.not_le"}},
    {"higher_is_better_metric", "false", 201, {"\"higher_is_better_metric\":false"}},
    {"higher_is_better_metric", "1", 422, {"type_error.bool", "expected true or false"}},
    {"max_epochs", "0", 422, {"above 0, at most 1000000"}},
    {"max_epochs", "1000001", 422, {"value_error.number.not_le"}},
    {"max_epochs", NULL, 201, {"\"max_epochs\":100"}},
    {"num_pruning_rounds", "-1", 422, {"value_error.number.not_ge"}},
    {"num_pruning_rounds", "0", 201, {"\"num_pruning_rounds\":0"}},
    {"window_size", "-1", 422, {"value_error.number.not_ge"}},
    {"mab_prior_precision", "-0.1", 422, {"value_error.number.not_ge"}},
    {"mab_num_explorations", "-1", 422, {"value_error.number.not_ge"}},
    {"mab_seed", "-1", 422, {"value_error.number.not_ge"}},
    {"mab_seed", "null", 201, {"\"mab_seed\":null"}},
    {"mab_seed", "0", 201, {"\"mab_seed\":0"}},
    {"mab_seed", "4294967296", 422, {"value_error.number.not_le"}},
    {"mab_seed", "99999999999999999999", 422, {"value_error.jsondecode", "a number is too large"}},
    {"max_power", NULL, 422, {"value_error.missing"}},
    {"max_power", "0", 422, {"value_error.number.not_gt"}},
    {"max_power", "1e308", 422, {"value_error.number.not_le"}},
    {"max_power", "1e309", 422, {"value_error.jsondecode", "a number is too large"}},
    {"number_of_gpus", "0", 422, {"value_error.number.not_gt"}},
    {"gpu_model", "\"\"", 422, {"expected a text from 1, at most 127 bytes"}},
    {"gpu_model", "null", 422, {"type_error.none.not_allowed"}},
    {"gpu_model", "\"V\\n100\"", 422, {"control character"}},
    {"gpu_model", "\"\\u0000\"", 422, {"a text holds a zero byte"}},
    {"gpu_model", "\"\xff\"", 422, {"it is no UTF-8"}},
    {"colour", "\"blue\"", 201, {"\"gpu_model\":\"V100\""}}, /* what nobody asks for is ignored */
};

static void check_answer(const char *what, int status, int expected, const char *const words[3])
{
    if (status != expected)
        fail_msg("%s: answers %d %s, expected %d", what, status, fixture.last.body.data, expected);
    for (size_t i = 0; i < 3 && words[i] != NULL; i++) {
        if (strstr(fixture.last.body.data, words[i]) == NULL)
            fail_msg("%s: answers %s, expected '%s' in it", what, fixture.last.body.data, words[i]);
    }
}

static void test_jobs_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(jobs_asked); i++) {
        char *text = zeus_fixture_job_text(jobs_asked[i].member, jobs_asked[i].text), what[200];
        int status = zeus_fixture_ask(&fixture, "POST", "/jobs", NULL, text);

        snprintf(what, sizeof what, "%s %s", jobs_asked[i].member,
                 jobs_asked[i].text != NULL ? jobs_asked[i].text : "missing");
        check_answer(what, status, jobs_asked[i].status, jobs_asked[i].words);
        if (status == 201)
            zeus_fixture_ask(&fixture, "DELETE", "/jobs", "job-1", "");
        free(text);
    }
}

#define TRIAL "\"job_id\": \"job-1\", \"batch_size\": 32, \"trial_number\": 1"
#define AMOUNTS "\"time\": 10, \"energy\": 1000"

/* After `job-1` was registered and has a trial of 32 that has reported epoch 2. */
static const struct {
    const char *method, *path, *job_id, *body;
    int status;
    const char *words[3];
} asked[] = {
    {"POST", "/jobs", NULL, "", 422, {"value_error.missing", "the body is missing"}},
    {"POST", "/jobs", NULL, "{", 422, {"value_error.jsondecode", "line 1, column 1"}},
    {"POST", "/jobs", NULL, "[]", 422, {"type_error.dict", "\"loc\":[\"body\"]"}},
    {"POST", "/jobs", NULL, "null", 422, {"type_error.dict"}},
    {"POST", "/jobs", NULL, "{}", 422, {"job_id_prefix", "batch_sizes", "gpu_model"}},
    {"POST", "/jobs", NULL, "{} {}", 422, {"value_error.jsondecode"}},
    {"GET", "/jobs", "job-1", "", 405, {"method"}},
    {"PUT", "/report", NULL, "{}", 405, {"method"}},
    {"get", "/jobs/batch_size", "job-1", "", 405, {"method"}},
    {"GET", "/jobs/batch_size", NULL, "", 422, {"\"loc\":[\"query\",\"job_id\"]", "value_error.missing"}},
    {"GET", "/jobs/batch_size", "nobody", "", 400, {"job 'nobody' is not known; register it first"}},
    {"GET", "/jobs/batch_size", "", "", 400, {"is not known"}},
    {"GET", "/jobs/batch_size", "../../etc/passwd", "", 400, {"is not known"}},
    {"DELETE", "/jobs", NULL, "", 422, {"\"loc\":[\"query\",\"job_id\"]"}},
    {"DELETE", "/jobs", "nobody", "", 404, {"is not known"}},
    {"POST", "/report", NULL, "{}", 422, {"job_id", "trial_number", "current_epoch"}},
    {"POST",
     "/report",
     NULL,
     "{\"job_id\": \"nobody\", \"batch_size\": 32, \"trial_number\": 1, " AMOUNTS
     ", \"metric\": 0.1, \"current_epoch\": 1}",
     400,
     {"'nobody' is not known"}},
    {"POST",
     "/report",
     NULL,
     "{\"job_id\": \"job-1\", \"batch_size\": 64, \"trial_number\": 1, " AMOUNTS
     ", \"metric\": 0.1, \"current_epoch\": 3}",
     400,
     {"no trial 1 with the batch size 64"}},
    {"POST",
     "/report",
     NULL,
     "{\"job_id\": \"job-1\", \"batch_size\": 32, \"trial_number\": 99, " AMOUNTS
     ", \"metric\": 0.1, \"current_epoch\": 3}",
     400,
     {"no trial 99"}},
    {"POST",
     "/report",
     NULL,
     "{\"job_id\": \"job-1\", \"batch_size\": 32, \"trial_number\": 0, " AMOUNTS
     ", \"metric\": 0.1, \"current_epoch\": 3}",
     400,
     {"no trial 0"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", \"time\": -1, \"energy\": 1, \"metric\": 0, \"current_epoch\": 3}",
     422,
     {"\"loc\":[\"body\",\"time\"]", "value_error.number.not_ge"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", \"time\": 1, \"energy\": -1, \"metric\": 0, \"current_epoch\": 3}",
     422,
     {"\"loc\":[\"body\",\"energy\"]", "value_error.number.not_ge"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", \"time\": NaN, \"energy\": Infinity, \"metric\": 0, \"current_epoch\": 3}",
     422,
     {"\"loc\":[\"body\",\"time\"]", "\"loc\":[\"body\",\"energy\"]"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", \"time\": 1e308, \"energy\": 1e308, \"metric\": 0, \"current_epoch\": 3}",
     422,
     {"value_error.number.not_le"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", " AMOUNTS ", \"metric\": null, \"current_epoch\": 3}",
     422,
     {"type_error.none.not_allowed"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", " AMOUNTS ", \"metric\": \"good\", \"current_epoch\": 3}",
     422,
     {"type_error.float"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", " AMOUNTS ", \"metric\": 0.1, \"current_epoch\": 0}",
     422,
     {"value_error.number.not_ge", "current_epoch"}},
    {"POST",
     "/report",
     NULL,
     "{" TRIAL ", " AMOUNTS ", \"metric\": 0.1, \"current_epoch\": 1}",
     400,
     {"epoch 1 of trial 1 after epoch 2"}},
    {"PATCH", "/trials", NULL, "{" TRIAL, 422, {"value_error.jsondecode"}},
    {"PATCH", "/trials", NULL, "{\"job_id\": \"job-1\"}", 422, {"batch_size", "trial_number"}},
    {"PATCH",
     "/trials",
     NULL,
     "{\"job_id\": \"job-1\", \"batch_size\": 32, \"trial_number\": 2}",
     404,
     {"no trial 2"}},
    {"PATCH",
     "/trials",
     NULL,
     "{\"job_id\": \"job-1\", \"batch_size\": 8, \"trial_number\": 1}",
     404,
     {"with the batch size 8"}},
    {"PATCH",
     "/trials",
     NULL,
     "{\"job_id\": \"nobody\", \"batch_size\": 8, \"trial_number\": 1}",
     404,
     {"is not known"}},
    {"PATCH",
     "/trials",
     NULL,
     "{\"job_id\": \"job-1\", \"batch_size\": 32, \"trial_number\": -1}",
     422,
     {"value_error.number.not_ge"}},
};

static void test_asked(void **state)
{
    (void)state;
    zeus_fixture_register(&fixture, NULL);
    assert_int_equal(zeus_fixture_predict(&fixture, "job-1").batch_size, 32);
    assert_false(zeus_fixture_report(&fixture, (struct zeus_given){32, 1}, 2, 500, 0.1, NULL));
    for (size_t i = 0; i < COUNT(asked); i++) {
        char what[300];
        int status =
            zeus_fixture_ask(&fixture, asked[i].method, asked[i].path, asked[i].job_id, asked[i].body);

        snprintf(what, sizeof what, "%s %s %s", asked[i].method, asked[i].path, asked[i].body);
        check_answer(what, status, asked[i].status, asked[i].words);
        assert_int_equal(fixture.last.allow != NULL, status == 405);
        assert_false(fixture.note.ended || fixture.note.decided);
    }
}

static void test_other_paths(void **state)
{
    static const char *const paths[] = {"/", "/jobs/", "/jobs/x", "/v1/jobs", "/report/", "/trials/1", ""};

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct serve_request request = {
            .method = "GET", .path = paths[i], .body = "", .scope = SERVE_MANAGE, .caller_name = ""};

        assert_false(serve_zeus.answer(&fixture.jobs.jobs, &request, &fixture.last, &fixture.note));
    }
}

static void test_scopes(void **state)
{
    (void)state;
    zeus_fixture_register(&fixture, NULL);
    assert_int_equal(zeus_fixture_ask_as(&fixture, SERVE_NOBODY, "GET", "/jobs/batch_size", "job-1", ""),
                     401);
    assert_int_equal(zeus_fixture_ask_as(&fixture, SERVE_READ, "GET", "/jobs/batch_size", "job-1", ""), 403);
    assert_int_equal(zeus_fixture_ask_as(&fixture, SERVE_TRAIN, "GET", "/jobs/batch_size", "job-1", ""), 200);
    assert_int_equal(zeus_fixture_ask_as(&fixture, SERVE_TRAIN, "DELETE", "/jobs", "job-1", ""), 403);
    assert_int_equal(zeus_fixture_ask_as(&fixture, SERVE_MANAGE, "DELETE", "/jobs", "job-1", ""), 200);
    assert_int_equal(zeus_fixture_ask_as(&fixture, SERVE_MANAGE, "DELETE", "/jobs", "job-1", ""), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        zeus_test(test_jobs_asked),
        zeus_test(test_asked),
        zeus_test(test_other_paths),
        zeus_test(test_scopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
