/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs a saving is of: what failed, stopped defaults, controls and what came after them, and the
 * balance. */
#include "test.h"

#include "job/past/savings.h"

enum { ROWS_MAX = 256, DEFAULT = 32, CHOSEN = 64, EVERY = 10 };

static struct job_row rows[ROWS_MAX];
static struct fly_job_hardware machine = {.highest_limit_w = 200};
static struct job_history history;

static void begin(void)
{
    history = (struct job_history){
        .definition = {.default_batch_size = DEFAULT, .target = FLY_TARGET_AT_LEAST, .max_epochs = 50},
        .machines = &machine,
        .machine_count = 1,
        .rows = rows};
}

/* One more trial, of the last recurrence or a new one. */
static struct job_row *add(bool again, enum reason reason, uint32_t batch_size, enum trial_outcome outcome,
                           double energy_j)
{
    struct job_row *row = &rows[history.count];
    uint64_t last = history.count > 0 ? rows[history.count - 1].trial.recurrence : 0;
    uint64_t next = history.count > 0 ? last + 1 : 0;

    assert_true(history.count < ROWS_MAX);
    *row = (struct job_row){.trial.trial = ++history.count,
                            .trial.recurrence = again ? last : next,
                            .reason = reason,
                            .trial.batch_size = batch_size,
                            .trial.limit_w = 200,
                            .outcome = outcome,
                            .trial.epochs = 40,
                            .trial.metric = 0.9,
                            .trial.energy_j = energy_j,
                            .trial.time_s = energy_j / 100.0,
                            .trial.cost_j = energy_j};
    return row;
}

static struct job_savings savings(void)
{
    struct job_savings found;

    assert_int_equal(job_savings_of(&history, 0, &found, NULL), 0);
    return found;
}

/* Chosen runs, with a control in each tenth; of the chosen, each so many fails. */
static void run(int count, double chosen_j, int fails_each)
{
    int chosen = 0;

    for (int i = 0; i < count; i++) {
        size_t at = history.count;

        if (at % EVERY == 0)
            add(false, REASON_CONTROL, DEFAULT, TRIAL_REACHED, 1000 + (double)(at / EVERY % 3));
        else if (fails_each > 0 && ++chosen % fails_each == 0)
            add(false, REASON_SAMPLED, CHOSEN, TRIAL_NOT_REACHED, 1.3 * chosen_j);
        else
            add(false, REASON_SAMPLED, CHOSEN, TRIAL_REACHED, chosen_j + (double)(at % 5));
    }
}

/* A fifth less for each run, and more for each model. */
static void test_failures_count(void **state)
{
    struct job_savings found;

    (void)state;
    begin();
    run(120, 800, 4);
    found = savings();
    assert_true(found.known);
    assert_int_equal(found.tuned.runs, 108);
    assert_int_equal(found.tuned.failed, 27);
    check_close(found.tuned.model_energy_j, (81 * 802.0 + 27 * 1040) / 81, 2e-3);
    check_close(found.energy.value, 1.0 - found.tuned.model_energy_j / 1001.0, 0.05);
    assert_true(found.energy.value < 0.0 && found.energy.high > -0.1 && found.energy.low < -0.2);
    assert_false(found.balance.paid_off);
    assert_true(found.balance.ahead_j < 0.0);
    assert_int_equal(found.failed, 27);
    assert_int_equal(found.failure_count, SAVING_FAILURES_MAX);
    for (size_t i = 0; i < found.failure_count; i++) {
        const struct saving_failure *failure = &found.failures[i];

        assert_int_equal(rows[failure->recurrence].outcome, TRIAL_NOT_REACHED);
        assert_int_equal(failure->trial, failure->recurrence + 1);
        assert_true(i == 0 || failure->recurrence > found.failures[i - 1].recurrence);
    }
    check_close((double)found.failures[SAVING_FAILURES_MAX - 1].recurrence, 119, 1e-9);
}

/* What the default's own failures took is the default's; what was tried after them is a run of its own. */
static void test_failed_controls(void **state)
{
    struct job_savings found;

    (void)state;
    begin();
    run(100, 800, 0);
    add(false, REASON_CONTROL, DEFAULT, TRIAL_NOT_REACHED, 3000);
    add(true, REASON_SAMPLED, CHOSEN, TRIAL_REACHED, 802);
    found = savings();
    assert_int_equal(found.baseline.runs, 11);
    assert_int_equal(found.baseline.failed, 1);
    check_close(found.baseline.model_energy_j, 1301, 2e-3);
    assert_int_equal(found.tuned.runs, 91);
    check_close(found.tuned.model_energy_j, 802, 2e-3);
    assert_int_equal(found.failure_count, 1);
    assert_true(found.failures[0].of_baseline);
    assert_int_equal(found.failures[0].recurrence, 100);
}

/* A default that the policy ran and stopped, or would have, tells nothing of what the default takes. */
static void test_stopped_defaults(void **state)
{
    struct job_savings before, found;

    (void)state;
    begin();
    run(100, 800, 0);
    before = savings();
    for (int i = 0; i < 3; i++) {
        add(false, REASON_SAMPLED, DEFAULT, TRIAL_STOPPED, 300);
        add(true, REASON_LAST_TRY, DEFAULT, TRIAL_REACHED, 1000);
        add(false, REASON_EXPLORE, DEFAULT, TRIAL_REACHED, 700);
    }
    found = savings();
    assert_int_equal(found.baseline.runs, before.baseline.runs);
    check_double(found.baseline.model_energy_j, before.baseline.model_energy_j);
    assert_int_equal(found.tuned.runs, before.tuned.runs + 3);
    assert_int_equal(found.searching, before.searching + 3);
}

/* Some energy that is not known leaves a recurrence out, by name. */
static void test_unknown_energies(void **state)
{
    struct job_savings found;

    (void)state;
    begin();
    run(100, 800, 0);
    add(false, REASON_SAMPLED, CHOSEN, TRIAL_CRASHED, NAN);
    add(false, REASON_SAMPLED, CHOSEN, TRIAL_CRASHED, 0.0)->trial.time_s = 0.0;
    add(false, REASON_SAMPLED, CHOSEN, TRIAL_REACHED, 800)->trial.cost_j = NAN;
    found = savings();
    assert_true(found.known);
    assert_int_equal(found.unknown, 2);
    assert_int_equal(found.failed, 2);
    assert_int_equal(found.tuned.runs, 91);
}

/* Nothing pays off that of late takes more than the default would, whatever was gained before. */
static void test_balance(void **state)
{
    static const struct {
        double first_j, later_j;
        bool paid_off, ahead, recent_ahead;
    } cases[] = {
        {600, 600, true, true, true},
        {300, 1100, false, true, false},
        {1100, 1200, false, false, false},
        {1900, 400, false, false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job_savings found;

        begin();
        run(90, cases[i].first_j, 0);
        run(30, cases[i].later_j, 0);
        found = savings();
        assert_true(found.known);
        assert_int_equal(found.balance.recent, SAVING_RECENT);
        assert_int_equal(found.balance.paid_off, cases[i].paid_off);
        assert_int_equal(found.balance.ahead_j > 0.0, cases[i].ahead);
        assert_int_equal(found.balance.recent_ahead_j > 0.0, cases[i].recent_ahead);
    }
    begin();
    add(false, REASON_EXPLORE, CHOSEN, TRIAL_REACHED, 1500);
    run(119, 800, 0);
    assert_int_equal(savings().balance.paid_off_at, 3);
}

/* A recurrence is held against the default's runs around it, not against those of another year. */
static void test_balance_of_a_drift(void **state)
{
    struct job_savings found;

    (void)state;
    begin();
    for (int i = 0; i < 120; i++) {
        bool control = i % EVERY == 0;
        double level_j = 1000 + 20.0 * i;

        add(false, control ? REASON_CONTROL : REASON_SAMPLED, control ? DEFAULT : CHOSEN, TRIAL_REACHED,
            control ? level_j : 0.8 * level_j);
    }
    found = savings();
    check_close(found.energy.value, 0.2, 0.03);
    /* The first ones' default, of 1000 J, would have the newest behind, and the mean of all nearly so. */
    assert_true(found.balance.paid_off);
    assert_true(found.balance.recent_ahead_j > 20 * 300.0 && found.balance.recent_ahead_j < 20 * 660.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures_count),   cmocka_unit_test(test_failed_controls),
        cmocka_unit_test(test_stopped_defaults), cmocka_unit_test(test_unknown_energies),
        cmocka_unit_test(test_balance),          cmocka_unit_test(test_balance_of_a_drift),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
