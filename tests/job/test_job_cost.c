/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision costs: the events it reads, for a process that has just started, after few trials and many.
 */
#include "job_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "job/core/definition.h"
#include "job/core/job_words.h"

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
static void make_log(const char *policy, uint64_t settings, uint64_t trials, struct buffer *text)
{
    const struct job_setting nothing = {.pin_limit_w = NAN};
    static const uint32_t sizes[] = {8, 16, 32, 64, 128};
    struct fly_job_definition definition = job_fixture_definition("job");
    uint64_t number = 0;
    char key[64];

    definition.policy = policy;
    put(text, &number, RECORD_DEFINED, 0, "", definition_to_json(&definition));
    for (uint64_t i = 0; i < settings; i++)
        put(text, &number, RECORD_SET, 0, "", record_write(RECORD_SET, &nothing));
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

        put(text, &number, RECORD_PROPOSED, i, "", record_write(RECORD_PROPOSED, &proposed));
        put(text, &number, RECORD_ATTEMPT, i, "",
            record_write(RECORD_ATTEMPT, &(struct attempt_record){.attempt = 1}));
        snprintf(key, sizeof key, "epoch/%" PRIu64 "/1/1", i);
        put(text, &number, RECORD_EPOCH, i, key, record_write(RECORD_EPOCH, &epoch));
        snprintf(key, sizeof key, "end/%" PRIu64, i);
        put(text, &number, RECORD_ENDED, i, key, record_write(RECORD_ENDED, &ended));
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
    make_log(policy, 0, trials, &text);
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
/* A change digests so many events of a long log at most, wherever in a trial they end. */
static void test_cut(void **state)
{
    enum { TRIALS = 4200 };

    (void)state;
    for (uint64_t settings = 0; settings < EVENTS_A_TRIAL; settings++) {
        struct job_fixture fixture;
        struct job_history history;
        struct buffer text;
        struct fly_error error;

        job_fixture_open(&fixture);
        buffer_init(&text, TEXT_MAX);
        make_log("default", settings, TRIALS, &text);
        check_fine(fixture.jobs.backend->import(fixture.jobs.self, "job", text.data, text.length, &error),
                   error);
        buffer_deinit(&text);
        history = job_fixture_history(&fixture, &fixture.arena);
        assert_int_equal(history.count, TRIALS);
        check_double(history.rows[TRIALS - 1].trial.time_s, 10);
        job_fixture_close(&fixture);
    }
}

static void test_warm(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
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

/* A policy that cannot write its state down is folded anew by each process, and decides alike. */
static void test_without_slots(void **state)
{
    struct batch_policy bare = batch_policy_grid;
    const struct batch_policy *const plugins[] = {&bare, NULL};
    struct fly_job_definition definition = job_fixture_definition("bare"),
                              grid = job_fixture_definition("grid");
    struct job_question question = job_fixture_question("bare");
    struct job_fixture fixture;
    struct job_registered registered;
    struct job_list list;
    struct arena arena;
    struct fly_error error;

    (void)state;
    bare.name = "bare-grid";
    bare.save = NULL;
    bare.load = NULL;
    definition.policy = bare.name;
    grid.policy = "grid";
    job_fixture_open(&fixture);
    check_fails(fixture.jobs.backend->define(fixture.jobs.self, &definition, &registered, &error), FLY_EUSAGE,
                error, "no policy 'bare-grid'");
    fixture.options.plugins = plugins;
    job_fixture_reopen(&fixture);
    job_fixture_define(&fixture, &definition);
    job_fixture_define(&fixture, &grid);
    for (int i = 0; i < 40; i++) {
        const struct job_local *local;
        struct job_proposal one, other;
        uint64_t before;

        job_fixture_reopen(&fixture);
        local = fixture.jobs.self;
        before = local->events_read;
        question.job = "bare";
        job_fixture_train(&fixture, &question, 1, 1000 + i, 10, 0.95, &one);
        /* Whole: the definition, and four events a trial. */
        assert_int_equal(local->events_read - before, 1 + 4 * (uint64_t)i);
        question.job = "grid";
        job_fixture_train(&fixture, &question, 1, 1000 + i, 10, 0.95, &other);
        assert_int_equal(one.batch_size, other.batch_size);
        check_double(one.limit_w, other.limit_w);
    }
    /* A process without the plug-in cannot tell what to do, and says so. */
    fixture.options.plugins = NULL;
    job_fixture_reopen(&fixture);
    question.job = "bare";
    check_fails(
        fixture.jobs.backend->propose(fixture.jobs.self, &question, &(struct job_proposal){0}, &error),
        FLY_EUNSUPPORTED, error, "no policy 'bare-grid'");
    arena_init(&arena, 1 << 20);
    check_fine(fixture.jobs.backend->list(fixture.jobs.self, &arena, &list, &error), error);
    assert_int_equal(list.count, 2);
    check_contains(list.jobs[0].trouble, "no policy 'bare-grid'");
    assert_null(list.jobs[1].trouble);
    assert_int_equal(list.jobs[1].trials, 40);
    arena_deinit(&arena);
    job_fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_without_slots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
