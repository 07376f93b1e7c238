/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to jobs in scenarios: too little memory, crashes, learning rates, and the plan's changes. */
#include "test.h"

#include "sim/recurring.h"
#include "sim/scenario.h"
#include "sim/world/altered.h"
#include "sim/world/synthetic.h"

enum { JOBS = 12, DRAWS = 4000, TRIES_MAX = 64 };

static struct workload jobs[JOBS];

static int setup(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < JOBS; i++) {
        if (synthetic_make(&jobs[i], (enum synthetic_kind)(i % SYNTHETIC_COUNT), i / SYNTHETIC_COUNT + 1,
                           NULL) < 0)
            return -1;
        jobs[i].spec.eta = 0.5;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < JOBS; i++)
        workload_close(&jobs[i]);
    return 0;
}

static void test_memory_ends_above_the_default(void **state)
{
    size_t limited = 0;

    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        struct workload copy = jobs[i];
        struct arena arena;

        arena_init(&arena, 1 << 20);
        assert_int_equal(altered_memory(&copy, &arena, NULL), 0);
        if (copy.fitting > 0) {
            limited++;
            assert_true(copy.fitting > copy.spec.default_batch && copy.fitting < copy.spec.batch_count);
            for (size_t b = 0; b < copy.spec.batch_count; b++)
                assert_true(isnan(copy.batches[b].path_epochs[0]) ==
                            (b >= copy.fitting || isnan(jobs[i].batches[b].path_epochs[0])));
        } else {
            assert_int_equal(copy.spec.default_batch, copy.spec.batch_count - 1);
        }
        arena_deinit(&arena);
    }
    assert_true(limited > JOBS / 2);
}

struct seen {
    struct try_record tries[TRIES_MAX];
    size_t count;
};

static void see(void *context, const struct try_record *record)
{
    struct seen *seen = context;

    if (seen->count < TRIES_MAX)
        seen->tries[seen->count++] = *record;
}

/* A search that goes upwards meets a batch size that does not fit once, pays nothing, and stays below. */
static void test_out_of_memory_is_told(void **state)
{
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 2};
    size_t failed = 0;

    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        struct workload copy = jobs[i];
        struct seen seen = {.count = 0};
        struct recurrence recurrence;
        struct recurring job;
        struct arena arena;

        arena_init(&arena, 1 << 20);
        assert_int_equal(altered_memory(&copy, &arena, NULL), 0);
        assert_int_equal(recurring_init(&job, &copy, &batch_policy_hill_climb, &parameters, NULL), 0);
        job.observer = see;
        job.observer_context = &seen;
        for (int r = 0; r < 20; r++)
            assert_int_equal(recurring_run(&job, &recurrence, NULL), 0);
        for (size_t t = 0, above = 0; t < seen.count && copy.fitting > 0; t++) {
            if (seen.tries[t].batch_size < copy.spec.batches[copy.fitting].size)
                continue;
            assert_int_equal(++above, 1);
            assert_false(seen.tries[t].reached);
            check_double(seen.tries[t].cost_j, 0.0);
            failed++;
        }
        recurring_deinit(&job);
        arena_deinit(&arena);
    }
    assert_true(failed > 0);
}

static void test_learning_rate_leaves_the_default(void **state)
{
    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        struct workload copy = jobs[i], again = jobs[i];
        size_t start = copy.spec.default_batch;
        struct arena arena;

        arena_init(&arena, 1 << 20);
        assert_int_equal(altered_learning_rate(&copy, &arena, NULL), 0);
        assert_int_equal(altered_learning_rate(&again, &arena, NULL), 0);
        for (size_t b = 0; b < copy.spec.batch_count; b++) {
            for (uint32_t p = 0; p < copy.batches[b].path_count; p++) {
                double before = jobs[i].batches[b].path_epochs[p], after = copy.batches[b].path_epochs[p];

                if (isnan(before)) {
                    assert_true(isnan(after));
                    continue;
                }
                check_double(again.batches[b].path_epochs[p], after); /* the name decides, nothing else */
                check_double(after, floor(after));
                /* exp(0.35 |d| + 0.1 z), with |z| < 5 and rounding */
                assert_true(after <= before * exp(0.35 * fabs((double)b - (double)start) + 0.5) + 0.5);
                assert_true(after >= floor(before * exp(-0.5)));
                if (b == start)
                    check_double(after, before);
            }
        }
        arena_deinit(&arena);
    }
}

static void test_crashes_are_shared_luck(void **state)
{
    struct environment one = {.crash_share = 0.1}, other;
    double sum = 0.0;
    int crashes = 0;

    (void)state;
    environment_init(&one, &jobs[0], "job", 1, GENERATOR_PHILOX);
    one.crash_share = 0.1;
    environment_init(&other, &jobs[1], "job", 1, GENERATOR_PHILOX);
    other.crash_share = 0.1;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double share, same;

        if (!environment_crashes(&one, i, 0, &share))
            continue;
        assert_true(environment_crashes(&other, i, 0, &same) &&
                    same == share); /* another world, the same luck */
        assert_true(share >= 0.0 && share < 1.0);
        sum += share;
        crashes++;
    }
    assert_true(fabs(crashes - 0.1 * DRAWS) < 5.0 * 19.0); /* a deviation is 19 */
    assert_true(fabs(sum / crashes - 0.5) < 5.0 * 0.29 / sqrt(crashes));
    one.crash_share = 0.0;
    assert_false(environment_crashes(&one, 0, 0, &sum));
    check_close(environment_crash_factor(0.5), 1.5, 1e-15);
}

/* What the default costs with crashes is, in the mean, what the factor says. */
static void test_crashes_cost_what_they_should(void **state)
{
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 1};
    double with = 0.0, without = 0.0;

    (void)state;
    for (int crashing = 0; crashing < 2; crashing++) {
        struct recurrence recurrence;
        struct recurring job;

        assert_int_equal(recurring_init(&job, &jobs[0], &batch_policy_default, &parameters, NULL), 0);
        job.environment.crash_share = crashing ? 0.1 : 0.0;
        for (int i = 0; i < DRAWS; i++) {
            assert_int_equal(recurring_run(&job, &recurrence, NULL), 0);
            *(crashing ? &with : &without) += recurrence.cost_j;
        }
        recurring_deinit(&job);
    }
    assert_true(fabs(with / without - environment_crash_factor(0.1)) < 0.02); /* five standard errors */
}

static void test_each_changes_its_own(void **state)
{
    (void)state;
    for (int kind = 0; kind < SCENARIO_COUNT; kind++) {
        struct campaign_plan plan = {.workloads = jobs, .workload_count = JOBS, .recurrences = 50};
        struct scenario scenario;
        bool raised, altered, drifts = kind >= SCENARIO_SHIFT && kind <= SCENARIO_UP_DOWN;

        assert_int_equal(scenario_begin(&scenario, (enum scenario_kind)kind, &plan, NULL), 0);
        raised = plan.workloads[0].spec.max_epochs > jobs[0].spec.max_epochs;
        altered = plan.workloads[0].batches != jobs[0].batches;
        assert_int_equal(plan.drift != DRIFT_NONE, drifts);
        if (drifts)
            assert_string_equal(drift_names[plan.drift], scenario_names[kind]);
        assert_int_equal(raised, kind >= SCENARIO_LEVEL && kind <= SCENARIO_UP_DOWN);
        assert_int_equal(altered, kind == SCENARIO_MEMORY || kind == SCENARIO_LEARNING_RATE);
        assert_int_equal(plan.burst, kind < SCENARIO_BURST_2 || kind > SCENARIO_BURST_8
                                         ? 0
                                         : 2 << (kind - SCENARIO_BURST_2));
        assert_true((plan.crash_share > 0.0) == (kind == SCENARIO_CRASHES));
        assert_true((plan.workloads[0].spec.objective != NULL) ==
                    (kind == SCENARIO_BOUND_3 || kind == SCENARIO_BOUND_10));
        assert_true((plan.transfers != NULL) == (kind >= SCENARIO_OTHER_GPU));
        scenario_end(&scenario);
    }
    assert_string_equal(scenario_names[SCENARIO_COUNT], "all");
}

/* Two workloads on three GPUs, and one on two of them. */
static void test_what_is_brought_from_where(void **state)
{
    static const char *const names[] = {"a", "b", "c", "a", "b", "c", "a", "b"};
    static const char *const gpus[] = {"x", "x", "x", "y", "y", "y", "z", "z"};
    static const struct {
        enum scenario_kind kind;
        int sources[COUNT(names)]; /* -1: none */
    } rows[] = {{SCENARIO_OTHER_GPU, {3, 4, 5, 6, 7, 2, 0, 1}},
                {SCENARIO_OTHER_GPU_2, {6, 7, -1, 0, 1, -1, 3, 4}},
                {SCENARIO_WRONG_JOB, {1, 2, 0, 4, 5, 3, 7, 6}},
                {SCENARIO_WRONG_UP, {0, 1, 2, 3, 4, 5, 6, 7}}};
    struct workload all[COUNT(names)];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        all[i] = jobs[i];
        all[i].job.name = names[i];
        all[i].gpu = gpus[i];
    }
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct campaign_plan plan = {.workloads = all, .workload_count = COUNT(names), .recurrences = 50};
        struct scenario scenario;

        assert_int_equal(scenario_begin(&scenario, rows[row].kind, &plan, NULL), 0);
        for (size_t i = 0; i < COUNT(names); i++) {
            const struct workload *source = plan.transfers[i].source;

            assert_int_equal(source == NULL ? -1 : (int)(source - plan.workloads), rows[row].sources[i]);
            assert_int_equal(plan.transfers[i].recurrences, 30);
            assert_int_equal(plan.transfers[i].octaves, rows[row].kind == SCENARIO_WRONG_UP ? 3 : 0);
        }
        scenario_end(&scenario);
    }
}

static void test_other_eta(void **state)
{
    struct campaign_plan plan = {.workloads = jobs, .workload_count = JOBS, .recurrences = 50};
    struct scenario scenario;

    (void)state;
    assert_int_equal(scenario_begin(&scenario, SCENARIO_OTHER_ETA, &plan, NULL), 0);
    assert_true(plan.transfers[3].objective_only);
    check_double(plan.transfers[3].source->spec.eta, 1.0);
    check_double(plan.workloads[3].spec.eta, 0.5);
    assert_ptr_equal(plan.transfers[3].source->batches, plan.workloads[3].batches);
    scenario_end(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_ends_above_the_default),
        cmocka_unit_test(test_out_of_memory_is_told),
        cmocka_unit_test(test_learning_rate_leaves_the_default),
        cmocka_unit_test(test_crashes_are_shared_luck),
        cmocka_unit_test(test_crashes_cost_what_they_should),
        cmocka_unit_test(test_each_changes_its_own),
        cmocka_unit_test(test_what_is_brought_from_where),
        cmocka_unit_test(test_other_eta),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
