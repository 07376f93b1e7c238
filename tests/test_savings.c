/* SPDX-License-Identifier: Apache-2.0 */
/* How often the interval of a saving covers the truth, on made-up jobs whose truth is known. */
#include "test.h"

#include "base/student.h"
#include "job/savings.h"

enum { REPETITIONS = 2000, RECURRENCES_MAX = 400 };

/* One made-up job. */
struct made_up {
    const char *name;
    size_t recurrences;
    size_t control_every; /* 0: the first `controls` recurrences, and no more */
    size_t controls;
    size_t searching; /* recurrences that search, at the start */
    double saving;
    double noise; /* standard deviation of the logarithm */
    double trend; /* of the logarithm, from the first recurrence to the last */
    double swing; /* amplitude of a sine, in the logarithm; it swings three times */
    bool interleaved;
};

static const struct made_up rows[] = {
    {"apart", 40, 0, 6, 8, 0.2, 0.1, 0, 0, false},
    {"apart, few", 12, 0, 3, 2, 0.2, 0.05, 0, 0, false},
    {"controls", 60, 6, 0, 8, 0.2, 0.1, 0, 0, true},
    {"controls, noisy", 200, 10, 0, 20, 0.15, 0.3, 0, 0, true},
    {"controls, rising", 120, 8, 0, 10, 0.2, 0.1, 0.5, 0, true},
    {"controls, falling", 120, 8, 0, 10, 0.2, 0.1, -0.7, 0, true},
    {"controls, swinging", 240, 6, 0, 10, 0.2, 0.1, 0, 0.15, true},
    {"nothing to save", 60, 6, 0, 8, 0.0, 0.1, 0, 0, true},
    {"nothing to save, apart", 40, 0, 5, 8, 0.0, 0.1, 0, 0, false},
    {"nothing to save, rising", 120, 8, 0, 10, 0.0, 0.1, 0.5, 0, true},
    {"worse than before", 60, 6, 0, 8, -0.1, 0.1, 0, 0, true},
};

static double normal(uint64_t *random)
{
    double u = 1.0 - test_uniform(random), v = test_uniform(random);

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

static size_t make(const struct made_up *job, uint64_t *random, struct saving_sample *samples)
{
    for (size_t i = 0; i < job->recurrences; i++) {
        double at = (double)i / (double)job->recurrences;
        bool control = job->control_every > 0 ? i % job->control_every == 0 : i < job->controls;
        double level = log(1e6) + job->trend * at + job->swing * sin(at * 18.84955592153876);

        samples[i].kind = control ? SAVING_BASELINE : i < job->searching ? SAVING_SEARCHING : SAVING_TUNED;
        if (samples[i].kind == SAVING_TUNED)
            level += log(1.0 - job->saving);
        if (samples[i].kind == SAVING_SEARCHING)
            level += 0.5;
        samples[i].amount = exp(level + job->noise * normal(random));
    }
    return job->recurrences;
}

static void test_coverage(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        uint64_t random = row + 1;
        size_t covered = 0, claimed = 0;

        for (int i = 0; i < REPETITIONS; i++) {
            struct saving_sample samples[RECURRENCES_MAX];
            size_t count = make(&rows[row], &random, samples);
            bool interleaved;
            struct saving saving = saving_estimate(samples, count, &interleaved);

            assert_int_equal(interleaved, rows[row].interleaved);
            assert_true(saving.low <= saving.saving && saving.saving <= saving.high);
            covered += saving.low <= rows[row].saving && rows[row].saving <= saving.high;
            claimed += saving.low > 0.0;
        }
        print_message("# %-26s covers %.1f %%, claims %.1f %%\n", rows[row].name,
                      100.0 * (double)covered / REPETITIONS, 100.0 * (double)claimed / REPETITIONS);
        assert_true(covered >= 0.93 * REPETITIONS && covered <= 0.97 * REPETITIONS);
        if (rows[row].saving <= 0.0)
            assert_true(claimed <= 0.05 * REPETITIONS);
    }
}

enum { CHANGED_RUNS = 120, CHANGED_AT = 60, CHANGED_CONTROL = 8 };

/* A job that was set to something else half way: its rows, with the saving of before and after. */
static void make_rows(struct job_row made[CHANGED_RUNS], uint64_t *random, double before, double after)
{
    for (size_t i = 0; i < CHANGED_RUNS; i++) {
        bool control = i % CHANGED_CONTROL == 0;
        double saving = i < CHANGED_AT ? before : after;
        double level = log(1e6) + 0.3 * (double)i / CHANGED_RUNS + (control ? 0.0 : log(1.0 - saving));

        made[i] = (struct job_row){.trial = i + 1,
                                   .recurrence = i,
                                   .outcome = TRIAL_REACHED,
                                   .batch_size = control ? 32 : 64,
                                   .limit_w = 200,
                                   .energy_j = exp(level + 0.1 * normal(random)),
                                   .time_s = 100,
                                   .cost_j = 1000};
    }
}

/* The interval is that of what is wanted now, and covers it as often. */
static void test_coverage_after_a_change(void **state)
{
    static struct job_row made[CHANGED_RUNS];
    struct job_machine machine = {.highest_limit_w = 200};
    struct job_history history = {.definition = {.default_batch_size = 32},
                                  .machines = &machine,
                                  .machine_count = 1,
                                  .rows = made,
                                  .count = CHANGED_RUNS,
                                  .wanted_us = 1,
                                  .wanted_from = CHANGED_AT + 1};
    size_t covered = 0, claimed = 0;
    uint64_t random = 7;

    (void)state;
    for (int i = 0; i < REPETITIONS; i++) {
        struct job_savings savings;

        make_rows(made, &random, 0.3, 0.0);
        assert_int_equal(job_savings_of(&history, 0, &savings, NULL), 0);
        assert_true(savings.known && savings.interleaved);
        assert_int_equal(savings.outdated, CHANGED_AT - CHANGED_AT / CHANGED_CONTROL - 1);
        covered += savings.energy.low <= 0.0 && savings.energy.high >= 0.0;
        claimed += savings.energy.low > 0.0;
    }
    print_message("# %-26s covers %.1f %%, claims %.1f %%\n", "changed half way",
                  100.0 * (double)covered / REPETITIONS, 100.0 * (double)claimed / REPETITIONS);
    assert_true(covered >= 0.93 * REPETITIONS && covered <= 0.97 * REPETITIONS);
    assert_true(claimed <= 0.05 * REPETITIONS);
}

/* Below three of either nothing is known, and nothing is zero. */
static void test_too_few(void **state)
{
    static const struct {
        const char *kinds;
        bool known;
    } cases[] = {{"", false},      {"BBB", false},   {"TTTT", false},  {"BBTTTT", false},
                 {"BBBTT", false}, {"BBBTTT", true}, {"BTBTBT", true}, {"BSSTBTBT", true}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct saving_sample samples[16];
        size_t count = strlen(cases[i].kinds);
        struct saving saving;

        for (size_t k = 0; k < count; k++) {
            char kind = cases[i].kinds[k];

            samples[k] = (struct saving_sample){kind == 'B'   ? SAVING_BASELINE
                                                : kind == 'S' ? SAVING_SEARCHING
                                                              : SAVING_TUNED,
                                                kind == 'B'   ? 100.0
                                                : kind == 'S' ? 500.0
                                                              : 80.0};
        }
        saving = saving_estimate(samples, count, NULL);
        assert_int_equal(!isnan(saving.saving), cases[i].known);
        if (cases[i].known) {
            check_close(saving.saving, 0.2, 1e-12);
            check_close(saving.low, 0.2, 1e-12);
        }
    }
}

/* A saving has no unit: other joules give the same. */
static void test_scale(void **state)
{
    struct saving_sample samples[RECURRENCES_MAX], scaled[RECURRENCES_MAX];
    uint64_t random = 99;
    size_t count = make(&rows[2], &random, samples);
    struct saving a, b;

    (void)state;
    for (size_t i = 0; i < count; i++)
        scaled[i] = (struct saving_sample){samples[i].kind, samples[i].amount / 3.6e6};
    a = saving_estimate(samples, count, NULL);
    b = saving_estimate(scaled, count, NULL);
    check_close(b.saving, a.saving, 1e-9);
    check_close(b.low, a.low, 1e-9);
    check_close(b.high, a.high, 1e-9);
}

/* R: qt(0.975, degrees). */
static void test_student(void **state)
{
    static const struct {
        double degrees, quantile, relative;
    } table[] = {{1, 12.706205, 1e-6}, {5, 2.570582, 1e-6},  {5.5, 2.50283, 2e-3},
                 {20, 2.085963, 1e-6}, {30, 2.042272, 1e-5}, {1000, 1.962339, 1e-5}};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        check_close(student_975(table[i].degrees), table[i].quantile, table[i].relative);
    for (double degrees = 1.0; degrees < 60.0; degrees += 0.25)
        assert_true(student_975(degrees + 0.25) < student_975(degrees));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coverage), cmocka_unit_test(test_coverage_after_a_change),
        cmocka_unit_test(test_too_few),  cmocka_unit_test(test_scale),
        cmocka_unit_test(test_student),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
