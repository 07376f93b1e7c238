/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `zeus-server` through a job: what the published server was asked and
 * answered in recorded exchanges, and where this one answers better.
 */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "test_data.h"

enum { LINE_MAX_BYTES = 1 << 16, SIZES_MAX = 64 };

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

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static uint32_t whole(const json_t *object, const char *name)
{
    return (uint32_t)json_integer_value(json_object_get(object, name));
}

static const char *job_of(const json_t *request)
{
    return json_string_value(json_object_get(request, "job_id"));
}

/* A client's specification as a definition. */
static struct job_definition read_definition(const json_t *request, uint32_t sizes[SIZES_MAX])
{
    const json_t *list = json_object_get(request, "batch_sizes"),
                 *beta = json_object_get(request, "beta_knob");
    struct job_definition definition = job_definition_default;

    for (size_t i = 0; i < json_array_size(list); i++)
        sizes[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    definition.name = job_of(request);
    definition.policy = "zeus-server";
    definition.batch_sizes = sizes;
    definition.batch_count = json_array_size(list);
    definition.default_batch_size = whole(request, "default_batch_size");
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, number(request, "eta_knob"), INFINITY};
    definition.beta = json_is_null(beta) ? INFINITY : json_number_value(beta);
    definition.target =
        json_is_true(json_object_get(request, "higher_is_better_metric")) ? JOB_AT_LEAST : JOB_AT_MOST;
    definition.target_metric = number(request, "target_metric");
    definition.max_epochs = whole(request, "max_epochs");
    definition.pruning_rounds = whole(request, "num_pruning_rounds");
    definition.explorations = whole(request, "mab_num_explorations");
    definition.window = whole(request, "window_size");
    definition.seed = whole(request, "mab_seed");
    definition.generator = GENERATOR_NUMPY;
    return definition;
}

static double max_power_w; /* of the job registered last */

static int answer_register(const json_t *request, json_t *response)
{
    uint32_t sizes[SIZES_MAX];
    struct job_definition definition = read_definition(request, sizes);
    struct job_registered registered;
    int code = at()->define(fixture.jobs.self, &definition, &registered, NULL);

    (void)response;
    max_power_w = number(request, "max_power");
    return code == FLY_ECONFLICT ? 409 : code < 0 ? 500 : registered.known ? 200 : 201;
}

static int answer_predict(const json_t *request, json_t *response)
{
    struct job_question question = job_fixture_question(job_of(request));
    struct job_proposal proposal;
    int code;

    question.hardware.limit_count = 0;
    question.hardware.max_power_w = max_power_w;
    code = at()->propose(fixture.jobs.self, &question, &proposal, NULL);
    if (code < 0)
        return code == FLY_ENOTFOUND ? 400 : 500;
    json_object_set_new(response, "batch_size", json_integer(proposal.batch_size));
    json_object_set_new(response, "trial_number", json_integer((json_int_t)proposal.trial));
    return 200;
}

static int answer_report(const json_t *request, json_t *response)
{
    const struct job_epoch epoch = {.job = job_of(request),
                                    .trial = whole(request, "trial_number"),
                                    .attempt = 1,
                                    .epoch = whole(request, "current_epoch"),
                                    .metric = number(request, "metric"),
                                    .energy_j = number(request, "energy"),
                                    .time_s = number(request, "time")};
    struct job_answered answered;
    int code = at()->report(fixture.jobs.self, &epoch, &answered, NULL);

    if (code < 0)
        return 400;
    json_object_set_new(response, "stop_train", json_boolean(answered.ended));
    json_object_set_new(response, "converged",
                        json_boolean(answered.ended && answered.outcome == TRIAL_REACHED));
    return 200;
}

static int answer_end(const json_t *request, json_t *response)
{
    const struct job_end end = {.job = job_of(request),
                                .trial = whole(request, "trial_number"),
                                .attempt = 1,
                                .outcome = TRIAL_CRASHED,
                                .energy_j = NAN,
                                .time_s = NAN};
    struct job_ended ended;
    int code = at()->end(fixture.jobs.self, &end, &ended, NULL);

    (void)response;
    return code == FLY_ENOTFOUND ? 404 : code < 0 ? 500 : 200;
}

static int answer_delete(const json_t *request, json_t *response)
{
    (void)response;
    return at()->remove(fixture.jobs.self, job_of(request), NULL) < 0 ? 404 : 200;
}

static const struct {
    const char *operation;
    int (*answer)(const json_t *request, json_t *response);
} answers[] = {{"register", answer_register},
               {"predict", answer_predict},
               {"report", answer_report},
               {"end", answer_end},
               {"delete", answer_delete}};

/* What is worth comparing; message texts are no interface. */
static void compare(const json_t *recorded, const json_t *answered, size_t line)
{
    static const char *const names[] = {"batch_size", "trial_number", "stop_train", "converged"};

    for (size_t i = 0; i < COUNT(names); i++) {
        json_t *theirs = json_object_get(recorded, names[i]), *ours = json_object_get(answered, names[i]);

        if (theirs == NULL || ours == NULL || json_equal(theirs, ours))
            continue;
        fail_msg("line %zu: %s is %s, recorded %s", line, names[i], json_dumps(ours, JSON_ENCODE_ANY),
                 json_dumps(theirs, JSON_ENCODE_ANY));
    }
}

static void replay(const json_t *exchange, size_t line)
{
    const char *operation = json_string_value(json_object_get(exchange, "op"));
    json_t *response = json_object();
    int status = 0;

    for (size_t i = 0; i < COUNT(answers); i++) {
        if (strcmp(answers[i].operation, operation) == 0)
            status = answers[i].answer(json_object_get(exchange, "req"), response);
    }
    if (status != (int)whole(exchange, "status"))
        fail_msg("line %zu: %s answers %d, recorded %u", line, operation, status, whole(exchange, "status"));
    compare(json_object_get(exchange, "resp"), response, line);
    json_decref(response);
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
            job_fixture_reopen(&fixture); /* a server that was started anew */
    }
    print_message("# %zu recorded exchanges\n", count);
    assert_true(count > 1000);
    pclose(file);
    free(line);
}

/* ---- where the published server is at fault ---- */

static struct job_definition definition_of(uint32_t pruning_rounds)
{
    struct job_definition definition = job_fixture_definition("job");

    definition.policy = "zeus-server";
    definition.pruning_rounds = pruning_rounds;
    definition.seed = 5;
    return definition;
}

/* One trial to its end; what it was. */
static struct job_proposal run(double epoch_j, uint32_t epochs, double metric)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    question.hardware.limit_count = 0;
    question.hardware.max_power_w = 200;
    job_fixture_train(&fixture, &question, epochs, epoch_j, epoch_j / 200, metric, &proposal);
    return proposal;
}

/* No round of pruning: all batch sizes are sampled, each as often as asked before any draw. */
static void test_no_pruning(void **state)
{
    struct job_definition definition = definition_of(0);
    unsigned counts[129] = {0};

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 10; i++)
        counts[run(1000 + i, 2, 0.95).batch_size]++;
    for (uint32_t size = 8; size <= 128; size *= 2)
        assert_int_equal(counts[size], 2);
}

/* Without a published seed arms have random numbers of their own: over a while, more than one is drawn. */
static void test_draws_differ(void **state)
{
    struct job_definition definition = definition_of(2);
    unsigned counts[129] = {0}, drawn = 0;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 60; i++) {
        struct job_proposal proposal = run(1000 + 100 * (i * 7 % 11), 2, 0.95);

        counts[proposal.batch_size] += proposal.reason == REASON_SAMPLED;
    }
    for (uint32_t size = 8; size <= 128; size *= 2)
        drawn += counts[size] > 0;
    assert_true(drawn > 1);
}

/* A trial beside the exploration reports after that has ended: it counts, and is not refused. */
static void test_concurrent_report_counts(void **state)
{
    struct job_definition definition = definition_of(1);
    struct job_question question = job_fixture_question("job");
    struct job_proposal beside, proposal;
    struct job_answered answered;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.hardware.limit_count = 0;
    question.hardware.max_power_w = 200;
    proposal = job_fixture_propose(&fixture, &question);
    beside = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    assert_int_equal(beside.reason, REASON_BEST_SEEN);
    answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                .trial = proposal.trial,
                                                                .attempt = 1,
                                                                .epoch = 1,
                                                                .metric = 0.95,
                                                                .energy_j = 1000,
                                                                .time_s = 5});
    assert_true(answered.ended);
    do {
        proposal = run(1000, 1, 0.95);
    } while (proposal.reason == REASON_EXPLORE);
    answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                .trial = beside.trial,
                                                                .attempt = 1,
                                                                .epoch = 1,
                                                                .metric = 0.95,
                                                                .energy_j = 900,
                                                                .time_s = 4});
    assert_true(answered.ended);
    assert_int_equal(answered.outcome, TRIAL_REACHED);
}

/* A failed trial that was cheap bounds nobody. */
static void test_failed_trial_sets_no_bound(void **state)
{
    struct job_definition definition = definition_of(2);
    struct job_proposal proposal;

    (void)state;
    definition.max_epochs = 2;
    job_fixture_define(&fixture, &definition);
    run(10000, 2, 0.95);
    proposal = run(10, 2, 0.1); /* all its epochs, for next to nothing */
    assert_int_equal(proposal.batch_size, 16);
    proposal = run(9000, 2, 0.95); /* 900 times that, and goes on */
    assert_int_equal(proposal.batch_size, 64);
    assert_int_equal(job_fixture_outcome(&fixture, "job", proposal.trial), TRIAL_REACHED);
}

/* A crashed exploration is made again, and so is one that expired: nobody waits for ever. */
static void test_lost_explorations(void **state)
{
    struct job_definition definition = definition_of(2);
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_define(&fixture, &definition);
    question.hardware.limit_count = 0;
    question.hardware.max_power_w = 200;
    job_fixture_propose(&fixture, &question);
    assert_int_equal(job_fixture_propose(&fixture, &question).reason, REASON_BEST_SEEN);
    fixture.now_us += (int64_t)86401e6;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    assert_int_equal(proposal.batch_size, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recorded_exchanges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_pruning, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draws_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_concurrent_report_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_trial_sets_no_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_explorations, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
