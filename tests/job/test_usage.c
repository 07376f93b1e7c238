/* SPDX-License-Identifier: Apache-2.0 */
/* Who used what, over made-up logs: borders, late reports, attempts, unknowns, trials that are read twice. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/job_record.h"
#include "job/past/usage.h"

enum { LOG_MAX = 4096, S = 1000000 };

/* A log in memory, as a back end's `read` gives it. */
static struct made_log {
    struct store_event events[LOG_MAX];
    char *bodies[LOG_MAX]; /* owned */
    size_t count;
    double limits_w[1];
} made;

static int read_made(void *self, const char *job, const struct store_query *query, store_visit *visit,
                     void *context, struct fly_error *out_error)
{
    const struct made_log *made_log = self;
    int code = 0;

    (void)job;
    for (size_t i = 0; i < made_log->count && code == 0; i++) {
        if (query->trial == 0 || query->trial == made_log->events[i].trial)
            code = visit(context, &made_log->events[i], out_error);
    }
    return code;
}

static const struct job_backend made_backend = {.name = "made", .read = read_made};
static const struct jobs jobs = {&made_backend, &made};

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < made.count; i++)
        free(made.bodies[i]);
    made.count = 0;
    made.limits_w[0] = 200;
    return 0;
}

static void append(const char *kind, uint64_t trial, double at_s, json_t *body)
{
    assert_non_null(body);
    made.bodies[made.count] = json_dumps(body, JSON_COMPACT);
    made.events[made.count] = (struct store_event){.number = made.count + 1,
                                                   .time_us = (int64_t)(at_s * S),
                                                   .kind = kind,
                                                   .trial = trial,
                                                   .key = "",
                                                   .body = made.bodies[made.count]};
    made.count++;
    json_decref(body);
}

/* The first trial describes the hardware. */
static void propose(uint64_t trial, uint32_t try_number, uint32_t gpu_count, double at_s)
{
    struct proposed_record record = {.recurrence = trial - 1,
                                     .try_number = try_number,
                                     .tries = 3,
                                     .submission = "s",
                                     .run = "",
                                     .new_line = trial == 1,
                                     .hardware = {.gpu_model = "Test GPU",
                                                  .gpu_count = gpu_count,
                                                  .world_size = 1,
                                                  .limits_w = made.limits_w,
                                                  .limit_count = 1,
                                                  .max_power_w = 200},
                                     .batch_size = 32,
                                     .limit_w = 200,
                                     .policy = "zeus",
                                     .policy_version = 1,
                                     .why = ""};

    append("proposed", trial, at_s, record_write(RECORD_PROPOSED, &record));
}

static void attempt(uint64_t trial, uint32_t number, const char *user, const char *host, const char *gpus,
                    double at_s)
{
    const struct attempt_record record = {
        .attempt = number, .user = user, .account = "physics", .host = host, .gpus = gpus};

    append("attempt", trial, at_s, record_write(RECORD_ATTEMPT, &record));
}

static void begin(uint64_t trial, const char *user, const char *gpus, double at_s)
{
    propose(trial, 0, 2, at_s);
    attempt(trial, 1, user, "node1", gpus, at_s);
}

static void epoch(uint64_t trial, uint32_t number, uint32_t epoch_number, double energy_j, double time_s,
                  double at_s)
{
    const struct epoch_record record = {
        .attempt = number, .epoch = epoch_number, .metric = 0.5, .energy_j = energy_j, .time_s = time_s};

    append("epoch", trial, at_s, record_write(RECORD_EPOCH, &record));
}

static void end(uint64_t trial, enum trial_outcome outcome, enum job_stop stop, double energy_j,
                double time_s, double at_s)
{
    const struct ended_record record = {.outcome = outcome,
                                        .stop = stop,
                                        .attempt = 1,
                                        .metric = NAN,
                                        .energy_j = energy_j,
                                        .time_s = time_s};

    append("ended", trial, at_s, record_write(RECORD_ENDED, &record));
}

static void shut(uint64_t trial, uint32_t number, double energy_j, double time_s, double at_s)
{
    const struct closed_record record = {.attempt = number, .energy_j = energy_j, .time_s = time_s};

    append("closed", trial, at_s, record_write(RECORD_CLOSED, &record));
}

/* The log added up. */
struct added {
    struct usage *usage;
    const struct usage_row *rows;
    size_t count;
};

static struct added add_up(enum usage_key key, double since_s, double until_s, size_t slots)
{
    const struct usage_options options = {
        .key = key, .since_us = (int64_t)(since_s * S), .until_us = (int64_t)(until_s * S), .slots = slots};
    struct added added;
    struct fly_error error = {.text = ""};

    assert_int_equal(usage_new(&options, &added.usage, &error), 0);
    if (usage_add_job(added.usage, &jobs, "job", &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(usage_rows(added.usage, &added.rows, &added.count, &error), 0);
    return added;
}

static const struct usage_sums *find(const struct added *added, const char *name)
{
    for (size_t i = 0; i < added->count; i++) {
        if (strcmp(added->rows[i].name, name) == 0)
            return &added->rows[i].sums;
    }
    fail_msg("no row '%s'", name);
    return NULL;
}

/* ---- when ---- */

/* A trial from 1000 s: epochs at 1010 s (100 J), 1030 s (300 J), closed at 1040 s with 360 J. */
static void test_borders(void **state)
{
    static const struct {
        double since_s, until_s, energy_j, gpu_time_s;
        uint64_t trials;
    } cases[] = {
        {0, 2000, 360, 80, 1},                                                     /* all */
        {0, 1000, 0, 0, 0},                                                        /* before */
        {1000, 1010, 100, 20, 1},                                                  /* an epoch */
        {1010, 1030, 200, 40, 1}, {1005, 1020, 150, 30, 1},                        /* halves of two */
        {1020, 1035, 130, 30, 1}, {1035, 9000, 30, 10, 1},  {1040, 9000, 0, 0, 0}, /* after */
    };

    (void)state;
    begin(1, "ada", "", 1000);
    epoch(1, 1, 1, 100, 10, 1010);
    epoch(1, 1, 2, 300, 30, 1030);
    end(1, TRIAL_REACHED, JOB_STOP_TARGET, 300, 30, 1030);
    shut(1, 1, 360, 40, 1040);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct added added = add_up(USAGE_USER, cases[i].since_s, cases[i].until_s, 0);
        const struct usage_sums *total = usage_total(added.usage);

        assert_int_equal(total->trials, cases[i].trials);
        check_close(total->energy_j, cases[i].energy_j, 1e-12);
        check_close(total->gpu_time_s, cases[i].gpu_time_s, 1e-12);
        assert_int_equal(added.count, cases[i].trials);
        if (added.count > 0)
            check_close(find(&added, "said:ada")->energy_j, cases[i].energy_j, 1e-12);
        usage_free(added.usage);
    }
}

/* Periods that follow each other hold together what one over all of them holds, whatever the clocks say. */
static void test_periods_add_up(void **state)
{
    uint64_t random = 7;
    double sum = 0, whole;
    struct added added;

    (void)state;
    for (uint64_t trial = 1; trial <= 40; trial++) {
        double at_s = 1000 + 400 * test_uniform(&random), energy_j = 0, time_s = 0;

        begin(trial, "ada", "", at_s);
        for (uint32_t i = 1; i <= 5; i++) {
            energy_j += 1000 * test_uniform(&random);
            time_s += 20 * test_uniform(&random);
            /* Arrives early, late, or on a clock that was set back. */
            epoch(trial, 1, i, energy_j, time_s, at_s + time_s + 60 * (test_uniform(&random) - 0.5));
        }
    }
    added = add_up(USAGE_USER, 0, 9000, 0);
    whole = usage_total(added.usage)->energy_j;
    usage_free(added.usage);
    for (int i = 0; i < 60; i++) {
        added = add_up(USAGE_USER, i * 37.5, (i + 1) * 37.5, 0);
        sum += usage_total(added.usage)->energy_j;
        usage_free(added.usage);
    }
    assert_true(whole > 40 * 1000);
    check_close(sum, whole, 1e-9);
}

/* A report that was kept and arrives a day late counts when it was made; a trainer's fast clock counts for
 * nothing. */
static void test_late_and_drifting(void **state)
{
    struct added added;

    (void)state;
    begin(1, "ada", "", 1000);
    epoch(1, 1, 1, 100, 10, 87400);
    begin(2, "bob", "", 2000);
    epoch(2, 1, 1, 100, 500, 2010);
    added = add_up(USAGE_USER, 1000, 1010, 0);
    check_double(usage_total(added.usage)->energy_j, 100);
    usage_free(added.usage);
    added = add_up(USAGE_USER, 2000, 2010, 0);
    check_double(usage_total(added.usage)->energy_j, 100);
    usage_free(added.usage);
}

/* ---- who and where ---- */

static void test_keys(void **state)
{
    static const struct {
        enum usage_key key;
        const char *name;
        double energy_j;
    } cases[] = {
        {USAGE_USER, "said:ada", 160},   {USAGE_USER, "said:bob", 50},  {USAGE_USER, "", 8},
        {USAGE_ACCOUNT, "physics", 218}, {USAGE_JOB, "job", 218},       {USAGE_HOST, "node1", 158},
        {USAGE_HOST, "node2", 60},       {USAGE_GPU, "GPU-a", 50 + 25}, {USAGE_GPU, "GPU-b", 50},
        {USAGE_GPU, "GPU-c", 30},        {USAGE_GPU, "", 8 + 25 + 30},
    };

    (void)state;
    /* Preempted after 100 J, and on with one GPU more than is named. */
    begin(1, "ada", "GPU-a,GPU-b", 1000);
    epoch(1, 1, 1, 100, 10, 1010);
    attempt(1, 2, "ada", "node2", "GPU-c", 2000);
    epoch(1, 2, 2, 60, 10, 2010);
    begin(2, "bob", "GPU-a", 3000);
    epoch(2, 1, 1, 50, 10, 3010);
    begin(3, "", "", 4000);
    epoch(3, 1, 1, 8, 10, 4010);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct added added = add_up(cases[i].key, 0, 9000, 0);
        double sum = 0;

        check_close(find(&added, cases[i].name)->energy_j, cases[i].energy_j, 1e-12);
        for (size_t k = 0; k < added.count; k++)
            sum += added.rows[k].sums.energy_j;
        check_close(sum, 218, 1e-12);
        assert_int_equal(usage_total(added.usage)->trials, 3);
        if (cases[i].key == USAGE_HOST)
            assert_int_equal(find(&added, "node1")->trials, 3);
        if (cases[i].key == USAGE_GPU)
            assert_string_equal(added.rows[0].model, "Test GPU");
        assert_string_equal(usage_host_of(added.usage, "GPU-c"), "node2");
        assert_string_equal(usage_host_of(added.usage, "GPU-x"), "");
        usage_free(added.usage);
    }
}

static void test_counts(void **state)
{
    struct added added;
    const struct usage_sums *total;

    (void)state;
    begin(1, "ada", "", 1000); /* crashed without a word */
    end(1, TRIAL_CRASHED, JOB_STOP_NONE, 0, 0, 1010);
    begin(2, "ada", "", 2000); /* fell silent after an epoch */
    epoch(2, 1, 1, 50, 10, 2010);
    end(2, TRIAL_EXPIRED, JOB_STOP_NONE, 50, 10, 2700);
    propose(3, 1, 2, 3000); /* another try, with a figure for its crash */
    attempt(3, 1, "ada", "node1", "", 3000);
    epoch(3, 1, 1, 50, 10, 3010);
    end(3, TRIAL_CRASHED, JOB_STOP_NONE, 70, 15, 3015);
    begin(4, "ada", "", 4000); /* crashed, and nobody knows what it took since */
    epoch(4, 1, 1, 50, 10, 4010);
    end(4, TRIAL_OUT_OF_MEMORY, JOB_STOP_NONE, 50, 10, 4015);
    begin(5, "ada", "", 5000); /* expired, and came back */
    end(5, TRIAL_EXPIRED, JOB_STOP_NONE, 0, 0, 5700);
    epoch(5, 1, 1, 500, 10, 5800);
    end(5, TRIAL_REACHED, JOB_STOP_TARGET, 500, 10, 5800);
    propose(6, 0, 2, 6000); /* nothing ran */
    attempt(6, 1, "ada", "node1", "", 6000);
    end(6, TRIAL_REFUSED, JOB_STOP_COST, 0, 0, 6000);
    begin(7, "ada", "", 7000); /* runs, and has said nothing yet */
    begin(8, "ada", "", 7500); /* a GPU without a figure; in its second attempt another one */
    epoch(8, 1, 1, NAN, 10, 7510);
    attempt(8, 2, "ada", "node1", "", 7600);
    epoch(8, 2, 2, 30, 10, 7610);
    end(8, TRIAL_REACHED, JOB_STOP_TARGET, NAN, 20, 7610);
    shut(8, 2, NAN, 25, 7615);
    begin(9, "ada", "", 8000); /* never a figure */
    epoch(9, 1, 1, NAN, 10, 8010);
    end(9, TRIAL_REACHED, JOB_STOP_TARGET, NAN, 10, 8010);
    added = add_up(USAGE_USER, 0, 9000, 0);
    total = usage_total(added.usage);
    assert_int_equal(total->trials, 9);
    assert_int_equal(total->recurrences, 8);
    assert_int_equal(total->outcomes[TRIAL_CRASHED], 2);
    assert_int_equal(total->outcomes[TRIAL_EXPIRED], 1);
    assert_int_equal(total->outcomes[TRIAL_OUT_OF_MEMORY], 1);
    assert_int_equal(total->outcomes[TRIAL_REACHED], 3);
    assert_int_equal(total->outcomes[TRIAL_REFUSED], 1);
    assert_int_equal(total->running, 1);
    assert_int_equal(total->without_energy, 3);
    assert_int_equal(total->cut_off, 3);
    check_double(total->energy_j, 50 + 70 + 50 + 500 + 30);
    check_double(total->gpu_time_s, 2 * (10 + 15 + 10 + 10 + 25 + 10));
    assert_memory_equal(total, &added.rows[0].sums, sizeof *total);
    usage_free(added.usage);
}

/* ---- long logs ---- */

/* However few trials are held at a time, the sums are the same: many run side by side, and end in disorder.
 */
/* Who has other figures of the same GPUs asks this, so as to count nothing twice. */
static void test_held(void **state)
{
    static const struct {
        const char *uuid, *host;
        double from_s, to_s;
        bool held;
    } cases[] = {
        {"GPU-a", "node1", 1000, 1100, true},  {"GPU-a", "", 900, 1001, true},
        {"GPU-a", "other", 1050, 1060, true}, /* a UUID is one GPU's, wherever it is */
        {"GPU-a", "node1", 500, 990, false},   {"GPU-a", "node1", 1210, 1390, false},
        {"GPU-b", "node1", 1000, 1100, false}, /* not of the first trial, which named all it had */
        {"GPU-b", "node1", 1500, 1510, true}, /* the second one has a GPU on that host that it did not name */
        {"GPU-b", "node2", 1500, 1510, false}, {"GPU-b", "", 1500, 1510, true},
        {"GPU-b", "node1", 1900, 1910, false}, {"GPU-x", "node1", 0, 9000, true},
    };
    struct added added;

    (void)state;
    begin(1, "ada", "GPU-a,GPU-c", 1000);
    epoch(1, 1, 1, 100, 100, 1100);
    end(1, TRIAL_REACHED, JOB_STOP_NONE, 200, 200, 1200);
    begin(2, "bob", "GPU-d", 1400);
    end(2, TRIAL_REACHED, JOB_STOP_NONE, 200, 200, 1600);
    added = add_up(USAGE_USER, 0, 4000, 0);
    for (size_t i = 0; i < COUNT(cases); i++)
        if (usage_has_held(added.usage, cases[i].uuid, cases[i].host, (int64_t)(cases[i].from_s * S),
                           (int64_t)(cases[i].to_s * S)) != cases[i].held)
            fail_msg("%s on %s from %g s to %g s", cases[i].uuid, cases[i].host, cases[i].from_s,
                     cases[i].to_s);
    usage_free(added.usage);
}

static void test_few_slots(void **state)
{
    static const size_t slots[] = {1, 3, 7, 64};
    uint64_t random = 3;
    struct added all;

    (void)state;
    for (uint64_t trial = 1; trial <= 60; trial++) {
        begin(trial, trial % 3 == 0 ? "ada" : "bob", trial % 2 == 0 ? "GPU-a,GPU-b" : "",
              1000.0 + (double)trial);
        epoch(trial, 1, 1, 10, 5, 1005.0 + (double)trial);
    }
    for (uint32_t i = 2; i <= 4; i++) {
        for (uint64_t trial = 1; trial <= 60; trial++) {
            if (test_uniform(&random) < 0.6)
                epoch(trial, 1, i, 10.0 * i, 5.0 * i, 1000.0 + (double)trial + 5.0 * i);
        }
    }
    for (uint64_t trial = 60; trial > 0; trial -= 2)
        end(trial, TRIAL_REACHED, JOB_STOP_TARGET, 45, 22, 1030.0 + (double)trial);
    for (enum usage_key key = 0; key < USAGE_KEYS; key++) {
        all = add_up(key, 1012, 1070, 0);
        for (size_t i = 0; i < COUNT(slots); i++) {
            struct added few = add_up(key, 1012, 1070, slots[i]);

            assert_int_equal(few.count, all.count);
            for (size_t k = 0; k < all.count; k++) {
                const struct usage_sums *sums = find(&few, all.rows[k].name);

                check_close(sums->energy_j, all.rows[k].sums.energy_j, 1e-12);
                check_close(sums->gpu_time_s, all.rows[k].sums.gpu_time_s, 1e-12);
                assert_memory_equal(&sums->trials, &all.rows[k].sums.trials,
                                    sizeof *sums - offsetof(struct usage_sums, trials));
            }
            assert_int_equal(usage_total(few.usage)->outcomes[TRIAL_REACHED],
                             usage_total(all.usage)->outcomes[TRIAL_REACHED]);
            usage_free(few.usage);
        }
        usage_free(all.usage);
    }
}

/* A log that is not understood counts for nothing, and the others stand. */
static void test_unknown_logs(void **state)
{
    static const struct {
        const char *kind, *body, *words;
        uint64_t trial;
        int code;
    } cases[] = {
        {"teleported", "{}", "'teleported' is not known here", 1, FLY_EUNSUPPORTED},
        {"epoch", "{\"attempt\":1}", "event 4 ('epoch'): member 'epoch'", 1, FLY_EDATA},
        {"epoch", "{}", "was never proposed", 9, FLY_EDATA},
        {"attempt", "[]", "event 4 ('attempt')", 1, FLY_EDATA},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct usage_options options = {.key = USAGE_JOB, .until_us = INT64_MAX};
        const struct usage_row *rows;
        struct usage *usage;
        struct fly_error error;
        size_t count;

        clear(NULL);
        begin(1, "ada", "", 1000);
        epoch(1, 1, 1, 50, 10, 1010);
        assert_int_equal(usage_new(&options, &usage, &error), 0);
        assert_int_equal(usage_add_job(usage, &jobs, "good", &error), 0);
        append(cases[i].kind, cases[i].trial, 1020, json_loads(cases[i].body, 0, NULL));
        assert_int_equal(usage_add_job(usage, &jobs, "bad", &error), cases[i].code);
        check_contains(error.text, cases[i].words);
        assert_int_equal(usage_rows(usage, &rows, &count, &error), 0);
        assert_int_equal(count, 1);
        assert_string_equal(rows[0].name, "good");
        check_double(usage_total(usage)->energy_j, 50);
        usage_free(usage);
    }
}

static int shut_log(void **state)
{
    return clear(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_borders, clear),
        cmocka_unit_test_setup(test_periods_add_up, clear),
        cmocka_unit_test_setup(test_late_and_drifting, clear),
        cmocka_unit_test_setup(test_keys, clear),
        cmocka_unit_test_setup(test_counts, clear),
        cmocka_unit_test_setup(test_held, clear),
        cmocka_unit_test_setup(test_few_slots, clear),
        cmocka_unit_test_setup(test_unknown_logs, clear),
    };

    return cmocka_run_group_tests(tests, NULL, shut_log);
}
