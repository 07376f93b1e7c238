/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that count grams or money: what is frozen of their grid, and what is told. */
#include "job_fixture.h"

#include "job/core/grid_amount.h"

static struct job_fixture fixture;

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
    const struct fly_job_definition definition = job_fixture_grid_definition(FLY_OBJECTIVE_CARBON);
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
        check_same(history.rows[i].reference_per_kwh, expected[i] > 0.0 ? expected[i] : NAN, 1e-12);
    assert_int_equal(history.rows[7].outcome, TRIAL_EXPIRED);
    check_double(history.reference_per_kwh, 230.0);
    check_same(history.rows[0].grid_amount, 2 * 1800.0 / 3.6e6 * 250.0, 1e-12);
    check_same(history.rows[0].run_grid_amount, 7200.0 / 3.6e6 * 250.0, 1e-12);
    check_same(history.rows[3].grid_amount, NAN, 1e-12);
    sum = job_history_grid_sum(&history);
    assert_int_equal(sum.known, 6);
    assert_int_equal(sum.unknown, 2);
    check_same(sum.amount,
               (7200 * 250.0 + 3600 * 250.0 + 7200 * 220.0 + 7200 * 300.0 + 7200 * 310.0 + 1800 * 230.0) /
                   3.6e6,
               1e-12);

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
    const struct fly_job_definition definition = job_fixture_grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_question question = job_fixture_question("job");
    struct fly_job_why explanation;
    struct fly_error error;

    (void)state;
    question.tries = 1;
    job_fixture_define(&fixture, &definition);
    job_fixture_propose(&fixture, &question);
    report(1, 1, 0.95, NAN);
    job_fixture_propose(&fixture, &question);
    check_fine(job_explain(&fixture.jobs, "job", 2, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.sentence, "its only trial reached the target, at 1800 J");
    assert_null(strstr(explanation.sentence, "CO2"));
    assert_null(strstr(explanation.numbers, "reference_g_per_kwh"));
    report(2, 1, 0.95, 250.0);
    job_fixture_reopen(&fixture);
    job_fixture_propose(&fixture, &question);
    check_fine(job_explain(&fixture.jobs, "job", 3, &fixture.arena, &explanation, &error), error);
    check_contains(explanation.sentence, "at 1800 J each, 0.125 g of CO2 at 250 g/kWh");
    check_contains(explanation.numbers, "\"reference_g_per_kwh\":250.0");
}

/* ---- proposals ---- */

static void test_expected_epochs(void **state)
{
    struct fly_job_definition definition = job_fixture_grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_question question = job_fixture_question("job"), other = question;
    struct job_proposal proposal;

    (void)state;
    definition.control_every = 1; /* the default each time */
    job_fixture_define(&fixture, &definition);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, NAN, 1e-12);
    job_fixture_train(&fixture, &question, 4, 1000, 10, 0.95, &proposal);
    check_same(proposal.expected_epochs, NAN, 1e-12); /* the first still runs */
    proposal = job_fixture_propose(&fixture, &question);
    check_same(proposal.expected_epochs, 4.0, 1e-12);
    job_fixture_train(&fixture, &question, 20, 1000, 10, 0.5, NULL); /* a failure is no model */
    other.hardware.gpu_model = "Another GPU";                        /* epochs do not depend on it */
    job_fixture_train(&fixture, &other, 7, 1000, 10, 0.95, &proposal);
    check_same(proposal.expected_epochs, 4.0, 1e-12);
    job_fixture_reopen(&fixture);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, 5.5, 1e-12);
}

static void test_expected_without_an_end(void **state)
{
    struct fly_job_definition definition = job_fixture_grid_definition(FLY_OBJECTIVE_CARBON);
    struct job_question question = job_fixture_question("job");

    (void)state;
    definition.trains_on = true;
    job_fixture_define(&fixture, &definition);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, 20.0, 1e-12);
    question.job = definition.name = "other";
    definition.trains_on = false;
    definition.target = FLY_TARGET_NONE;
    job_fixture_define(&fixture, &definition);
    check_same(job_fixture_propose(&fixture, &question).expected_epochs, 20.0, 1e-12);
}

/* ---- the definition ---- */

static void test_definitions(void **state)
{
    struct fly_job_definition definition = job_fixture_grid_definition(FLY_OBJECTIVE_CARBON),
                              other = definition;
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
    struct fly_job_definition job = job_fixture_grid_definition(FLY_OBJECTIVE_CARBON),
                              paid = job_fixture_grid_definition(FLY_OBJECTIVE_MONEY),
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
        job_test(test_frozen),          job_test(test_why),
        job_test(test_expected_epochs), job_test(test_expected_without_an_end),
        job_test(test_definitions),     job_test(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
