/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the public batch-size server without a network: its recorded exchanges, and jobs. */
#include "zeus_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "compat/zeus/serve/zeus_job.h"
#include "test_data.h"

enum { LINE_MAX_BYTES = 1 << 16 };

static struct zeus_fixture fixture;

/* ---- recorded exchanges ---- */

static const struct {
    const char *operation, *method, *path;
    bool in_query; /* the job's id */
} operations[] = {
    {"register", "POST", "/jobs", false}, {"predict", "GET", "/jobs/batch_size", true},
    {"report", "POST", "/report", false}, {"end", "PATCH", "/trials", false},
    {"delete", "DELETE", "/jobs", true},
};

/* What is worth comparing; message texts are no interface. */
static void compare(json_t *recorded, json_t *answered, size_t line, bool whole)
{
    static const char *const names[] = {"batch_size", "trial_number", "stop_train", "converged"};

    if (json_is_null(recorded) && !json_is_null(answered))
        fail_msg("line %zu: answers something, recorded null", line);
    if (whole && !json_equal(recorded, answered))
        fail_msg("line %zu: answers %s, recorded %s", line, json_dumps(answered, 0), json_dumps(recorded, 0));
    for (size_t i = 0; i < COUNT(names); i++) {
        json_t *theirs = json_object_get(recorded, names[i]), *ours = json_object_get(answered, names[i]);

        if (theirs != NULL && !json_equal(theirs, ours))
            fail_msg("line %zu: %s is %s, recorded %s", line, names[i],
                     ours != NULL ? json_dumps(ours, JSON_ENCODE_ANY) : "missing",
                     json_dumps(theirs, JSON_ENCODE_ANY));
    }
}

static void replay(const json_t *exchange, size_t line)
{
    const char *operation = json_string_value(json_object_get(exchange, "op"));
    json_t *asked = json_object_get(exchange, "req"), *answer = NULL;
    int expected = (int)json_integer_value(json_object_get(exchange, "status")), status = 0;
    bool whole = strcmp(operation, "register") == 0;

    for (size_t i = 0; i < COUNT(operations); i++) {
        const char *job_id = json_string_value(json_object_get(asked, "job_id"));

        if (strcmp(operations[i].operation, operation) == 0)
            status = zeus_fixture_ask_json(&fixture, operations[i].method, operations[i].path,
                                           operations[i].in_query ? job_id : NULL,
                                           operations[i].in_query ? NULL : json_incref(asked), &answer);
    }
    if (status != expected)
        fail_msg("line %zu: %s answers %d, recorded %d: %s", line, operation, status, expected,
                 fixture.last.body.data);
    if (status < 300)
        compare(json_object_get(exchange, "resp"), answer, line, whole);
    else
        assert_true(json_is_string(json_object_get(answer, "message")));
    json_decref(answer);
}

static void test_recorded_exchanges(void **state)
{
    char path[TEST_PATH_MAX], *line = malloc(LINE_MAX_BYTES);
    size_t count = 0;
    FILE *file;

    (void)state;
    test_data_need("golden/server_exchange.jsonl.xz", path);
    file = test_data_open(path);
    while (fgets(line, LINE_MAX_BYTES, file) != NULL) {
        json_t *exchange = json_loads(line, 0, NULL);

        assert_non_null(exchange);
        replay(exchange, ++count);
        json_decref(exchange);
        if (count % 50 == 0)
            job_fixture_reopen(&fixture.jobs); /* a server that was started anew */
    }
    print_message("# %zu recorded exchanges\n", count);
    assert_true(count > 1000);
    pclose(file);
    free(line);
}

/* ---- registering ---- */

/* Each field is compared, and the message names those that differ. */
static void test_conflicts(void **state)
{
    static const struct {
        const char *member, *text;
    } others[] = {
        {"batch_sizes", "[16, 32, 64]"},
        {"default_batch_size", "16"},
        {"eta_knob", "0.7"},
        {"beta_knob", "null"},
        {"target_metric", "0.8"},
        {"higher_is_better_metric", "false"},
        {"max_epochs", "10"},
        {"num_pruning_rounds", "1"},
        {"window_size", "4"},
        {"mab_prior_mean", "-3"},
        {"mab_prior_precision", "0.5"},
        {"mab_num_explorations", "3"},
        {"mab_seed", "0"},
        {"max_power", "251"},
        {"number_of_gpus", "2"},
        {"gpu_model", "\"A100\""},
        {"job_id_prefix", "\"jo\""},
    };

    (void)state;
    zeus_fixture_register(&fixture, NULL);
    for (size_t i = 0; i < COUNT(others); i++) {
        char *text = zeus_fixture_job_text(others[i].member, others[i].text), words[100];

        assert_int_equal(zeus_fixture_ask(&fixture, "POST", "/jobs", NULL, text), 409);
        snprintf(words, sizeof words, "with another %s; use another job_id", others[i].member);
        check_contains(fixture.last.body.data, words);
        snprintf(words, sizeof words, "\"differences\":{\"%s\":[", others[i].member);
        check_contains(fixture.last.body.data, words);
        free(text);
    }
    /* The same in another order and in other words. */
    assert_int_equal(
        zeus_fixture_ask(&fixture, "POST", "/jobs", NULL,
                         "{\"gpu_model\": \"V100\", \"number_of_gpus\": 1.0, \"max_power\": 250, "
                         "\"max_epochs\": 20, \"target_metric\": 0.90, \"default_batch_size\": 32, "
                         "\"beta_knob\": 2, \"mab_seed\": null, "
                         "\"batch_sizes\": [128, 64, 32, 16, 8], \"job_id_prefix\": \"job\", "
                         "\"job_id\": \"job-1\"}"),
        200);
}

/* Ids that are made differ, and begin with the prefix. */
static void test_made_ids(void **state)
{
    char ids[20][40];

    (void)state;
    for (size_t i = 0; i < COUNT(ids); i++) {
        json_t *answer;

        assert_int_equal(zeus_fixture_ask_json(&fixture, "POST", "/jobs", NULL,
                                               zeus_fixture_job(json_pack("{s:n}", "job_id")), &answer),
                         201);
        snprintf(ids[i], sizeof ids[i], "%s", json_string_value(json_object_get(answer, "job_id")));
        assert_int_equal(strlen(ids[i]), strlen("job-") + 8);
        assert_memory_equal(ids[i], "job-", 4);
        assert_int_equal(strspn(ids[i] + 4, "0123456789abcdef"), 8);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
        json_decref(answer);
        assert_int_equal(zeus_fixture_predict(&fixture, ids[i]).trial, 1);
    }
}

/* No two ids have the same name in the store. */
static void test_names(void **state)
{
    static const struct {
        const char *job_id, *name; /* NULL: too long */
    } names[] = {
        {"zeus-squad-0", "zeus-squad-0"},
        {"a.b_c-D", "a.b_c-D"},
        {".hidden", "_.2Ehidden"},
        {"..", "_.2E."},
        {"a_.2Fb", "a_.5F.2Fb"},
        {"a/b", "a_.2Fb"},
        {"a_/b", "a__.2Fb"},
        {"a__.b", "a__.5F.b"},
        {"team a", "team_.20a"},
        {"\xc3\xa9", "_.C3_.A9"},
        {"\n", "_.0A"},
        {"", NULL},
        {"1234567890123456789012345", "1234567890123456789012345"},
        {"/////////////////////////",
         "_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_.2F_."
         "2F_.2F_.2F_.2F_.2F_.2F_.2F"},
        {"//////////////////////////", NULL},
    };
    char name[JOB_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(zeus_job_name(names[i].job_id, name), names[i].name != NULL);
        if (names[i].name != NULL)
            assert_string_equal(name, names[i].name);
        for (size_t j = 0; j < i && names[i].name != NULL; j++)
            assert_true(names[j].name == NULL || strcmp(names[i].name, names[j].name) != 0);
    }
}

/* A job of the store that no client of this interface has registered is out of its reach. */
static void test_others_jobs(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job-1");
    struct job_question question = job_fixture_question("job-1");
    json_t *answer;

    (void)state;
    for (int i = 0; i < 2; i++) {
        definition.policy = i == 0 ? "zeus" : "zeus-server";
        job_fixture_define(&fixture.jobs, &definition);
        assert_int_equal(job_fixture_propose(&fixture.jobs, &question).trial, 1);
        assert_int_equal(zeus_fixture_ask(&fixture, "GET", "/jobs/batch_size", "job-1", ""), 400);
        check_contains(fixture.last.body.data, "not registered through this interface");
        assert_int_equal(zeus_fixture_ask(&fixture, "DELETE", "/jobs", "job-1", ""), 404);
        assert_int_equal(
            zeus_fixture_ask_json(&fixture, "POST", "/report", NULL,
                                  zeus_fixture_report_json((struct zeus_given){32, 1}, 1, 100, 0.1), &answer),
            400);
        json_decref(answer);
        assert_int_equal(
            zeus_fixture_ask_json(&fixture, "POST", "/jobs", NULL, zeus_fixture_job(NULL), &answer), 409);
        json_decref(answer);
        check_contains(fixture.last.body.data, "not registered through this interface");
        assert_int_equal(fixture.jobs.jobs.backend->remove(fixture.jobs.jobs.self, "job-1", NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        zeus_test(test_recorded_exchanges), zeus_test(test_conflicts),
        zeus_test(test_made_ids),           zeus_test(test_names),
        zeus_test(test_others_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
