/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the interval of a saving covers the truth, on made-up jobs whose truth is known; among
 * them those of the recorded traces (Zeus, NSDI '23; Apache-2.0), whose runs take few different
 * numbers of epochs. FLYBALL_TEST_SAVINGS has the number of repetitions of each.
 */
#include "test.h"

#include <stdlib.h>

#include "base/math/student.h"
#include "job/past/savings.h"

enum { REPETITIONS = 400, RUNS_MAX = 400 };

/* What a run takes, with mean 1, or in epochs. */
enum law_shape {
    NORMAL, /* in the logarithm, of deviation `a` */
    PARETO, /* of exponent `a`: the smaller, the heavier its tail */
    SPIKE,  /* one in `1 / a` takes `b` times as much */
    EPOCHS, /* one of a few whole numbers, 0 for a run that failed at `a` */
};

struct law {
    enum law_shape shape;
    double a, b;
    double fails; /* share of the runs, at 1.3 times the mean */
    double epoch; /* of EPOCHS it is 1 */
    double epochs[11];
    size_t count;
};

/* One made-up job. Controls: each so many recurrences, in the first `control_until` (0: in all). */
struct made_up {
    const char *name;
    size_t recurrences, control_every, control_until, searching;
    struct law baseline, tuned;
    double saving;
    double trend; /* of the logarithm, from the first recurrence to the last */
    double swing; /* amplitude of a sine, in the logarithm; it swings three times */
    enum saving_doubt doubt;
    double least; /* share that has to be covered; 0: 0.945 */
    double
        wander; /* by how much the level walks at random from each recurrence to the next, in the logarithm */
};

#define LOG_NORMAL(deviation)             \
    {                                     \
        .shape = NORMAL, .a = (deviation) \
    }
#define FAILING(deviation, share)                                          \
    {                                                                      \
        .shape = NORMAL, .a = (deviation), .fails = (share), .epoch = 0.02 \
    }
#define LATTICE(most, number, ...)                                               \
    {                                                                            \
        .shape = EPOCHS, .a = (most), .epochs = {__VA_ARGS__}, .count = (number) \
    }
#define CIFAR LATTICE(100, 10, 74, 71, 80, 71, 70, 80, 77, 97, 77, 90)
#define SQUAD LATTICE(6, 10, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4)
#define LIBRISPEECH LATTICE(16, 5, 10, 9, 9, 10, 10)
#define MOVIELENS LATTICE(100, 5, 4, 4, 6, 4, 4)

static const struct made_up rows[] = {
    {"even", 60, 6, 0, 8, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0, 0, 0, 0, 0},
    {"even, few", 30, 5, 0, 4, LOG_NORMAL(0.05), LOG_NORMAL(0.05), 0.2, 0, 0, 0, 0, 0},
    {"noisy", 200, 10, 0, 20, LOG_NORMAL(0.3), LOG_NORMAL(0.3), 0.15, 0, 0, 0, 0, 0},
    {"rising", 120, 8, 0, 10, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0.5, 0, 0, 0, 0},
    {"falling", 120, 8, 0, 10, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, -0.7, 0, 0, 0, 0},
    {"rising, quiet", 200, 10, 0, 10, LOG_NORMAL(0.02), LOG_NORMAL(0.02), 0.2, 0.5, 0, 0, 0, 0},
    {"swinging", 240, 6, 0, 10, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0, 0.15, 0, 0, 0},
    {"nothing to save", 60, 6, 0, 8, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0, 0, 0, 0, 0, 0},
    {"nothing to save, rising", 120, 8, 0, 10, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0, 0.5, 0, 0, 0, 0},
    {"worse than before", 60, 6, 0, 8, LOG_NORMAL(0.1), LOG_NORMAL(0.1), -0.1, 0, 0, 0, 0, 0},
    {"default noisier", 60, 10, 0, 5, LOG_NORMAL(0.3), LOG_NORMAL(0.02), 0.2, 0, 0, 0, 0, 0},
    {"tuned noisier", 60, 10, 0, 5, LOG_NORMAL(0.02), LOG_NORMAL(0.3), 0.2, 0, 0, 0, 0, 0},
    {"long tails", 60, 10, 0, 5, LOG_NORMAL(0.5), LOG_NORMAL(0.5), 0.2, 0, 0, 0, 0, 0},
    {"longer tails", 300, 10, 0, 5, LOG_NORMAL(1), LOG_NORMAL(1), 0.2, 0, 0, 0, 0, 0},
    {"no variance",
     100,
     10,
     0,
     5,
     {.shape = PARETO, .a = 1.5},
     {.shape = PARETO, .a = 1.5},
     0.2,
     0,
     0,
     0,
     0,
     0},
    {"hardly a variance",
     400,
     10,
     0,
     5,
     {.shape = PARETO, .a = 2.5},
     {.shape = PARETO, .a = 2.5},
     0.2,
     0,
     0,
     0,
     0,
     0},
    {"outliers",
     100,
     10,
     0,
     5,
     {.shape = SPIKE, .a = 0.05, .b = 3},
     {.shape = SPIKE, .a = 0.05, .b = 3},
     0.2,
     0,
     0,
     0,
     0,
     0},
    {"wandering", 100, 10, 0, 5, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0, 0, 0, 0, 0.05},
    {"wandering far", 200, 10, 0, 5, LOG_NORMAL(0.05), LOG_NORMAL(0.05), 0.2, 0, 0, 0, 0, 0.15},
    {"four controls", 40, 10, 0, 0, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0, 0, 0, 0, 0},
    {"four controls, rising", 40, 10, 0, 0, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0.5, 0, 0, 0, 0},
    {"four controls, long tails", 40, 10, 0, 0, LOG_NORMAL(0.5), LOG_NORMAL(0.5), 0.2, 0, 0, 0, 0, 0},
    {"four controls, cifar100", 40, 10, 0, 0, CIFAR, LATTICE(100, 5, 18, 22, 19, 19, 20), 0.2, 0, 0, 0, 0, 0},
    {"four controls, librispeech", 40, 10, 0, 0, LIBRISPEECH, LATTICE(16, 1, 7), 0.2, 0, 0, 0, 0, 0},
    {"four controls, movielens", 40, 10, 0, 0, MOVIELENS, LATTICE(100, 1, 4), 0.2, 0, 0, 0, 0, 0},
    {"four controls, tuned ones fail", 40, 10, 0, 0, FAILING(0.1, 0), FAILING(0.1, 0.26), 0.2, 0, 0, 0, 0, 0},
    {"cifar100", 60, 10, 0, 5, CIFAR, LATTICE(100, 5, 18, 22, 19, 19, 20), 0.2, 0, 0, 0, 0, 0},
    {"cifar100, some fail", 100, 10, 0, 5, CIFAR, LATTICE(600, 5, 566, 456, 498, 0, 421), 0.2, 0, 0, 0, 0, 0},
    {"imagenet", 60, 10, 0, 5, LATTICE(100, 5, 22, 20, 20, 21, 23), LATTICE(100, 5, 20, 22, 19, 22, 21), 0.2,
     0, 0, 0, 0, 0},
    {"squad", 60, 10, 0, 5, SQUAD, LATTICE(6, 10, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5), 0.2, 0, 0, 0, 0, 0},
    {"squad, long", 300, 10, 0, 5, SQUAD, LATTICE(6, 10, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5), 0.2, 0, 0, 0, 0, 0},
    {"librispeech, v100", 60, 10, 0, 5, LIBRISPEECH, LATTICE(16, 5, 7, 8, 8, 7, 7), 0.2, 0, 0, 0, 0, 0},
    {"librispeech, v100, rising", 100, 10, 0, 5, LIBRISPEECH, LATTICE(16, 5, 7, 8, 8, 7, 7), 0.2, 0.5, 0, 0,
     0, 0},
    {"librispeech, a40", 60, 10, 0, 5, LIBRISPEECH, LATTICE(16, 1, 7), 0.2, 0, 0, 0, 0, 0},
    {"librispeech, a40, long", 200, 10, 0, 5, LIBRISPEECH, LATTICE(16, 1, 7), 0.2, 0, 0, 0, 0, 0},
    {"movielens", 60, 10, 0, 5, MOVIELENS, LATTICE(100, 5, 4, 6, 4, 4, 4), 0.2, 0, 0, 0, 0, 0},
    {"movielens, long", 200, 10, 0, 5, MOVIELENS, LATTICE(100, 5, 4, 6, 4, 4, 4), 0.2, 0, 0, 0, 0, 0},
    {"movielens, batch 256", 100, 10, 0, 5, MOVIELENS, LATTICE(100, 1, 4), 0.2, 0, 0, 0, 0, 0},
    {"movielens, batch 32", 60, 10, 0, 5, MOVIELENS, LATTICE(100, 5, 0, 34, 0, 0, 0), 0.2, 0, 0, 0, 0, 0},
    {"sentiment140", 60, 10, 0, 5, LATTICE(10, 1, 3), LATTICE(10, 1, 3), 0.2, 0, 0, 0, 0, 0},
    {"tuned ones fail", 100, 10, 0, 5, LOG_NORMAL(0.1), FAILING(0.1, 0.26), 0.2, 0, 0, 0, 0, 0},
    {"tuned ones fail, long", 400, 10, 0, 5, LOG_NORMAL(0.1), FAILING(0.1, 0.26), 0.2, 0, 0, 0, 0, 0},
    {"half of the tuned ones fail", 60, 6, 0, 5, LOG_NORMAL(0.1), FAILING(0.1, 0.5), 0.2, 0, 0, 0, 0, 0},
    {"both fail", 100, 10, 0, 5, FAILING(0.1, 0.1), FAILING(0.1, 0.1), 0.2, 0, 0, 0, 0, 0},
    {"the default fails", 120, 5, 0, 5, FAILING(0.1, 0.2), FAILING(0.1, 0), 0.2, 0, 0, 0, 0, 0},
    {"the default fails, few", 60, 10, 0, 5, FAILING(0.1, 0.2), FAILING(0.1, 0), 0.2, 0, 0, 0, 0, 0},
    {"the default fails at times", 100, 10, 0, 5, FAILING(0.1, 0.1), FAILING(0.1, 0), 0.2, 0, 0, 0, 0, 0},
    {"both fail at times", 100, 10, 0, 5, FAILING(0.03, 0.05), FAILING(0.03, 0.05), 0.2, 0, 0, 0, 0, 0},
    {"default of long tails alone", 100, 10, 0, 5, LOG_NORMAL(1), LOG_NORMAL(0.1), 0.2, 0, 0, 0, 0, 0},
    /* Known to be beyond it: what tuned runs never did is not reckoned with. */
    {"tuned ones hardly fail", 100, 10, 0, 5, LOG_NORMAL(0.03), FAILING(0.03, 0.03), 0.2, 0, 0, 0, 0.9, 0},
    /* Refused. */
    {"controls at the start", 60, 1, 6, 8, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0.5, 0, SAVING_NOT_SPANNED,
     0, 0},
    {"controls in a third", 90, 5, 30, 8, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0.5, 0, SAVING_NOT_SPANNED,
     0, 0},
    {"three controls", 30, 10, 0, 4, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0, 0, SAVING_FEW_BASELINE, 0, 0},
    {"three tuned ones", 16, 2, 0, 10, LOG_NORMAL(0.1), LOG_NORMAL(0.1), 0.2, 0, 0, SAVING_FEW_TUNED, 0, 0},
    {"no model", 60, 10, 0, 5, LOG_NORMAL(0.1), FAILING(0.1, 1), 0.2, 0, 0, SAVING_NO_MODEL, 0, 0},
};

static int repetitions(void)
{
    const char *text = getenv("FLYBALL_TEST_SAVINGS");

    return text != NULL ? (int)strtol(text, NULL, 10) : REPETITIONS;
}

static double normal(uint64_t *random)
{
    double u = 1.0 - test_uniform(random), v = test_uniform(random);

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

static double draw(const struct law *law, uint64_t *random)
{
    switch (law->shape) {
    case NORMAL:
        return exp(law->a * normal(random) - law->a * law->a / 2.0);
    case PARETO:
        return pow(1.0 - test_uniform(random), -1.0 / law->a) * (law->a - 1.0) / law->a;
    case SPIKE:
        return (test_uniform(random) < law->a ? law->b : 1.0) / (1.0 + law->a * (law->b - 1.0));
    case EPOCHS:
        return law->epochs[(size_t)(test_uniform(random) * (double)law->count)];
    }
    return NAN;
}

/* A run by the law; what it takes is multiplied by `level`. */
static struct saving_sample run_of(const struct law *law, double level, uint64_t *random)
{
    struct saving_sample sample = {.delivered = true, .amount = draw(law, random)};

    sample.step = law->shape == EPOCHS ? level : law->epoch * level;
    if (sample.amount == 0.0 || (law->fails > 0.0 && test_uniform(random) < law->fails)) {
        sample.delivered = false;
        sample.amount = law->shape == EPOCHS ? law->a : 1.3;
    }
    sample.amount *= level;
    return sample;
}

/* What a delivered model takes in the mean. */
static double model_of(const struct law *law)
{
    double amount = 0.0, models = 0.0;

    if (law->shape != EPOCHS)
        return (1.0 - law->fails + 1.3 * law->fails) / (1.0 - law->fails);
    for (size_t i = 0; i < law->count; i++) {
        amount += law->epochs[i] > 0.0 ? law->epochs[i] : law->a;
        models += law->epochs[i] > 0.0;
    }
    return amount / models;
}

static double truth_of(const struct made_up *job)
{
    return 1.0 - (1.0 - job->saving) * model_of(&job->tuned) / model_of(&job->baseline);
}

static size_t make(const struct made_up *job, uint64_t *random, struct saving_sample *samples)
{
    double walk = 0.0;

    for (size_t i = 0; i < job->recurrences; i++) {
        double at = (double)i / (double)job->recurrences;
        double level = exp(log(1e6) + job->trend * at + job->swing * sin(at * 18.84955592153876) + walk);
        bool control = (job->control_until == 0 || i < job->control_until) && i % job->control_every == 0;

        if (control)
            samples[i] = run_of(&job->baseline, level, random);
        else
            samples[i] = run_of(&job->tuned, level * (1.0 - job->saving), random);
        samples[i].kind = control ? SAVING_BASELINE : i < job->searching ? SAVING_SEARCHING : SAVING_TUNED;
        walk += job->wander > 0.0 ? job->wander * normal(random) : 0.0;
    }
    return job->recurrences;
}

static void check_coverage(const struct made_up *job, uint64_t *random)
{
    double truth = truth_of(job), slack = 1e-9, widths = 0.0;
    double least = job->least > 0.0 ? job->least : 0.945;
    int covered = 0, claimed = 0, count = 0;

    for (int i = 0; i < repetitions(); i++) {
        struct saving_sample samples[RUNS_MAX];
        enum saving_doubt doubt;
        struct fly_job_range saving = saving_estimate(samples, make(job, random, samples), &doubt);

        assert_true(doubt == job->doubt || doubt == SAVING_NO_MODEL);
        assert_int_equal(isnan(saving.value) || isnan(saving.low) || isnan(saving.high),
                         doubt != SAVING_STATED);
        if (doubt != SAVING_STATED)
            continue;
        count++;
        assert_true(saving.low <= saving.value && saving.value <= saving.high);
        covered += saving.low <= truth + slack && truth - slack <= saving.high;
        claimed += saving.low > 0.0;
        widths += saving.high - saving.low;
    }
    if (job->doubt != SAVING_STATED) {
        assert_int_equal(count, 0);
        return;
    }
    assert_true(count > 0.99 * repetitions());
    print_message("# %-30s covers %.1f %%, claims %.1f %%, is %.1f points wide\n", job->name,
                  100.0 * covered / count, 100.0 * claimed / count, 100.0 * widths / count);
    /* Few repetitions differ by chance: three standard errors. */
    assert_true(covered >= (least - 3.0 * sqrt(least * (1.0 - least) / count)) * count);
    if (truth <= 0.0)
        assert_true(claimed <= 0.05 * count);
}

static void test_coverage(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        uint64_t random = row + 1;

        check_coverage(&rows[row], &random);
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

        made[i] = (struct job_row){.trial.trial = i + 1,
                                   .trial.recurrence = i,
                                   .outcome = TRIAL_REACHED,
                                   .reason = control ? REASON_CONTROL : REASON_SAMPLED,
                                   .trial.batch_size = control ? 32 : 64,
                                   .trial.limit_w = 200,
                                   .trial.energy_j = exp(level + 0.1 * normal(random)),
                                   .trial.time_s = 100,
                                   .trial.cost_j = 1000};
    }
}

/* The interval is that of what is wanted now, and covers it as often. */
static void test_coverage_after_a_change(void **state)
{
    static struct job_row made[CHANGED_RUNS];
    struct fly_job_hardware machine = {.highest_limit_w = 200};
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
        assert_true(savings.known);
        assert_int_equal(savings.outdated, CHANGED_AT - CHANGED_AT / CHANGED_CONTROL - 1);
        covered += savings.energy.low <= 0.0 && savings.energy.high >= 0.0;
        claimed += savings.energy.low > 0.0;
    }
    print_message("# %-30s covers %.1f %%, claims %.1f %%\n", "changed half way",
                  100.0 * (double)covered / REPETITIONS, 100.0 * (double)claimed / REPETITIONS);
    assert_true(covered >= 0.92 * REPETITIONS);
    assert_true(claimed <= 0.05 * REPETITIONS);
}

/* What cannot be trusted is not stated, and nothing is zero. F and f: the same, without a model. */
static void test_doubts(void **state)
{
    static const struct {
        const char *kinds;
        enum saving_doubt doubt;
    } cases[] = {{"", SAVING_FEW_BASELINE},
                 {"BBBBB", SAVING_FEW_TUNED},
                 {"TTTTTTT", SAVING_FEW_BASELINE},
                 {"BTTBTTBTT", SAVING_FEW_BASELINE},
                 {"BBTBTBTB", SAVING_FEW_TUNED},
                 {"BTBTBTBT", SAVING_FEW_BASELINE}, /* the first T is the second B's */
                 {"BTBTBTBTB", SAVING_STATED},
                 {"BSSTBTBTBTBTBT", SAVING_STATED},
                 {"BBBBBTTTTT", SAVING_NOT_SPANNED},
                 {"TTTTTBBBBB", SAVING_NOT_SPANNED},
                 {"BTBTBTBTBTTTTT", SAVING_NOT_SPANNED},
                 {"BTTTBTTTBTTTBTTTBTTTTT", SAVING_STATED},
                 {"BfBfBfBfBfB", SAVING_NO_MODEL},
                 {"FTFTFTFTFTF", SAVING_NO_MODEL}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct saving_sample samples[32];
        size_t count = strlen(cases[i].kinds);
        enum saving_doubt doubt;
        struct fly_job_range saving;

        for (size_t k = 0; k < count; k++) {
            char kind = cases[i].kinds[k];
            bool baseline = kind == 'B' || kind == 'F';

            samples[k] = (struct saving_sample){.kind = baseline      ? SAVING_BASELINE
                                                        : kind == 'S' ? SAVING_SEARCHING
                                                                      : SAVING_TUNED,
                                                .delivered = kind < 'a' && kind != 'F',
                                                .amount = baseline      ? 100.0
                                                          : kind == 'S' ? 500.0
                                                                        : 80.0};
        }
        saving = saving_estimate(samples, count, &doubt);
        assert_int_equal(doubt, cases[i].doubt);
        assert_int_equal(saving_doubt_text(doubt) == NULL, doubt == SAVING_STATED);
        assert_int_equal(isnan(saving.value), doubt != SAVING_STATED);
        if (doubt == SAVING_STATED) {
            check_close(saving.value, 0.2, 1e-12);
            check_close(saving.low, 0.2, 1e-12);
        }
    }
}

/* A saving has no unit: other joules give the same. */
static void test_scale(void **state)
{
    struct saving_sample samples[RUNS_MAX], scaled[RUNS_MAX];
    uint64_t random = 99;
    size_t count = make(&rows[2], &random, samples);
    struct fly_job_range a, b;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        scaled[i] = samples[i];
        scaled[i].amount /= 3.6e6;
        scaled[i].step /= 3.6e6;
    }
    a = saving_estimate(samples, count, NULL);
    b = saving_estimate(scaled, count, NULL);
    check_close(b.value, a.value, 1e-9);
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
    check_close(student_95(1), 6.313752, 1e-6);
    check_close(student_95(20), 1.724718, 1e-6);
    check_close(student_95(30), 1.697261, 1e-5);
    for (double degrees = 1.0; degrees < 60.0; degrees += 0.25)
        assert_true(student_95(degrees + 0.25) < student_95(degrees) &&
                    student_95(degrees) < student_975(degrees));
    for (double degrees = 1.0; degrees < 60.0; degrees += 0.25)
        assert_true(student_975(degrees + 0.25) < student_975(degrees));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coverage), cmocka_unit_test(test_coverage_after_a_change),
        cmocka_unit_test(test_doubts),   cmocka_unit_test(test_scale),
        cmocka_unit_test(test_student),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
