/* SPDX-License-Identifier: Apache-2.0 */
/* A policy's run beside the default's: what is charged after an early end, dear recurrences, and bursts. */
#include "test.h"

#include "sim/comparison.h"
#include "sim/world/synthetic.h"

enum { RECURRENCES = 24, POSITIONS = 3 };

static const uint64_t positions[POSITIONS] = {4, 12, RECURRENCES};
static struct workload workload;
static struct optimum optimum;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(synthetic_make(&workload, SYNTHETIC_SMOOTH, 3, NULL), 0);
    workload.spec.eta = 0.5;
    return oracle_find(&workload, &optimum, NULL);
}

static int teardown(void **state)
{
    (void)state;
    workload_close(&workload);
    return 0;
}

/* A policy that runs the default, and does as it is told: which tries stop, and when it has no choice left.
 */
static struct {
    uint64_t ends;                /* the recurrence in which it has no choice left */
    uint32_t stops[RECURRENCES];  /* tries of each recurrence that may run one epoch only */
    uint64_t flying[RECURRENCES]; /* what it saw in flight */
    bool stop;                    /* the trial that was proposed last */
} told;

static int told_create(const struct batch_policy *self, const struct job_spec *spec,
                       const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                       struct fly_error *out_error)
{
    (void)self;
    (void)spec;
    (void)parameters;
    (void)arena;
    (void)out_error;
    *out_state = NULL;
    return 0;
}

static int told_propose(const void *state, const struct batch_question *question,
                        struct proposal *out_proposal, struct fly_error *out_error)
{
    size_t batch = workload.spec.default_batch;

    (void)state;
    told.stop = question->try_number < told.stops[question->recurrence];
    if (question->recurrence >= told.ends && !told.stop)
        return error_set(out_error, FLY_EEXHAUSTED, "no choice left");
    told.flying[question->recurrence] = question->in_flight;
    *out_proposal = (struct proposal){.batch = batch,
                                      .limit_rule = LIMIT_FIXED,
                                      .limit_w = batch_highest_limit_w(&workload.spec.batches[batch])};
    return 0;
}

static int told_epoch_cap(const void *state, const struct epoch_question *question, uint32_t *out_epochs,
                          struct fly_error *out_error)
{
    (void)state;
    (void)question;
    (void)out_error;
    *out_epochs = told.stop ? 1 : workload.spec.max_epochs;
    return 0;
}

static const struct batch_policy told_policy = {.name = "told",
                                                .summary = "does as it is told",
                                                .version = 1,
                                                .create = told_create,
                                                .propose = told_propose,
                                                .epoch_cap = told_epoch_cap};

static void tell_default(void)
{
    told.ends = UINT64_MAX;
    for (size_t i = 0; i < RECURRENCES; i++)
        told.stops[i] = 0;
}

struct ran {
    struct comparison comparison;
    struct curve curve;
    double regret[POSITIONS];
    struct recurrence totals[POSITIONS];
    uint8_t dear[POSITIONS];
    double slowness[POSITIONS];
};

static void run(const struct batch_policy *policy, unsigned burst, bool rest_at_default, struct ran *out_ran)
{
    const struct comparison_plan plan = {.workload = &workload,
                                         .optimum = &optimum,
                                         .policy = policy,
                                         .parameters = {.beta = 2.0, .seed = 5},
                                         .recurrences = RECURRENCES,
                                         .burst = burst,
                                         .rest_at_default = rest_at_default,
                                         .curve = &out_ran->curve};

    *out_ran = (struct ran){.curve = {.positions = positions, .count = POSITIONS}};
    out_ran->curve.regret = out_ran->regret;
    out_ran->curve.totals = out_ran->totals;
    out_ran->curve.dear = out_ran->dear;
    out_ran->curve.slowness = out_ran->slowness;
    assert_int_equal(comparison_run(&plan, &out_ran->comparison, NULL), 0);
}

static void test_rest_is_the_defaults(void **state)
{
    struct ran standard, ours;

    (void)state;
    run(&batch_policy_default, 1, true, &standard);
    tell_default();
    told.ends = 7;
    run(&told_policy, 1, true, &ours);
    assert_int_equal(ours.comparison.ended, FLY_EEXHAUSTED);
    assert_int_equal(ours.comparison.completed, 7);
    assert_string_equal(ours.comparison.end.text, "no choice left");
    assert_int_equal(ours.curve.taken, POSITIONS);
    for (size_t i = 0; i < POSITIONS; i++) {
        check_double(ours.regret[i], standard.regret[i]);
        check_double(ours.totals[i].energy_j, standard.totals[i].energy_j);
        check_double(ours.totals[i].time_s, standard.totals[i].time_s);
    }
    run(&told_policy, 1, false, &ours); /* unless it is asked for, the run is over */
    assert_int_equal(ours.comparison.ended, FLY_EEXHAUSTED);
    assert_int_equal(ours.curve.taken, 1);
}

/* Nobody gains by failing: what the last recurrence had paid is paid besides. */
static void test_failed_tries_are_paid_too(void **state)
{
    struct ran standard, ours;

    (void)state;
    run(&batch_policy_default, 1, true, &standard);
    tell_default();
    told.ends = 0;
    told.stops[0] = 3;
    run(&told_policy, 1, true, &ours);
    assert_int_equal(ours.comparison.completed, 0);
    {
        const struct workload_batch *batch = &workload.batches[workload.spec.default_batch];
        const struct fly_power_point *top = &batch->points[batch->point_count - 1];

        check_close(ours.totals[0].time_s, standard.totals[0].time_s + 3.0 * top->time_s, 1e-12);
        check_close(ours.totals[2].time_s, standard.totals[2].time_s + 3.0 * top->time_s, 1e-12);
    }
}

static void test_dear_recurrences_are_counted(void **state)
{
    struct ran ours;

    (void)state;
    tell_default();
    run(&told_policy, 1, true, &ours);
    assert_int_equal(ours.dear[2], 0);
    told.stops[1] = told.stops[11] = told.stops[12] = told.stops[19] = told.stops[20] = 19;
    run(&told_policy, 1, true, &ours);
    assert_int_equal(ours.dear[0], 1);
    assert_int_equal(ours.dear[1], 1); /* ten recurrences after the first dear one comes the second */
    assert_int_equal(ours.dear[2], 4);
    told.stops[20] = 0;
    run(&told_policy, 1, true, &ours);
    assert_int_equal(ours.dear[2], 3);
}

/* Twice the default's expected time at its highest limit is allowed: the default takes half of it. */
static void test_choices_are_held_against_the_bound(void **state)
{
    const struct fly_objective objective = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = 2.0};
    struct ran ours;

    (void)state;
    tell_default();
    run(&told_policy, 1, true, &ours);
    assert_true(isnan(ours.slowness[0]));
    workload.spec.objective = &objective;
    run(&told_policy, 1, true, &ours);
    workload.spec.objective = NULL;
    for (size_t i = 0; i < POSITIONS; i++)
        check_close(ours.slowness[i], 0.5, 1e-12);
}

static void test_bursts(void **state)
{
    struct ran alone, ours;

    (void)state;
    tell_default();
    run(&told_policy, 1, true, &alone);
    for (unsigned burst = 2; burst <= 16; burst += 7) { /* the last is cut short */
        run(&told_policy, burst, true, &ours);
        assert_int_equal(ours.comparison.completed, RECURRENCES);
        for (size_t i = 0; i < RECURRENCES; i++)
            assert_int_equal(told.flying[i], i % burst);
        for (size_t i = 0; i < POSITIONS; i++)
            check_double(ours.totals[i].energy_j, alone.totals[i].energy_j);
        check_double(ours.regret[2], alone.regret[2]);
    }
}

/* In a burst, those that reached their target keep their cost, and the others pay the default's besides. */
static void test_burst_that_ends(void **state)
{
    struct ran standard, ours;

    (void)state;
    run(&batch_policy_default, 1, true, &standard);
    tell_default();
    told.ends = 10;
    run(&told_policy, 4, true, &ours);
    assert_int_equal(ours.comparison.ended, FLY_EEXHAUSTED);
    assert_true(ours.comparison.completed >= 8 && ours.comparison.completed <= 10);
    check_close(ours.totals[2].energy_j, standard.totals[2].energy_j, 1e-12);
}

/* Searches wait for what is in flight, and go on. */
static void test_searches_run_in_bursts(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_zeus, &batch_policy_bayes,
                                                          &batch_policy_hill_climb, &batch_policy_bandit};

    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        struct ran one, eight;

        run(policies[i], 1, true, &one);
        run(policies[i], 8, true, &eight);
        assert_int_equal(eight.comparison.completed, RECURRENCES);
        assert_true(isfinite(eight.regret[2]));
        assert_true(one.totals[2].cost_j != eight.totals[2].cost_j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest_is_the_defaults),
        cmocka_unit_test(test_failed_tries_are_paid_too),
        cmocka_unit_test(test_dear_recurrences_are_counted),
        cmocka_unit_test(test_choices_are_held_against_the_bound),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_burst_that_ends),
        cmocka_unit_test(test_searches_run_in_bursts),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
