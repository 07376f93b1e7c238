/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision costs: the events it reads, for a process that has just started, after few trials and many.
 */
#include "job_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "job/definition.h"

enum { TEXT_MAX = 512 << 20, EVENTS_A_TRIAL = 4 };

static const char *const policies[] = {"default", "grid", "zeus", "zeus-server"};

static void put(struct buffer *text, uint64_t *number, enum record_kind kind, uint64_t trial, const char *key,
                json_t *body)
{
    char *dumped = json_dumps(body, JSON_COMPACT);

    buffer_printf(text,
                  "{\"number\":%" PRIu64 ",\"time_us\":1700000000000000,\"kind\":\"%s\",\"trial\":%" PRIu64
                  ",\"key\":\"%s\",\"body\":%s}\n",
                  ++*number, record_kind_name(kind), trial, key, dumped);
    free(dumped);
    json_decref(body);
}

/* A log of whole trials, each of which reached its target. */
static void make_log(const char *policy, uint64_t trials, struct buffer *text)
{
    static const uint32_t sizes[] = {8, 16, 32, 64, 128};
    struct job_definition definition = job_fixture_definition("job");
    uint64_t number = 0;
    char key[64];

    definition.policy = policy;
    put(text, &number, RECORD_DEFINED, 0, "", definition_to_json(&definition));
    for (uint64_t i = 1; i <= trials; i++) {
        uint32_t size = sizes[i % COUNT(sizes)];
        double energy_j = 1000.0 + (double)(i % 17) + size;
        const struct proposed_record proposed = {.recurrence = i - 1,
                                                 .new_line = i == 1,
                                                 .hardware = job_fixture_question("job").hardware,
                                                 .batch_size = size,
                                                 .limit_w = 150,
                                                 .reason = REASON_EXPLORE,
                                                 .policy = policy,
                                                 .counted = true,
                                                 .epochs = 20};
        const struct epoch_record epoch = {.attempt = 1,
                                           .epoch = 1,
                                           .metric = 0.95,
                                           .energy_j = energy_j,
                                           .time_s = 10,
                                           .answer = JOB_REACHED,
                                           .stop = JOB_STOP_TARGET,
                                           .epochs = 20,
                                           .total_energy_j = energy_j,
                                           .total_time_s = 10};
        const struct ended_record ended = {.outcome = TRIAL_REACHED,
                                           .stop = JOB_STOP_TARGET,
                                           .attempt = 1,
                                           .epochs = 1,
                                           .metric = 0.95,
                                           .energy_j = energy_j,
                                           .time_s = 10};

        put(text, &number, RECORD_PROPOSED, i, "", record_write_proposed(&proposed));
        put(text, &number, RECORD_ATTEMPT, i, "",
            record_write_attempt(&(struct attempt_record){.attempt = 1}));
        snprintf(key, sizeof key, "epoch/%" PRIu64 "/1/1", i);
        put(text, &number, RECORD_EPOCH, i, key, record_write_epoch(&epoch));
        snprintf(key, sizeof key, "end/%" PRIu64, i);
        put(text, &number, RECORD_ENDED, i, key, record_write_ended(&ended));
    }
    assert_int_equal(text->error, 0);
}

/* The most events that a call read on a handle that had just been opened. */
static uint64_t measure(const char *policy, uint64_t trials)
{
    struct job_question question = job_fixture_question("job");
    struct job_fixture fixture;
    struct buffer text;
    struct fly_error error;
    uint64_t most = 0;

    job_fixture_open(&fixture);
    buffer_init(&text, TEXT_MAX);
    make_log(policy, trials, &text);
    check_fine(fixture.jobs.backend->import(fixture.jobs.self, "job", text.data, text.length, &error), error);
    buffer_deinit(&text);
    for (int i = 0; i < 50; i++) {
        const struct job_local *local;

        job_fixture_reopen(&fixture);
        local = fixture.jobs.self;
        job_fixture_train(&fixture, &question, 1, 1000, 10, 0.95, NULL);
        most = local->events_read > most ? local->events_read : most;
    }
    job_fixture_close(&fixture);
    return most;
}

static void test_cost(void **state)
{
    const uint64_t many =
        getenv("FLYBALL_TEST_TRIALS") != NULL ? strtoull(getenv("FLYBALL_TEST_TRIALS"), NULL, 10) : 1000;

    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        uint64_t few = measure(policies[i], 20), lots = measure(policies[i], many);

        print_message("# %s: at most %" PRIu64 " events read after 20 trials, %" PRIu64 " after %" PRIu64
                      "\n",
                      policies[i], few, lots, many);
        assert_true(few <= LOCAL_SNAPSHOT_EVERY + 2 * EVENTS_A_TRIAL);
        assert_true(lots <= LOCAL_SNAPSHOT_EVERY + 2 * EVENTS_A_TRIAL);
    }
}

/* A handle that has the state reads nothing but what others appended. */
static void test_warm(void **state)
{
    struct job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    struct job_fixture fixture;
    const struct job_local *local;

    (void)state;
    job_fixture_open(&fixture);
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 100; i++)
        job_fixture_train(&fixture, &question, 1, 1000, 10, 0.95, NULL);
    local = fixture.jobs.self;
    assert_int_equal(local->events_read, 0);
    job_fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_warm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
