/* SPDX-License-Identifier: Apache-2.0 */
/* The simple policies that others are compared with, in a world without luck. */
#include "test.h"

#include "sim/recurring.h"

enum { N = 5, BEST = 3, TRIES_MAX = 100, RECURRENCES = 40 };

/* Total costs are as 4000, 1800, 800, 700 and 3600. */
static const double limits_w[] = {200.0};
static const struct batch_choice choices[N] = {
    {16, limits_w, 1}, {32, limits_w, 1}, {64, limits_w, 1}, {128, limits_w, 1}, {256, limits_w, 1}};
static const double epochs[N] = {40, 20, 10, 10, 60};
static const struct fly_power_point points[N] = {
    {200, 200, 100}, {200, 200, 90}, {200, 200, 80}, {200, 200, 70}, {200, 200, 60}};

static struct workload_batch batches[N];
static const struct workload workload = {.spec = {.name = "plain",
                                                  .batches = choices,
                                                  .batch_count = N,
                                                  .default_batch = 1,
                                                  .max_epochs = 100,
                                                  .max_power_w = 200.0,
                                                  .eta = 0.5},
                                         .batches = batches};

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        batches[i] = (struct workload_batch){.points = &points[i],
                                             .point_count = 1,
                                             .path_epochs = &epochs[i],
                                             .path_count = 1,
                                             .mean_epoch_energy_j = points[i].power_w * points[i].time_s,
                                             .mean_epoch_time_s = points[i].time_s};
    return 0;
}

struct seen {
    struct try_record tries[TRIES_MAX];
    size_t count;
};

static void see(void *context, const struct try_record *record)
{
    struct seen *seen = context;

    assert_true(seen->count < TRIES_MAX);
    seen->tries[seen->count++] = *record;
}

static struct seen run(const struct batch_policy *policy)
{
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 1};
    struct seen seen = {.count = 0};
    struct recurring job;
    struct recurrence recurrence;

    assert_int_equal(recurring_init(&job, &workload, policy, &parameters, NULL), 0);
    job.observer = see;
    job.observer_context = &seen;
    for (int i = 0; i < RECURRENCES; i++)
        assert_int_equal(recurring_run(&job, &recurrence, NULL), 0);
    recurring_deinit(&job);
    return seen;
}

/* Checks the first tries, and that all after them ran and reached the best one. */
static void check_tries(const struct seen *seen, const uint32_t *sizes, size_t count)
{
    for (size_t i = 0; i < seen->count; i++)
        assert_int_equal(seen->tries[i].batch_size, i < count ? sizes[i] : choices[BEST].size);
    for (size_t i = count; i < seen->count; i++)
        assert_true(seen->tries[i].reached);
}

static void test_hill_climb_stops_at_the_summit(void **state)
{
    static const uint32_t sizes[] = {32, 64, 128, 256};
    const struct seen seen = run(&batch_policy_hill_climb);

    (void)state;
    check_tries(&seen, sizes, COUNT(sizes));
    assert_int_equal(seen.count, RECURRENCES + 1);
    assert_false(seen.tries[3].reached);
    /* 1.5 times 700 epochs' seconds are 17 epochs of 60 s. */
    check_close(seen.tries[3].time_s, 17.0 * 60.0, 1e-12);
}

static void test_one_round_tries_each_size_once(void **state)
{
    /* Stopped at twice the least cost, 16 and 256 need a second try. */
    static const uint32_t sizes[] = {32, 16, 64, 128, 256};
    const struct seen seen = run(&batch_policy_zeus_one_round);
    const struct seen whole = run(&batch_policy_zeus);
    size_t strays = 0;

    (void)state;
    check_tries(&seen, sizes, COUNT(sizes));
    assert_int_equal(seen.count, RECURRENCES + 2);
    for (size_t i = COUNT(sizes); i < whole.count; i++)
        strays += whole.tries[i].batch_size != choices[BEST].size;
    assert_true(strays > 0); /* the second round */
}

static void test_bandit_settles(void **state)
{
    const struct seen seen = run(&batch_policy_bandit);
    size_t far = 0;

    (void)state;
    assert_int_equal(seen.tries[0].batch_size, 32);
    for (size_t i = 0; i < seen.count; i++)
        far += seen.tries[i].batch_size == 16 || seen.tries[i].batch_size == 256;
    for (size_t i = seen.count - 10; i < seen.count; i++)
        assert_true(seen.tries[i].reached && seen.tries[i].batch_size >= 64 &&
                    seen.tries[i].batch_size <= 128);
    assert_int_equal(seen.tries[seen.count - 1].batch_size, choices[BEST].size);
    assert_true(far <= 2); /* their neighbours are strong enough to leave them */
}

/* Batch sizes that do not fit, or crash again and again, are left to the others. */
static void check_barred(const struct batch_policy *policy, const struct event *bars)
{
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 1};
    struct recurring job;
    struct recurrence recurrence;

    assert_int_equal(recurring_init(&job, &workload, policy, &parameters, NULL), 0);
    assert_int_equal(recurring_run(&job, &recurrence, NULL), 0);
    assert_int_equal(decider_fold(&job.decider, bars, NULL), 0);
    for (int i = 0; i < RECURRENCES; i++) {
        assert_int_equal(recurring_run(&job, &recurrence, NULL), 0);
        assert_true(recurrence.batch != 3);
    }
    recurring_deinit(&job);
}

static void test_barred_sizes(void **state)
{
    static const struct event bars[] = {{.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = 3},
                                        {.kind = EVENT_BATCH_GIVEN_UP, .given_up = 3}};

    (void)state;
    for (size_t i = 0; i < COUNT(bars); i++) {
        check_barred(&batch_policy_hill_climb, &bars[i]);
        check_barred(&batch_policy_bandit, &bars[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_hill_climb_stops_at_the_summit, setup),
        cmocka_unit_test_setup(test_one_round_tries_each_size_once, setup),
        cmocka_unit_test_setup(test_bandit_settles, setup),
        cmocka_unit_test_setup(test_barred_sizes, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
