/* SPDX-License-Identifier: Apache-2.0 */
/* What a step takes in time and energy, when the training does other things in between. */
#include "test.h"

#include <math.h>

#include "train/tuner/step_record.h"

static const double step_w = 250.0, pause_w = 60.0, edge_j = 2.0;

/* A training: how long its steps take, and what comes in between. */
struct training {
    const char *name;
    double step_s;
    double (*factor)(uint64_t *random, unsigned step); /* of a step's time; 1 on average over many */
    unsigned pause_every;                              /* steps; 0: none */
    double pause_s;
};

static double no_scatter(uint64_t *random, unsigned step)
{
    (void)random;
    (void)step;
    return 1.0;
}

static double noise(uint64_t *random, unsigned step)
{
    (void)step;
    return 0.9 + 0.2 * test_uniform(random);
}

/* Half of the steps take three times as long as the others. */
static double bimodal(uint64_t *random, unsigned step)
{
    (void)step;
    return test_uniform(random) < 0.5 ? 0.5 : 1.5;
}

/* Of eight steps one makes the update, and takes six times as long. */
static double accumulating(uint64_t *random, unsigned step)
{
    (void)random;
    return (step % 8 == 7 ? 6.0 : 1.0) * 8.0 / 13.0;
}

/* Log-normal: a few sequences are long. */
static double lognormal(uint64_t *random, unsigned step)
{
    double sum = -6.0;

    (void)step;
    for (int i = 0; i < 12; i++)
        sum += test_uniform(random);
    return exp(0.5 * sum - 0.125);
}

/* Sequences in blocks of like length. */
static double blocks(uint64_t *random, unsigned step)
{
    static double length;

    if (step % 25 == 0)
        length = 0.5 + test_uniform(random);
    return length;
}

/* Runs so many steps, and stores what the window holds. */
static struct step_estimate run(struct step_record *record, const struct training *training, unsigned steps,
                                uint64_t *random, struct step_stretch *out_whole)
{
    struct step_stretch whole = {.half_j = edge_j};

    step_record_begin(record);
    for (unsigned i = 0; i < steps; i++) {
        double step_s = training->step_s * training->factor(random, i);
        bool pauses = training->pause_every > 0 && i % training->pause_every == training->pause_every / 2;

        whole.energy_j += step_s * step_w + (pauses ? training->pause_s * pause_w : 0.0);
        whole.time_s += step_s + (pauses ? training->pause_s : 0.0);
        step_record_add(record, step_s + (pauses ? training->pause_s : 0.0));
        if (step_record_wants_mark(record))
            step_record_mark(record, &whole);
    }
    *out_whole = whole;
    return step_record_estimate(record, &whole);
}

/* Pauses of every kind are left out, with their energy, and the steps that vary are not. */
static void test_finds_the_step(void **state)
{
    static const struct {
        struct training training;
        unsigned steps, pauses;
        double within; /* of the true step time and energy */
    } rows[] = {
        {{"steady", 0.02, no_scatter, 0, 0.0}, 100, 0, 1e-6},
        {{"a stall in 50 steps", 0.02, noise, 50, 0.2}, 500, 10, 0.02},
        {{"short stalls", 0.1, noise, 50, 0.6}, 100, 2, 0.02},
        {{"an evaluation in 200 steps", 0.02, noise, 200, 3.0}, 600, 3, 0.02},
        {{"an evaluation in a short window", 0.05, noise, 40, 3.0}, 40, 1, 0.04},
        {{"two lengths", 0.02, bimodal, 0, 0.0}, 4000, 0, 0.04},
        {{"updates in between", 0.02, accumulating, 0, 0.0}, 80, 0, 1e-6},
        {{"a stall in 12 steps", 0.02, noise, 12, 0.2}, 600, 50, 0.02},
        {{"pauses in one step of five are usual", 0.02, no_scatter, 5, 0.2}, 100, 0, 10.0},
        {{"too few steps to tell", 0.02, no_scatter, 7, 3.0}, 7, 0, 100.0},
        {{"more steps than places", 0.001, noise, 1000, 0.5}, 20000, 20, 0.02},
    };
    static struct step_record record;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct training *training = &rows[i].training;
        uint64_t random = 7;
        struct step_stretch whole;
        struct step_estimate estimate = run(&record, training, rows[i].steps, &random, &whole);
        double truth_s = training->step_s * rows[i].steps, truth_j = truth_s * step_w;

        if (estimate.pauses != rows[i].pauses || fabs(estimate.time_s / truth_s - 1.0) > rows[i].within ||
            fabs(estimate.energy_j - truth_j) > estimate.half_j + rows[i].within * truth_j)
            fail_msg("%s: %u pauses, %g s and %g +- %g J; expected %u, %g s and %g J", training->name,
                     (unsigned)estimate.pauses, estimate.time_s, estimate.energy_j, estimate.half_j,
                     rows[i].pauses, truth_s, truth_j);
        if (estimate.half_j < edge_j || estimate.half_j > 0.05 * truth_j + 2.0 * edge_j)
            fail_msg("%s: %g +- %g J", training->name, estimate.energy_j, estimate.half_j);
        if (rows[i].pauses == 0)
            check_double(estimate.energy_j, whole.energy_j);
    }
}

/* In how many of `tries` windows the true mean lies within two standard errors. */
static unsigned covered(const struct training *training, unsigned steps, unsigned tries)
{
    static struct step_record record;
    unsigned held = 0;

    for (uint64_t seed = 1; seed <= tries; seed++) {
        uint64_t random = seed * 7919;
        struct step_stretch whole;
        struct step_estimate estimate = run(&record, training, steps, &random, &whole);

        held += fabs(estimate.time_s / steps - training->step_s) <=
                2.0 * estimate.spread_s / sqrt(estimate.steps);
    }
    print_message("# %s, %u steps: %u of %u\n", training->name, steps, held, tries);
    return held;
}

static void test_error_is_honest(void **state)
{
    static const struct training rows[] = {
        {"noise", 0.02, noise, 0, 0.0},
        {"noise and stalls", 0.02, noise, 50, 0.3},
        {"two lengths", 0.02, bimodal, 0, 0.0},
        {"blocks of like length", 0.02, blocks, 0, 0.0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_true(covered(&rows[i], 500, 400) >= 360);
    assert_true(covered(&rows[0], 40, 400) >= 360);
    assert_true(covered(&rows[2], 40, 400) >= 360);
}

/*
 * Heavy tails: what is beyond five medians is left out under every limit alike, so that the ratio of two
 * limits stays true.
 */
static void test_heavy_tails_compare(void **state)
{
    enum { TRIES = 400, STEPS = 300 };
    static const struct training fast = {"fast", 0.02, lognormal, 0, 0.0},
                                 slow = {"slow", 0.022, lognormal, 0, 0.0};
    static struct step_record record;
    double sum = 0.0;
    unsigned held = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= TRIES; seed++) {
        uint64_t random = seed * 104729;
        struct step_stretch whole;
        struct step_estimate one = run(&record, &fast, STEPS, &random, &whole);
        struct step_estimate other = run(&record, &slow, STEPS, &random, &whole);
        double error = hypot(one.spread_s / one.mean_s / sqrt(one.steps),
                             other.spread_s / other.mean_s / sqrt(other.steps));
        double ratio = other.time_s / one.time_s;

        sum += ratio / TRIES;
        held += fabs(ratio / 1.1 - 1.0) <= 2.0 * error;
    }
    print_message("# the ratio is held in %u of %d, and %.4f on average\n", held, TRIES, sum);
    assert_true(fabs(sum - 1.1) < 0.01);
    assert_true(held >= 360);
}

/* A step time that drifts by a fifth within the window is less certain than its spread alone says. */
static void test_drift_widens(void **state)
{
    static struct step_record record;
    struct step_stretch whole = {0};
    struct step_estimate estimate;
    double plain;

    (void)state;
    step_record_begin(&record);
    for (int i = 0; i < 400; i++) {
        double step_s = 0.02 * (1.0 + 0.2 * i / 400.0);

        whole.time_s += step_s;
        step_record_add(&record, step_s);
    }
    estimate = step_record_estimate(&record, &whole);
    plain = 0.02 * 0.2 / sqrt(12.0);
    assert_true(estimate.spread_s > 3.0 * plain);
    assert_int_equal(estimate.pauses, 0);
}

/* One step in twenty is late: the machine is busy. */
static double late(uint64_t *random, unsigned step)
{
    return test_uniform(random) < 0.05 ? 4.0 : noise(random, step);
}

/* Steps that vary in length scatter; those of which a few are late do not, though their spread is as large.
 */
static void test_scatter(void **state)
{
    static const struct {
        struct training training;
        double least, most;
    } cases[] = {{{"noise", 0.02, noise, 0, 0.0}, 0.04, 0.08},
                 {{"late", 0.02, late, 0, 0.0}, 0.04, 0.1},
                 {{"bimodal", 0.02, bimodal, 0, 0.0}, 0.2, 2.0},
                 {{"lognormal", 0.02, lognormal, 0, 0.0}, 0.3, 0.7},
                 {{"accumulating", 0.02, accumulating, 0, 0.0}, 0.2, 5.0}};
    static const unsigned steps[] = {120, 3000};
    static struct step_record record;
    uint64_t random = 5;

    (void)state;
    for (size_t i = 0; i < COUNT(cases) * COUNT(steps); i++) {
        size_t at = i / COUNT(steps);
        struct step_stretch whole;
        struct step_estimate estimate =
            run(&record, &cases[at].training, steps[i % COUNT(steps)], &random, &whole);

        if (i % COUNT(steps) == 0 &&
            !(estimate.scatter >= cases[at].least && estimate.scatter <= cases[at].most))
            fail_msg("%s: scatter %g", cases[at].training.name, estimate.scatter);
        if (cases[at].training.factor == late)
            assert_true(estimate.spread_s > 0.4 * estimate.mean_s);
    }
    step_record_begin(&record);
    for (int i = 0; i < 7; i++)
        step_record_add(&record, 0.01 * i);
    check_double(step_record_estimate(&record, &(struct step_stretch){.time_s = 0.21}).scatter, 0.0);
}

/* Steps that are reported late, several at a time, are no pauses. */
static void test_late_reports(void **state)
{
    static struct step_record record;
    struct step_stretch whole = {.energy_j = NAN};
    struct step_estimate estimate;

    (void)state;
    step_record_begin(&record);
    for (int i = 0; i < 200; i++) {
        double step_s = i % 50 < 10 ? (i % 50 == 0 ? 0.1 : 0.0) : 0.01;

        whole.time_s += step_s;
        step_record_add(&record, step_s);
    }
    estimate = step_record_estimate(&record, &whole);
    assert_int_equal(estimate.pauses, 0);
    assert_true(fabs(estimate.time_s - 2.0) < 1e-6);
    assert_true(isnan(estimate.energy_j));
}

/* Where stalls are so frequent that no stretch is without one, the interval holds both bounds. */
static void test_no_clean_stretch(void **state)
{
    static const struct training training = {"dense", 0.002, no_scatter, 20, 0.04};
    static struct step_record record;
    uint64_t random = 1;
    struct step_stretch whole;
    struct step_estimate estimate = run(&record, &training, 1000, &random, &whole);

    (void)state;
    assert_int_equal(estimate.pauses, 50);
    assert_true(fabs(estimate.time_s - 2.0) < 1e-6);
    assert_true(fabs(estimate.energy_j - 2.0 * step_w) <= estimate.half_j);
    assert_true(estimate.half_j > 0.1 * estimate.energy_j);
}

/* An unknown energy stays unknown, and a record without a step estimates nothing. */
static void test_unknown(void **state)
{
    static const struct training training = {"stalls", 0.02, no_scatter, 50, 0.3};
    static struct step_record record;
    const struct step_stretch nothing = {.energy_j = NAN};
    uint64_t random = 1;
    struct step_stretch whole;
    struct step_estimate estimate;

    (void)state;
    (void)run(&record, &training, 100, &random, &whole);
    whole.energy_j = NAN;
    estimate = step_record_estimate(&record, &whole);
    assert_true(isnan(estimate.energy_j) && isnan(estimate.pause_j));
    assert_int_equal(estimate.pauses, 2);
    step_record_begin(&record);
    estimate = step_record_estimate(&record, &nothing);
    assert_true(isnan(estimate.energy_j));
    check_double(estimate.time_s, 0.0);
    check_double(estimate.steps, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_step),
        cmocka_unit_test(test_error_is_honest),
        cmocka_unit_test(test_heavy_tails_compare),
        cmocka_unit_test(test_drift_widens),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_late_reports),
        cmocka_unit_test(test_no_clean_stretch),
        cmocka_unit_test(test_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
