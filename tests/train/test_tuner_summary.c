/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence that a person gets to read of a tuner: it says what the points say. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};

static const char *summary(const struct fly_tuner *tuner)
{
    static char text[FLY_TUNER_SUMMARY_MAX];

    assert_int_equal(fly_tuner_summary(tuner, text, sizeof text), 0);
    return text;
}

/* The number behind the first of these words. */
static double number_after(const char *text, const char *words)
{
    const char *found = strstr(text, words);

    if (found == NULL)
        fail_msg("'%s' is not in: %s", words, text);
    return found != NULL ? strtod(found + strlen(words), NULL) : NAN;
}

static void start(struct tuner_profile *profile, struct tuner_bench *bench)
{
    tuner_profile_made(profile, 1);
    tuner_bench_start(bench, profile, "exact");
}

/* How much less energy a step takes at one limit than at the highest, in percent. */
static double saved_percent(const struct tuner_profile *profile, double limit_w)
{
    struct fly_power_point at = tuner_profile_truth(profile, tuner_profile_find(profile, limit_w));
    struct fly_power_point highest = tuner_profile_truth(profile, 0);

    return 100.0 * (1.0 - at.power_w * at.time_s / (highest.power_w * highest.time_s));
}

static void test_chosen(void **state)
{
    const struct fly_objective bounded = {FLY_OBJECTIVE_ENERGY, 0.0, 1.05};
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_tuner_report report;
    double percent, half;

    (void)state;
    start(&profile, &bench);
    options = tuner_bench_options(&bench, bounded);
    tuner = tuner_bench_tuner(&bench, &options);
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    check_double(number_after(summary(tuner), ""), report.limit_w);
    percent = number_after(summary(tuner), " W chosen: steps take ");
    half = number_after(summary(tuner), " % \xc2\xb1 ");
    check_contains(summary(tuner), " less energy and ");
    if (fabs(percent - saved_percent(&profile, report.limit_w)) > half + 0.5)
        fail_msg("%s; in truth %g %%", summary(tuner), saved_percent(&profile, report.limit_w));
    check_contains(summary(tuner), " more time than at 300 W (bound 5 %)");
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

static void test_kept(void **state)
{
    const struct fly_objective time = {FLY_OBJECTIVE_TIME, 0.0, INFINITY};
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    (void)state;
    start(&profile, &bench);
    options = tuner_bench_options(&bench, time);
    tuner = tuner_bench_tuner(&bench, &options);
    (void)tuner_bench_settle(&bench, tuner, 0);
    check_contains(summary(tuner), "300 W kept: ");
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* A training that is over too early, at every moment of the search. */
static void test_searching(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    bool looks = false;

    (void)state;
    start(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    for (int i = 0; i < 10000 && fly_tuner_state(tuner) == FLY_TUNER_SEARCHING; i++) {
        const char *text = summary(tuner);

        check_contains(text, "nothing saved yet: ");
        looks |= strstr(text, " cheaper; some ") != NULL && strstr(text, " more steps would tell") != NULL;
        tuner_bench_step(&bench, tuner);
    }
    assert_true(looks);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

static void test_stopped(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    char little[24];

    (void)state;
    start(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    bench.sets_until_failing = 0;
    for (int i = 0; i < 200; i++)
        tuner_bench_step(&bench, tuner);
    assert_int_equal(fly_tuner_state(tuner), FLY_TUNER_STOPPED);
    check_contains(summary(tuner), "nothing saved: the limit of ");
    assert_int_equal(fly_tuner_summary(tuner, little, sizeof little), 0);
    assert_string_equal(little, "nothing saved: the ...");
    assert_int_equal(fly_tuner_summary(tuner, little, 0), FLY_EUSAGE);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* Texts that do not fit end at a word. */
static void test_fit(void **state)
{
    static const struct {
        const char *text, *fits;
    } rows[] = {{"whole", "whole"},
                {"just nineteen bytes", "just nineteen bytes"},
                {"twenty and some bytes", "twenty and some ..."},
                {"onewordofmanymoreletters", " ..."}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[20];

        words_fit(text, sizeof text, snprintf(text, sizeof text, "%s", rows[i].text));
        assert_string_equal(text, rows[i].fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chosen), cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_searching), cmocka_unit_test(test_stopped),
                                       cmocka_unit_test(test_fit)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
