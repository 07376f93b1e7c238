/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that count grams or money: what their grid does to the search (nothing) and to what is told. */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "job/grid_amount.h"

enum { SUBMISSIONS = 40, TRIES_MAX = 400, NEVER = 1000 };

static struct job_fixture fixture;

/* Both unknown, or the same but for rounding. */
static void check_same(double actual, double expected)
{
    if (isnan(expected))
        assert_true(isnan(actual));
    else
        check_close(actual, expected, 1e-12);
}

static struct job_definition grid_definition(enum fly_objective_kind kind)
{
    struct job_definition definition = job_fixture_definition("job");

    definition.objective = (struct fly_objective){kind, 0.5, INFINITY};
    definition.grid = "gb:national";
    return definition;
}

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

static void live(const struct job_definition *definition, grid reference, struct course *course)
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

        check_double(history.rows[i].cost_j, history.rows[i].energy_j);
        check_same(history.rows[i].reference_per_kwh, known);
        check_same(history.rows[i].grid_amount, known * history.rows[i].energy_j / 3.6e6);
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
            fail_msg("grid %zu, trial %zu: batch size %u for %u epochs, %s, stopped by %s; the flat grid: %u "
                     "for %u, %s, by %s",
                     which, i + 1, a->batch_size, a->epochs, job_reason_name(a->reason),
                     job_stop_name(a->stop), b->batch_size, b->epochs, job_reason_name(b->reason),
                     job_stop_name(b->stop));
    }
}

/* Whatever the grid does, and whatever is known of it, the search is that of energy. */
static void test_the_grid_teaches_nothing(void **state)
{
    static const grid grids[] = {flat,    doubles_overnight, doubles_in_a_week,    falls,
                                 is_zero, is_not_known,      is_known_now_and_then};
    static const enum fly_objective_kind kinds[] = {FLY_OBJECTIVE_ENERGY, FLY_OBJECTIVE_CARBON,
                                                    FLY_OBJECTIVE_MONEY};
    struct course *expected = calloc(1, sizeof *expected), *course = calloc(1, sizeof *course);
    bool reasons[REASON_COUNT] = {false};

    (void)state;
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        struct job_definition definition = grid_definition(kinds[kind]);

        for (size_t i = 0; i < COUNT(grids); i++) {
            course->count = 0;
            live(&definition, grids[i], kind + i == 0 ? expected : course);
            if (kind + i > 0)
                compare(course, expected, i);
        }
    }
    for (size_t i = 0; i < expected->count; i++)
        reasons[expected->tries[i].reason] = true;
    assert_true(reasons[REASON_EXPLORE] && reasons[REASON_SAMPLED]);
    assert_int_equal(expected->tries[expected->count - 1].stop, JOB_STOP_TARGET);
    free(expected);
    free(course);
}

/* ---- what is frozen ---- */

static struct job_epoch epoch_of(uint64_t trial, uint32_t epoch, double metric, double reference_per_kwh)
{
    return (struct job_epoch){.job = "job",
                              .trial = trial,
                              .attempt = 1,
                              .epoch = epoch,
                              .metric = metric,
                              .energy_j = 1800.0 * epoch,
                              .time_s = 10.0 * epoch,
                              .reference_per_kwh = reference_per_kwh};
}

static void report(uint64_t trial, uint32_t epoch, double metric, double reference_per_kwh)
{
    const struct job_epoch told = epoch_of(trial, epoch, metric, reference_per_kwh);

    job_fixture_report(&fixture, &told);
}

static void end(uint64_t trial, double reference_per_kwh)
{
    job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                .trial = trial,
                                                .attempt = 1,
                                                .outcome = TRIAL_CRASHED,
                                                .energy_j = 7200.0,
                                                .time_s = 40.0,
                                                .reference_per_kwh = reference_per_kwh});
}

static void begin(uint64_t trial)
{
    struct job_question question = job_fixture_question("job");

    assert_int_equal(job_fixture_propose(&fixture, &question).trial, trial);
}

static void test_frozen(void **state)
{
    static const double expected[] = {250.0, 250.0, 220.0, 0.0, 300.0, 310.0, 0.0, 230.0};
    const struct job_definition definition = grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_history history;
    struct job_grid_sum sum;
    struct job_shown shown;
    struct job_answered answered;
    struct job_epoch again;
    struct fly_error error;

    (void)state;
    job_fixture_define(&fixture, &definition);
    begin(1); /* the report's own */
    report(1, 1, 0.5, 200.0);
    report(1, 2, 0.95, 250.0);
    end(1, 999.0); /* what is frozen stays */
    begin(2);      /* the newest known */
    report(2, 1, 0.5, 250.0);
    report(2, 2, 0.95, NAN);
    begin(3); /* of an end that says it */
    report(3, 1, 0.5, 210.0);
    end(3, 220.0);
    begin(4); /* never known, and not above 0 is not known */
    report(4, 1, 0.5, 0.0);
    report(4, 2, 0.5, -4.0);
    end(4, NAN);
    begin(5); /* of an end that does not */
    report(5, 1, 0.5, 300.0);
    end(5, NAN);
    begin(6); /* known only when the run was closed */
    report(6, 1, 0.95, NAN);
    end(6, 310.0);
    begin(7);
    report(7, 1, 0.95, NAN);
    begin(8); /* expired */
    report(8, 1, 0.5, 230.0);
    fixture.now_us += INT64_C(200000000000);
    begin(9);

    history = job_fixture_history(&fixture, &fixture.arena);
    for (size_t i = 0; i < COUNT(expected); i++)
        check_same(history.rows[i].reference_per_kwh, expected[i] > 0.0 ? expected[i] : NAN);
    assert_int_equal(history.rows[7].outcome, TRIAL_EXPIRED);
    check_double(history.reference_per_kwh, 230.0);
    check_same(history.rows[0].grid_amount, 2 * 1800.0 / 3.6e6 * 250.0);
    check_same(history.rows[0].run_grid_amount, 7200.0 / 3.6e6 * 250.0);
    check_same(history.rows[3].grid_amount, NAN);
    sum = job_history_grid_sum(&history);
    assert_int_equal(sum.known, 6);
    assert_int_equal(sum.unknown, 2);
    check_same(sum.amount,
               (7200 * 250.0 + 3600 * 250.0 + 7200 * 220.0 + 7200 * 300.0 + 7200 * 310.0 + 1800 * 230.0) /
                   3.6e6);

    /* A report that is sent again has a reference of its own time. */
    again = epoch_of(8, 1, 0.5, 777.0);
    check_fine(fixture.jobs.backend->report(fixture.jobs.self, &again, &answered, &error), error);
    assert_true(answered.repeated);
    again.epoch = 2, again.reference_per_kwh = INFINITY;
    assert_int_equal(fixture.jobs.backend->report(fixture.jobs.self, &again, &answered, &error), FLY_EDATA);
    check_contains(error.text, "reference_per_kwh");
    check_fine(fixture.jobs.backend->show(fixture.jobs.self, "job", &fixture.arena, &shown, &error), error);
    assert_string_equal(shown.definition.grid, "gb:national");
    assert_int_equal(shown.objective.kind, FLY_OBJECTIVE_CARBON);
}

/* ---- what is told ---- */

static void test_why(void **state)
{
    const struct job_definition definition = grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_question question = job_fixture_question("job");
    struct job_explanation explanation;
    struct fly_error error;

    (void)state;
    question.tries = 1;
    job_fixture_define(&fixture, &definition);
    job_fixture_propose(&fixture, &question);
    report(1, 1, 0.95, NAN);
    job_fixture_propose(&fixture, &question);
    check_fine(job_explain(&fixture.jobs, "job", 2, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.sentence, "at a cost of 1800 J each");
    assert_null(strstr(explanation.sentence, "CO2"));
    assert_null(strstr(explanation.numbers, "reference_g_per_kwh"));
    report(2, 1, 0.95, 250.0);
    job_fixture_reopen(&fixture);
    job_fixture_propose(&fixture, &question);
    check_fine(job_explain(&fixture.jobs, "job", 3, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.sentence, "at a cost of 1800 J each, 0.125 g of CO2 at 250 g/kWh");
    check_contains(explanation.numbers, "\"reference_g_per_kwh\":250.0");
}

static int keep(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)out_error;
    buffer_append(context, bytes, count);
    return 0;
}

/* Out and in again: the same log, the same choice. */
static void test_export_and_import(void **state)
{
    struct job_definition definition = grid_definition(FLY_OBJECTIVE_MONEY);
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
    check_same(history.rows[1].grid_amount, history.rows[1].energy_j / 3.6e6 * 102.0);
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

/* ---- proposals ---- */

static void test_expected_epochs(void **state)
{
    struct job_definition definition = grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_question question = job_fixture_question("job"), other = question;
    struct job_proposal proposal;

    (void)state;
    definition.control_every = 1; /* the default each time */
    job_fixture_define(&fixture, &definition);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, NAN);
    job_fixture_train(&fixture, &question, 4, 1000, 10, 0.95, &proposal);
    check_same(proposal.expected_epochs, NAN); /* the first still runs */
    proposal = job_fixture_propose(&fixture, &question);
    check_same(proposal.expected_epochs, 4.0);
    job_fixture_train(&fixture, &question, 20, 1000, 10, 0.5, NULL); /* a failure is no model */
    other.hardware.gpu_model = "Another GPU";                        /* epochs do not depend on it */
    job_fixture_train(&fixture, &other, 7, 1000, 10, 0.95, &proposal);
    check_same(proposal.expected_epochs, 4.0);
    job_fixture_reopen(&fixture);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, 5.5);
}

static void test_expected_without_an_end(void **state)
{
    struct job_definition definition = grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_question question = job_fixture_question("job");

    (void)state;
    definition.trains_on = true;
    job_fixture_define(&fixture, &definition);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, 20.0);
    question.job = definition.name = "other";
    definition.trains_on = false;
    definition.target = JOB_NO_TARGET;
    job_fixture_define(&fixture, &definition);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, 20.0);
}

/* ---- the definition ---- */

static void test_definitions(void **state)
{
    struct job_definition definition = grid_definition(FLY_OBJECTIVE_CARBON), other = definition;
    const struct job_backend *at = fixture.jobs.backend;
    struct job_registered registered;
    struct fly_error error;
    char text[JOB_GRID_MAX + 2];

    (void)state;
    other.grid = NULL;
    check_fails(at->define(fixture.jobs.self, &other, &registered, &error), FLY_EUSAGE, error,
                "objective 'carbon' counts by a grid, and the job names none");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    other.grid = text;
    check_fails(at->define(fixture.jobs.self, &other, &registered, &error), FLY_ELIMIT, error, "grid");
    other.grid = "gb:\n";
    assert_true(at->define(fixture.jobs.self, &other, &registered, &error) < 0);
    job_fixture_define(&fixture, &definition);
    job_fixture_define(&fixture, &definition);
    other.grid = "gb:13";
    check_fails(at->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "another definition: grid (\"gb:national\", now \"gb:13\")");
    other = definition;
    other.objective.kind = FLY_OBJECTIVE_ENERGY;
    other.grid = NULL;
    check_fails(at->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "grid (\"gb:national\", now none)");
    other = job_fixture_definition("plain");
    job_fixture_define(&fixture, &other);
    other.grid = "gb:13";
    check_fails(at->define(fixture.jobs.self, &other, &registered, &error), FLY_ECONFLICT, error,
                "grid (none, now \"gb:13\")");
}

/* An objective can be set later where the grid has what it counts. */
static void test_settings(void **state)
{
    static const struct {
        const char *job;
        enum fly_objective_kind kind;
        int code;
        const char *words;
    } rows[] = {
        {"plain", FLY_OBJECTIVE_CARBON, FLY_EUSAGE, "the job names none"},
        {"plain", FLY_OBJECTIVE_MONEY, FLY_EUSAGE, "the job names none"},
        {"job", FLY_OBJECTIVE_MONEY, FLY_EUSAGE, "'gb:national' gives intensities"},
        {"paid", FLY_OBJECTIVE_CARBON, FLY_EUSAGE, "'gb:national' gives prices"},
        {"job", FLY_OBJECTIVE_ENERGY, 0, ""},
        {"job", FLY_OBJECTIVE_CARBON, 0, ""},
        {"paid", FLY_OBJECTIVE_TIME, 0, ""},
        {"paid", FLY_OBJECTIVE_MONEY, 0, ""},
    };
    struct job_definition job = grid_definition(FLY_OBJECTIVE_CARBON),
                          paid = grid_definition(FLY_OBJECTIVE_MONEY),
                          plain = job_fixture_definition("plain");

    (void)state;
    paid.name = "paid";
    job_fixture_define(&fixture, &job);
    job_fixture_define(&fixture, &paid);
    job_fixture_define(&fixture, &plain);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct job_setting setting = {
            .job = rows[i].job, .set_objective = true, .objective = {rows[i].kind, 0.5, INFINITY}};
        struct fly_error error = {.text = ""};

        assert_int_equal(fixture.jobs.backend->set(fixture.jobs.self, &setting, &error), rows[i].code);
        if (rows[i].code < 0)
            check_contains(error.text, rows[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_grid_teaches_nothing),
        job_test(test_frozen),
        job_test(test_why),
        job_test(test_export_and_import),
        job_test(test_old_logs),
        job_test(test_expected_epochs),
        job_test(test_expected_without_an_end),
        job_test(test_definitions),
        job_test(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
