/* SPDX-License-Identifier: Apache-2.0 */
/* What simulated jobs bring from elsewhere. */
#include <math.h>

#include "test.h"

#include "sim/comparison.h"
#include "sim/world/synthetic.h"

enum { RECURRENCES = 30, SEEDS = 6 };

/* Mean regret after so many recurrences, over seeds. */
static double regret(const struct workload *workload, const struct transfer *transfer)
{
    struct optimum optimum;
    double sum = 0.0;

    assert_int_equal(oracle_find(workload, &optimum, NULL), 0);
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        const struct comparison_plan plan = {
            .workload = workload,
            .optimum = &optimum,
            .policy = &batch_policy_bayes,
            .parameters = {.beta = 2.0, .seed = seed, .profile_window = 0.1},
            .transfer = transfer,
            .recurrences = RECURRENCES,
        };
        struct comparison comparison;

        assert_int_equal(comparison_run(&plan, &comparison, NULL), 0);
        sum += comparison.figures[FIGURE_REGRET] / SEEDS;
    }
    return sum;
}

static void open_job(struct workload *workload, enum synthetic_kind kind, uint32_t number, double eta)
{
    assert_int_equal(synthetic_make(workload, kind, number, NULL), 0);
    workload->spec.eta = eta;
}

/* Another weight of energy costs next to nothing: all was measured there. */
static void test_another_weight_of_energy(void **state)
{
    struct workload here, there;
    struct transfer transfer = {.source = &there, .objective_only = true, .recurrences = RECURRENCES};
    double without, with;

    (void)state;
    open_job(&here, SYNTHETIC_FAR, 3, 0.5);
    open_job(&there, SYNTHETIC_FAR, 3, 0.9);
    without = regret(&here, NULL);
    with = regret(&here, &transfer);
    assert_true(with < without / 3.0);
    workload_close(&here);
    workload_close(&there);
}

static void test_other_hardware(void **state)
{
    struct workload here, there;
    struct transfer transfer = {.source = &there, .kind = PAST_HARDWARE, .recurrences = RECURRENCES};

    (void)state;
    open_job(&here, SYNTHETIC_FAR, 3, 0.5);
    open_job(&there, SYNTHETIC_FAR, 3, 0.5);
    assert_true(regret(&here, &transfer) < regret(&here, NULL) / 3.0);
    workload_close(&here);
    workload_close(&there);
}

/* The right past at the wrong batch sizes is found out. */
static void test_a_past_that_misleads(void **state)
{
    (void)state;
    for (int octaves = -3; octaves <= 3; octaves += 6) {
        struct workload job;
        struct transfer transfer = {
            .source = &job, .kind = PAST_JOB, .octaves = octaves, .recurrences = RECURRENCES};

        open_job(&job, SYNTHETIC_SMOOTH, 5, 0.5);
        assert_true(regret(&job, &transfer) < regret(&job, NULL) + 4.0);
        workload_close(&job);
    }
}

/* With no batch size in common, everything is as without. */
static void test_nothing_in_common(void **state)
{
    struct workload job;
    struct transfer transfer = {.source = &job, .kind = PAST_JOB, .octaves = 20, .recurrences = RECURRENCES};

    (void)state;
    open_job(&job, SYNTHETIC_SMOOTH, 5, 0.5);
    check_double(regret(&job, &transfer), regret(&job, NULL));
    workload_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_weight_of_energy),
        cmocka_unit_test(test_other_hardware),
        cmocka_unit_test(test_a_past_that_misleads),
        cmocka_unit_test(test_nothing_in_common),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
