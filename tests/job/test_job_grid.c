/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that count grams or money: what their grid does to the search, which is nothing. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "job/core/grid_amount.h"

enum { SUBMISSIONS = 40, TRIES_MAX = 400, NEVER = 1000 };

static struct job_fixture fixture;

/* ---- what is learnt ---- */

/* What the grid's reference is when the N-th trial ends, counted from 1. */
static double flat(uint64_t trial)
{
    (void)trial;
    return 200.0;
}

static double doubles_overnight(uint64_t trial)
{
    return trial < 12 ? 200.0 : 400.0;
}

/* The mean of the week before, of a grid that doubled at the twelfth trial, with one trial a day. */
static double doubles_in_a_week(uint64_t trial)
{
    return trial < 12 ? 200.0 : trial < 19 ? 200.0 + 200.0 / 7.0 * (double)(trial - 11) : 400.0;
}

static double falls(uint64_t trial)
{
    return 200.0 / (double)trial;
}

static double is_not_known(uint64_t trial)
{
    (void)trial;
    return NAN;
}

static double is_zero(uint64_t trial)
{
    (void)trial;
    return 0.0;
}

static double is_known_now_and_then(uint64_t trial)
{
    return trial % 3 == 1 ? NAN : 100.0 + (double)trial;
}

typedef double (*grid)(uint64_t trial);

/* A trial as it was decided, and how it ended. */
struct decided {
    uint32_t batch_size, epochs;
    double limit_w;
    enum reason reason;
    enum job_stop stop;
};

struct course {
    struct decided tries[TRIES_MAX];
    size_t count;
};

/* Epochs that a batch size needs, and what one takes: another figure for each trial, the same in each world.
 */
static uint32_t epochs_of(uint32_t batch_size, uint64_t trial)
{
    return batch_size == 128 ? NEVER : 3 + 128 / batch_size / 2 + (uint32_t)(trial * 7 % 3);
}

static double epoch_j_of(uint32_t batch_size, uint64_t trial)
{
    return 1000.0 + 2.0 * batch_size + (double)(trial * 37 % 11);
}

static bool live_try(struct job_fixture *job, const char *submission, grid reference, struct course *course)
{
    struct job_question question = job_fixture_question("job");
    struct job_answered answered = {.answer = JOB_GO_ON};
    struct job_proposal proposal;
    struct decided *decided = &course->tries[course->count++];

    assert_true(course->count < TRIES_MAX);
    question.submission = submission;
    proposal = job_fixture_propose(job, &question);
    if (proposal.wants_profile)
        proposal.epochs = job_fixture_profile(job, "job", proposal.trial).epochs;
    for (uint32_t epoch = 1; answered.answer == JOB_GO_ON; epoch++) {
        job->now_us += INT64_C(10000000);
        answered = job_fixture_report(
            job, &(struct job_epoch){.job = "job",
                                     .trial = proposal.trial,
                                     .attempt = 1,
                                     .epoch = epoch,
                                     .metric =
                                         epoch >= epochs_of(proposal.batch_size, proposal.trial) ? 0.95 : 0.5,
                                     .energy_j = epoch * epoch_j_of(proposal.batch_size, proposal.trial),
                                     .time_s = 10.0 * epoch,
                                     .reference_per_kwh = reference(proposal.trial)});
    }
    *decided = (struct decided){proposal.batch_size, proposal.epochs, proposal.limit_w, proposal.reason,
                                answered.stop};
    return answered.answer == JOB_REACHED;
}

static void live(const struct fly_job_definition *definition, grid reference, struct course *course)
{
    struct job_fixture job;
    struct arena arena;
    struct job_history history;

    job_fixture_open(&job);
    job_fixture_define(&job, definition);
    for (int i = 0; i < SUBMISSIONS; i++) {
        char submission[16];

        snprintf(submission, sizeof submission, "%d", i);
        if (i % 8 == 0)
            job_fixture_reopen(&job); /* from a snapshot, or from the log */
        while (!live_try(&job, submission, reference, course))
            ;
    }
    /* Costs are in joules from the first to the last, whatever the grid did. */
    arena_init(&arena, 1 << 24);
    history = job_fixture_history(&job, &arena);
    assert_int_equal(history.count, course->count);
    for (size_t i = 0; i < history.count; i++) {
        double known = reference(i + 1) > 0.0 ? reference(i + 1) : NAN;

        check_double(history.rows[i].trial.cost_j, history.rows[i].trial.energy_j);
        check_same(history.rows[i].reference_per_kwh, known, 1e-12);
        check_same(history.rows[i].grid_amount, known * history.rows[i].trial.energy_j / 3.6e6, 1e-12);
    }
    arena_deinit(&arena);
    job_fixture_close(&job);
}

static void compare(const struct course *course, const struct course *expected, size_t which)
{
    assert_int_equal(course->count, expected->count);
    for (size_t i = 0; i < course->count; i++) {
        const struct decided *a = &course->tries[i], *b = &expected->tries[i];

        if (a->batch_size != b->batch_size || a->epochs != b->epochs || a->reason != b->reason ||
            a->stop != b->stop || !(a->limit_w == b->limit_w || (isnan(a->limit_w) && isnan(b->limit_w))))
            fail_msg("world %zu, trial %zu: batch size %u for %u epochs, %s, stopped by %s; least energy: %u "
                     "for %u, %s, by %s",
                     which, i + 1, a->batch_size, a->epochs, job_reason_name(a->reason),
                     job_stop_name(a->stop), b->batch_size, b->epochs, job_reason_name(b->reason),
                     job_stop_name(b->stop));
    }
}

/* Whatever the grid does, and whatever is known of it, the search is that of energy. */
static void test_the_grid_teaches_nothing(void **state)
{
    static const struct {
        enum fly_objective_kind kind;
        grid reference;
    } worlds[] = {
        {FLY_OBJECTIVE_ENERGY, is_not_known},
        {FLY_OBJECTIVE_CARBON, flat},
        {FLY_OBJECTIVE_CARBON, doubles_overnight},
        {FLY_OBJECTIVE_CARBON, doubles_in_a_week},
        {FLY_OBJECTIVE_CARBON, falls},
        {FLY_OBJECTIVE_CARBON, is_zero},
        {FLY_OBJECTIVE_CARBON, is_known_now_and_then},
        {FLY_OBJECTIVE_MONEY, doubles_overnight},
    };
    struct course *expected = calloc(1, sizeof *expected), *course = calloc(1, sizeof *course);
    bool reasons[REASON_COUNT] = {false};

    (void)state;
    for (size_t i = 0; i < COUNT(worlds); i++) {
        struct fly_job_definition definition = job_fixture_grid_definition(worlds[i].kind);

        course->count = 0;
        live(&definition, worlds[i].reference, i == 0 ? expected : course);
        if (i > 0)
            compare(course, expected, i);
    }
    for (size_t i = 0; i < expected->count; i++)
        reasons[expected->tries[i].reason] = true;
    assert_true(reasons[REASON_EXPLORE] && reasons[REASON_SAMPLED]);
    assert_int_equal(expected->tries[expected->count - 1].stop, JOB_STOP_TARGET);
    free(expected);
    free(course);
}

/* ---- out and in ---- */

static int keep(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    buffer_append(context, bytes, count);
    return 0;
}

/* Out and in again: the same log, the same choice. */
static void test_export_and_import(void **state)
{
    struct fly_job_definition definition = job_fixture_grid_definition(FLY_OBJECTIVE_MONEY);
    struct course course = {.count = 0};
    struct buffer lines, again;
    struct job_history history;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 3; i++) {
        while (!live_try(&fixture, "", is_known_now_and_then, &course))
            ;
    }
    buffer_init(&lines, 1 << 22);
    buffer_init(&again, 1 << 22);
    check_fine(job_export(&fixture.jobs, "job", keep, &lines, &error), error);
    check_contains(lines.data, "\"grid\":\"gb:national\"");
    check_contains(lines.data, "\"reference_per_kwh\":102.0");
    check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    check_fine(fixture.jobs.backend->import(fixture.jobs.self, "job", lines.data, lines.length, &error),
               error);
    check_fine(job_export(&fixture.jobs, "job", keep, &again, &error), error);
    assert_string_equal(lines.data, again.data);
    history = job_fixture_history(&fixture, &fixture.arena);
    assert_true(job_counts_money(&history.definition));
    check_same(history.rows[1].grid_amount, history.rows[1].trial.energy_j / 3.6e6 * 102.0, 1e-12);
    buffer_deinit(&lines);
    buffer_deinit(&again);
}

/* A log of before there were grids: read and written as it was. */
static void test_old_logs(void **state)
{
    static const char *const logs[] = {"default", "grid", "zeus", "zeus-server"};

    (void)state;
    for (size_t i = 0; i < COUNT(logs); i++) {
        char path[64];
        struct buffer lines, again;
        struct job_history history;
        struct fly_error error;
        FILE *stream;
        char bytes[4096];

        snprintf(path, sizeof path, "fuzz/corpus/job_log/%s", logs[i]);
        stream = fopen(path, "r");
        assert_non_null(stream);
        buffer_init(&lines, 1 << 22);
        buffer_init(&again, 1 << 22);
        for (size_t count = 1; count > 0;) {
            count = fread(bytes, 1, sizeof bytes, stream);
            buffer_append(&lines, bytes, count);
        }
        fclose(stream);
        check_fine(fixture.jobs.backend->import(fixture.jobs.self, "job", lines.data, lines.length, &error),
                   error);
        check_fine(job_export(&fixture.jobs, "job", keep, &again, &error), error);
        assert_string_equal(lines.data, again.data);
        history = job_fixture_history(&fixture, &fixture.arena);
        assert_true(history.count > 0);
        assert_string_equal(history.definition.grid, "");
        for (size_t row = 0; row < history.count; row++)
            assert_true(isnan(history.rows[row].reference_per_kwh) && isnan(history.rows[row].grid_amount));
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
        buffer_deinit(&lines);
        buffer_deinit(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_grid_teaches_nothing),
        job_test(test_export_and_import),
        job_test(test_old_logs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
