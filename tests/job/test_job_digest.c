/* SPDX-License-Identifier: Apache-2.0 */
/* The history by way of the digest: the same as from the whole log, and at the same cost for a long one. */
#include "job_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "job/past/history_fold.h"
#include "job/past/job_frontier.h"

enum { MEMORY_MAX = 256 << 20, ROUND = 60, READ_MOST = 300, NEWEST = 5 };

static struct job_fixture fixture;

/* ---- what is read ---- */

/* The fixture's back end, whose events are counted; the digest can be left out. */
static struct job_backend counted;
static uint64_t events_read;

struct counting {
    store_visit *visit;
    void *state;
};

static int count_one(void *context, const struct store_event *event, struct fly_error *out_error)
{
    const struct counting *counting = context;

    events_read++;
    return counting->visit(counting->state, event, out_error);
}

static int read_counted(void *self, const char *job, const struct store_query *query, store_visit *visit,
                        void *state, struct fly_error *out_error)
{
    struct counting counting = {visit, state};

    return fixture.jobs.backend->read(self, job, query, count_one, &counting, out_error);
}

static struct jobs jobs_counted(bool with_digest)
{
    counted = *fixture.jobs.backend;
    counted.read = read_counted;
    if (!with_digest)
        counted.digest = NULL;
    events_read = 0;
    return (struct jobs){&counted, fixture.jobs.self};
}

static struct job_history read_newest(bool with_digest, uint64_t trials, struct arena *arena)
{
    const struct jobs jobs = jobs_counted(with_digest);
    struct job_history history;
    struct fly_error error;

    check_fine(job_history_read_newest(&jobs, "job", trials, arena, &history, &error), error);
    return history;
}

/* All that a history tells, as bytes. */
static void put(const struct job_history *history, struct buffer *bytes)
{
    const struct digest_mark mark = {0};

    buffer_init(bytes, MEMORY_MAX);
    digest_put_head(&mark, history, bytes);
    digest_put_rows(history->rows, history->count, bytes);
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];

        buffer_printf(bytes, "%llu %zu %.17g %.17g %.17g\n", (unsigned long long)row->trial.trial,
                      row->revision, row->trial.cost_j, row->grid_amount, row->run_grid_amount);
    }
    buffer_puts(bytes, history->definition.name);
    assert_int_equal(bytes->error, 0);
}

static void check_alike(const struct job_history *one, const struct job_history *other)
{
    struct buffer first, second;

    put(one, &first);
    put(other, &second);
    assert_int_equal(one->count, other->count);
    assert_int_equal(one->revision, other->revision);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    buffer_deinit(&first);
    buffer_deinit(&second);
}

/* ---- a job to which much happens ---- */

static void end_later(uint64_t trial, double energy_j)
{
    job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                .trial = trial,
                                                .attempt = 1,
                                                .outcome = TRIAL_REACHED,
                                                .energy_j = energy_j,
                                                .time_s = 40,
                                                .reference_per_kwh = 300.0 + (double)trial});
}

static void train_some(int trials, uint64_t *number)
{
    static const char *const hosts[] = {"node1", "node2"};
    struct job_question question = job_fixture_question("job");

    for (int i = 0; i < trials; i++) {
        question.origin.host = hosts[*number / 7 % 2];
        question.hardware.gpu_model = *number % 11 == 5 ? "Another GPU" : "Test GPU";
        job_fixture_train(&fixture, &question, 2, 1000 + (double)(*number % 13), 10,
                          *number % 9 == 4 ? 0.1 : 0.95, NULL);
        ++*number;
    }
}

/* A trial that expires, one that goes on running, and ends of trials long past. */
static void trouble(uint64_t number)
{
    struct job_question question = job_fixture_question("job");
    struct fly_error error;
    uint64_t expired;

    job_fixture_propose(&fixture, &question);
    fixture.now_us += INT64_C(1000000) * 3600 * 24 * 30;
    check_fine(fixture.jobs.backend->expire(fixture.jobs.self, "job", &expired, &error), error);
    assert_true(expired > 0);
    end_later(1, 5000.0 + (double)number);
    job_fixture_propose(&fixture, &question);
}

static void set_objective(double eta)
{
    const struct job_setting setting = {
        .job = "job",
        .set_objective = true,
        .objective = {.kind = FLY_OBJECTIVE_COST, .eta = eta, .max_slowdown = INFINITY},
        .pin_limit_w = NAN};
    struct fly_error error;

    check_fine(fixture.jobs.backend->set(fixture.jobs.self, &setting, &error), error);
}

static void revise(const char *revision)
{
    struct fly_job_definition definition = job_fixture_definition("job");

    definition.revision = revision;
    job_fixture_define(&fixture, &definition);
}

static void check_now(void)
{
    struct job_history with, without, newest;
    struct arena arena;

    arena_init(&arena, MEMORY_MAX);
    with = read_newest(true, 0, &arena);
    assert_in_range(events_read, 1, READ_MOST);
    without = read_newest(false, 0, &arena);
    assert_true(events_read > READ_MOST);
    check_alike(&with, &without);
    newest = read_newest(true, NEWEST, &arena);
    assert_in_range(events_read, 1, READ_MOST);
    assert_int_equal(newest.count, NEWEST);
    without.rows += without.count - NEWEST;
    without.count = NEWEST;
    check_alike(&newest, &without);
    arena_deinit(&arena);
}

static void test_same(void **state)
{
    uint64_t number = 0;

    (void)state;
    revise("one");
    train_some(3 * ROUND, &number);
    check_now();
    trouble(number);
    check_now();
    set_objective(0.25);
    train_some(ROUND, &number);
    check_now();
    revise("two");
    train_some(ROUND, &number);
    trouble(number);
    check_now();
    job_fixture_reopen(&fixture);
    train_some(ROUND, &number);
    check_now();
}

/* The frontier and the profiles behind it cost no more after more trials. */
static void test_frontier(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    uint64_t number = 0, most[2];

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 2; i++) {
        struct job_profiles profiles;
        struct job_frontier frontier;
        struct job_history history;
        struct fly_error error;
        struct arena arena;
        struct jobs jobs;

        train_some((i + 1) * 2 * ROUND, &number);
        arena_init(&arena, MEMORY_MAX);
        history = read_newest(true, 0, &arena);
        jobs = jobs_counted(true);
        check_fine(job_profiles_read(&jobs, &history, &arena, &profiles, &error), error);
        check_fine(job_frontier_read(&jobs, &history, &profiles, 0, &arena, &frontier, &error), error);
        assert_true(profiles.count > 0);
        most[i] = events_read;
        arena_deinit(&arena);
    }
    assert_in_range(most[1], 1, most[0] + 16);
}

/* ---- bytes that are no digest of this log ---- */

static void check_fold(const struct history_digest *digest)
{
    const struct history_source source = {fixture.jobs.backend->read, fixture.jobs.self, "job", 0};
    struct history_fold fold;
    struct job_history whole;
    struct fly_error error;
    struct arena arena;

    arena_init(&arena, MEMORY_MAX);
    whole = read_newest(false, 0, &arena);
    check_fine(history_fold(&source, digest, &arena, &fold, &error), error);
    check_alike(&fold.history, &whole);
    arena_deinit(&arena);
}

static void test_others(void **state)
{
    enum { FIRST_BYTES = 8, VERSION_BYTES = 8 + sizeof DIGEST_VERSION - 1, STEP = 997 };
    struct fly_job_definition definition = job_fixture_definition("job");
    struct history_digest digest;
    struct fly_error error;
    struct buffer bytes;
    uint64_t number = 0;

    (void)state;
    job_fixture_define(&fixture, &definition);
    train_some(2 * ROUND, &number);
    buffer_init(&bytes, MEMORY_MAX);
    check_fine(fixture.jobs.backend->digest(fixture.jobs.self, "job", 0, &bytes, &error), error);
    assert_true(bytes.length > 0);
    digest = (struct history_digest){bytes.data, bytes.length};
    check_fold(&digest);
    for (digest.length = 1; digest.length < bytes.length; digest.length += STEP)
        check_fold(&digest);
    digest.length = bytes.length;
    bytes.data[FIRST_BYTES + VERSION_BYTES + 8] ^= 1; /* the time of its last event */
    check_fold(&digest);
    bytes.data[FIRST_BYTES + VERSION_BYTES - 1] ^= 1; /* the version */
    check_fold(&digest);
    buffer_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_same),
        job_test(test_frontier),
        job_test(test_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
