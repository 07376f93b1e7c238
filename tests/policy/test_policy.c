/* SPDX-License-Identifier: Apache-2.0 */
/* Batch-size policies and their parts, fed with events made up here. */
#include "test.h"

#include <stdlib.h>

#include <flyball/cost.h>

#include "policy/batch_policies.h"
#include "policy/decider.h"
#include "policy/early_stopping.h"
#include "policy/pruning.h"
#include "policy/rewards.h"

enum { BATCHES = 5, LIMITS = 3 };
static const double limits_w[LIMITS] = {100.0, 150.0, 200.0};
static const struct batch_choice batches[BATCHES] = {
    {8, limits_w, 3}, {16, limits_w, 3}, {32, limits_w, 3}, {64, limits_w, 2}, {128, limits_w, 3}};
static const struct job_spec spec = {.name = "made-up",
                                     .batches = batches,
                                     .batch_count = BATCHES,
                                     .default_batch = 2,
                                     .max_epochs = 20,
                                     .max_power_w = 200.0,
                                     .eta = 0.5};

/* A job under test: a decider and its arena. */
struct bench {
    struct arena arena;
    struct decider decider;
    uint64_t recurrences; /* begun */
    uint32_t tries;       /* in this recurrence */
};

static void bench_init(struct bench *bench, const struct batch_policy *policy,
                       const struct policy_parameters *parameters)
{
    struct fly_error error;

    *bench = (struct bench){0};

    arena_init(&bench->arena, 1 << 20);
    if (decider_init(&bench->decider, &spec, policy, parameters, &bench->arena, &error) < 0)
        fail_msg("%s", error.text);
}

static void begin(struct bench *bench)
{
    bench->recurrences++;
    bench->tries = 0;
    assert_int_equal(decider_fold(&bench->decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN}, NULL), 0);
}

/* Proposes, tells the decider so, and measures the profile where one is wanted. */
static int next_trial(struct bench *bench, struct proposal *out_proposal, struct fly_error *out_error)
{
    static const struct fly_power_point points[LIMITS] = {{100, 95, 1.5}, {150, 130, 1.1}, {200, 180, 1.0}};
    int code =
        decider_propose(&bench->decider, bench->recurrences - 1, bench->tries, out_proposal, out_error);

    if (code < 0)
        return code;
    bench->tries++;
    assert_int_equal(decider_fold(&bench->decider,
                                  &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = out_proposal},
                                  NULL),
                     0);
    if (decider_wants_profile(&bench->decider, out_proposal)) {
        const struct profile_measured measured = {
            .batch = out_proposal->batch, .points = points, .count = LIMITS, .units_per_epoch = 1.0};

        assert_int_equal(decider_fold(&bench->decider,
                                      &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured},
                                      NULL),
                         0);
        assert_false(decider_wants_profile(&bench->decider, out_proposal));
    }
    return 0;
}

static void end_trial(struct bench *bench, const struct proposal *proposal, enum trial_outcome outcome,
                      double cost_j)
{
    /* With eta 0.5 and 200 W this costs cost_j. */
    const struct fly_trial ended = {.recurrence = bench->recurrences - 1,
                                    .try_number = bench->tries,
                                    .batch = proposal->batch,
                                    .limit_w = decider_limit_w(&bench->decider, proposal),
                                    .outcome = outcome,
                                    .energy_j = cost_j,
                                    .time_s = cost_j / 200.0};

    assert_int_equal(
        decider_fold(&bench->decider, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended}, NULL), 0);
}

static uint32_t epoch_cap(const struct bench *bench, size_t batch, double epoch_energy_j, double epoch_time_s)
{
    uint32_t epochs = 0;

    assert_int_equal(decider_epoch_cap(&bench->decider, batch, epoch_energy_j, epoch_time_s, &epochs, NULL),
                     0);
    return epochs;
}

static void test_table(void **state)
{
    (void)state;
    for (const struct batch_policy *const *policy = batch_policies; *policy != NULL; policy++) {
        assert_ptr_equal(batch_policy_find((*policy)->name), *policy);
        assert_non_null((*policy)->summary);
        assert_non_null((*policy)->create);
        assert_non_null((*policy)->propose);
        assert_true((*policy)->version >= 1);
    }
    assert_null(batch_policy_find("nothing"));
}

static void test_default_never_moves(void **state)
{
    struct bench bench;
    struct proposal proposal;

    (void)state;
    bench_init(&bench, &batch_policy_default, &(struct policy_parameters){.beta = 2.0});
    for (int i = 0; i < 50; i++) {
        begin(&bench);
        assert_int_equal(next_trial(&bench, &proposal, NULL), 0);
        assert_int_equal(proposal.batch, 2);
        check_double(decider_limit_w(&bench.decider, &proposal), 200.0);
        assert_int_equal(epoch_cap(&bench, 2, 1.0, 1.0), 20);
        end_trial(&bench, &proposal, i % 3 ? TRIAL_REACHED : TRIAL_NOT_REACHED, 10.0);
    }
    arena_deinit(&bench.arena);
}

/* Every cell once and in order, a batch size gone at its first failure, then the cheapest for ever. */
static void test_grid(void **state)
{
    struct bench bench;
    struct proposal proposal;
    struct fly_error error;
    size_t seen = 0;
    /* (batch, limit) in the order expected; batch 1 fails at its second limit. */
    static const size_t order[][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {2, 0}, {2, 1},
                                      {2, 2}, {3, 0}, {3, 1}, {4, 0}, {4, 1}, {4, 2}};

    (void)state;
    bench_init(&bench, &batch_policy_grid, &(struct policy_parameters){.beta = 2.0});
    for (; seen < COUNT(order); seen++) {
        begin(&bench);
        assert_int_equal(next_trial(&bench, &proposal, NULL), 0);
        assert_int_equal(proposal.batch, order[seen][0]);
        check_double(proposal.limit_w, limits_w[order[seen][1]]);
        assert_int_equal(proposal.reason, REASON_EXPLORE);
        /* The cheapest is batch 3 at its first limit; batch 1 was cheaper still before it failed. */
        end_trial(&bench, &proposal, seen == 4 ? TRIAL_NOT_REACHED : TRIAL_REACHED,
                  seen == 8   ? 5.0
                  : seen == 3 ? 1.0
                              : 10.0);
    }
    for (int i = 0; i < 3; i++) {
        begin(&bench);
        assert_int_equal(next_trial(&bench, &proposal, NULL), 0);
        assert_int_equal(proposal.batch, 3);
        check_double(proposal.limit_w, 100.0);
        assert_int_equal(proposal.reason, REASON_BEST_SEEN);
        end_trial(&bench, &proposal, i == 2 ? TRIAL_NOT_REACHED : TRIAL_REACHED, 50.0);
    }
    /* Batch 3 failed in the end; the least seen of the others is its successor, until none is left. */
    for (size_t left = 3; left > 0; left--) {
        assert_int_equal(next_trial(&bench, &proposal, NULL), 0);
        assert_true(proposal.batch != 3 && proposal.batch != 1);
        end_trial(&bench, &proposal, TRIAL_NOT_REACHED, 50.0);
    }
    assert_int_equal(next_trial(&bench, &proposal, &error), FLY_EEXHAUSTED);
    check_contains(error.text, "no batch size is left");
    arena_deinit(&bench.arena);
}

static void test_pruning(void **state)
{
    /* What happens to each size in each round, and the walk that follows; 'x' fails. */
    static const struct {
        const char *round1, *round2; /* per size: cost digit, or x */
        const char *walk;            /* sizes in the order tried */
        const char *survivors;
        bool exhausted;
    } rows[] = {
        {"54321", "54321", "2103443210", "01234", false},
        {"55155", "55155", "2103421034", "01234", false},
        {"x515x", "55155",
         "2103421"
         "3",
         "123", false},
        {"55x55", "55555",
         "2343"
         "4",
         "34", false},
        {"1x555", "55555",
         "213423"
         "4",
         "234", false},
        {"xxxxx", "55555", "23", "", true},
        {"55155", "xxxxx", "2103423", "", true},
        {"55155", "55x55",
         "210342"
         "34",
         "34", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct pruning pruning;
        char walk[64] = "", survivors[8] = "";
        size_t steps = 0, left = 0;

        arena_init(&arena, 1 << 16);
        assert_true(pruning_init(&pruning, 5, 2, &arena));
        while (!pruning_over(&pruning)) {
            char what = (pruning.round == 0 ? rows[i].round1 : rows[i].round2)[pruning.awaited];

            walk[steps++] = (char)('0' + pruning.awaited);
            pruning_observe(&pruning, what != 'x', what - '0');
            assert_true(steps < 60);
        }
        for (size_t b = 0; b < 5; b++) {
            if (pruning.candidate[b])
                survivors[left++] = (char)('0' + b);
        }
        if (strcmp(walk, rows[i].walk) != 0 || strcmp(survivors, rows[i].survivors) != 0)
            fail_msg("row %zu: walk %s, survivors %s; expected %s, %s", i, walk, survivors, rows[i].walk,
                     rows[i].survivors);
        assert_int_equal(pruning.exhausted, rows[i].exhausted);
        arena_deinit(&arena);
    }
}

/* Against the plain two-pass formula over what should count. */
static void test_rewards(void **state)
{
    static const uint32_t windows[] = {0, 1, 2, 5, 100};
    double values[300];
    uint64_t random = 17;

    (void)state;
    for (size_t w = 0; w < COUNT(windows); w++) {
        struct arena arena;
        struct rewards rewards;

        arena_init(&arena, 1 << 16);
        assert_true(rewards_init(&rewards, windows[w], &arena));
        for (size_t n = 0; n < COUNT(values); n++) {
            size_t first = windows[w] > 0 && n + 1 > windows[w] ? n + 1 - windows[w] : 0;
            double mean = 0.0, variance = 0.0;

            values[n] = -1e6 * (1.0 + 0.1 * test_uniform(&random));
            rewards_add(&rewards, values[n]);
            for (size_t i = first; i <= n; i++)
                mean += values[i] / (double)(n + 1 - first);
            for (size_t i = first; i <= n; i++)
                variance += (values[i] - mean) * (values[i] - mean) / (double)(n + 1 - first);
            assert_int_equal(rewards_count(&rewards), n + 1 - first);
            check_close(rewards.mean, mean, 1e-13);
            assert_true(fabs(rewards.variance - variance) <= 1e-9 * variance + 1e-6);
        }
        arena_deinit(&arena);
    }
}

static void test_equal_rewards_have_no_variance(void **state)
{
    struct rewards rewards;

    (void)state;
    rewards_init(&rewards, 0, NULL);
    for (int i = 0; i < 1000; i++)
        rewards_add(&rewards, -123456.789);
    check_double(rewards.variance, 0.0);
    check_double(rewards.mean, -123456.789);
}

static void test_stopping(void **state)
{
    static const struct {
        double bound_j, epoch_j;
        uint32_t epochs;
    } rows[] = {
        {INFINITY, 1.0, 20}, {10.0, 1.0, 10}, {9.999, 1.0, 9}, {0.5, 1.0, 0}, {1e300, 1e-300, 20},
        {20.0, 1.0, 20},     {21.0, 1.0, 20}, {0.3, 0.1, 2}, /* 0.1 is a little more than a tenth */
        {0.6, 0.2, 2},       {0.7, 0.1, 6},
    };
    uint64_t random = 29;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t epochs = early_stopping_epochs(rows[i].bound_j, rows[i].epoch_j, 20);

        if (epochs != rows[i].epochs)
            fail_msg("row %zu: %u epochs, expected %u", i, epochs, rows[i].epochs);
    }
    for (int i = 0; i < 10000; i++) {
        double epoch_j = 1.0 + 1e5 * test_uniform(&random), bound_j = epoch_j * 18.0 * test_uniform(&random);
        uint32_t epochs = early_stopping_epochs(bound_j, epoch_j, 20);

        assert_true(epochs * epoch_j <= bound_j * (1 + 1e-15));
        assert_true((epochs + 1) * epoch_j > bound_j * (1 - 1e-15));
        /* A whole number of epochs allows that number. */
        assert_int_equal(early_stopping_epochs(epoch_j * 8.0, epoch_j, 20), 8);
    }
}

static void test_zeus_explores_and_settles(void **state)
{
    struct bench bench;
    struct proposal proposal;
    size_t chosen[BATCHES] = {0};
    uint64_t random = 41;

    (void)state;
    bench_init(&bench, &batch_policy_zeus, &(struct policy_parameters){.beta = 2.0, .seed = 1});
    for (int i = 0; i < 300; i++) {
        begin(&bench);
        assert_int_equal(next_trial(&bench, &proposal, NULL), 0);
        assert_int_equal(proposal.reason, i < 2 * BATCHES ? REASON_EXPLORE : REASON_SAMPLED);
        check_double(decider_limit_w(&bench.decider, &proposal), 150.0);
        chosen[proposal.batch] += i >= 200;
        end_trial(&bench, &proposal, TRIAL_REACHED,
                  (proposal.batch == 1 ? 100.0 : 140.0) + 10.0 * test_uniform(&random));
    }
    assert_true(chosen[1] > 95);
    arena_deinit(&bench.arena);
}

/* Asking twice gives the same answer, and a state folded from the same events too. */
static void test_zeus_is_pure(void **state)
{
    static const enum generator generators[] = {GENERATOR_PHILOX, GENERATOR_NUMPY};

    (void)state;
    for (size_t g = 0; g < COUNT(generators); g++) {
        struct bench one, two;
        const struct policy_parameters parameters = {.beta = 2.0, .seed = 3, .generator = generators[g]};
        uint64_t random = 43;

        bench_init(&one, &batch_policy_zeus, &parameters);
        bench_init(&two, &batch_policy_zeus, &parameters);
        for (int i = 0; i < 100; i++) {
            struct proposal first, again, other;
            double cost_j = 100.0 + 50.0 * test_uniform(&random);

            begin(&one);
            begin(&two);
            assert_int_equal(decider_propose(&one.decider, (uint64_t)i, 0, &first, NULL), 0);
            assert_int_equal(decider_propose(&one.decider, (uint64_t)i, 0, &again, NULL), 0);
            assert_int_equal(first.batch, again.batch);
            assert_int_equal(next_trial(&one, &first, NULL), 0);
            assert_int_equal(next_trial(&two, &other, NULL), 0);
            assert_int_equal(first.batch, other.batch);
            end_trial(&one, &first, TRIAL_REACHED, cost_j);
            end_trial(&two, &other, TRIAL_REACHED, cost_j);
        }
        arena_deinit(&one.arena);
        arena_deinit(&two.arena);
    }
}

static void test_zeus_ends(void **state)
{
    static const struct policy_parameters parameters = {.beta = 2.0, .seed = 1},
                                          narrow = {.beta = 2.0, .window = 1};
    struct bench bench;
    struct proposal proposal;
    struct fly_error error;

    (void)state;
    bench_init(&bench, &batch_policy_zeus, &parameters);
    begin(&bench);
    assert_int_equal(next_trial(&bench, &proposal, &error), 0);
    end_trial(&bench, &proposal, TRIAL_NOT_REACHED, 100.0);
    assert_int_equal(next_trial(&bench, &proposal, &error), FLY_EEXHAUSTED);
    check_contains(error.text, "first recurrence");
    arena_deinit(&bench.arena);

    bench_init(&bench, &batch_policy_zeus, &narrow);
    for (int i = 0; i < 2 * BATCHES; i++) {
        begin(&bench);
        assert_int_equal(next_trial(&bench, &proposal, &error), 0);
        end_trial(&bench, &proposal, TRIAL_REACHED, 100.0);
    }
    begin(&bench);
    assert_int_equal(next_trial(&bench, &proposal, &error), FLY_EEXHAUSTED);
    check_contains(error.text, "window of 1");
    arena_deinit(&bench.arena);
}

/* The bound follows the cheapest recurrence, its failed tries included. */
static void test_zeus_bound(void **state)
{
    struct bench bench;
    struct proposal proposal;

    (void)state;
    bench_init(&bench, &batch_policy_zeus, &(struct policy_parameters){.beta = 2.0, .seed = 1});
    assert_int_equal(epoch_cap(&bench, 0, 10.0, 0.05), 20);
    begin(&bench);
    next_trial(&bench, &proposal, NULL);
    end_trial(&bench, &proposal, TRIAL_REACHED, 60.0);
    assert_int_equal(epoch_cap(&bench, 0, 10.0, 0.05), 12); /* epochs of 10 J under 120 J */
    begin(&bench);
    next_trial(&bench, &proposal, NULL);
    end_trial(&bench, &proposal, TRIAL_NOT_REACHED, 30.0);
    next_trial(&bench, &proposal, NULL);
    end_trial(&bench, &proposal, TRIAL_REACHED, 40.0);
    assert_int_equal(epoch_cap(&bench, 0, 10.0, 0.05), 12); /* 30 + 40 is no less than 60 */
    begin(&bench);
    next_trial(&bench, &proposal, NULL);
    end_trial(&bench, &proposal, TRIAL_REACHED, 45.0);
    assert_int_equal(epoch_cap(&bench, 0, 10.0, 0.05), 9);
    arena_deinit(&bench.arena);
}

static void test_refused_parameters(void **state)
{
    static const struct policy_parameters rows[] = {
        {.beta = 0.0}, {.beta = NAN}, {.beta = -1.0}, {.beta = 2.0, .window = POLICY_WINDOW_MAX + 1}};
    struct arena arena;
    struct decider decider;
    struct fly_error error;

    (void)state;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(decider_init(&decider, &spec, &batch_policy_zeus, &rows[i], &arena, &error),
                         FLY_EUSAGE);
    assert_int_equal(decider_init(&decider, &spec, &batch_policy_fixed,
                                  &(struct policy_parameters){.fixed_batch = 9}, &arena, &error),
                     FLY_EUSAGE);
    arena_deinit(&arena);
    arena_init(&arena, 100); /* too small for any state */
    assert_int_equal(decider_init(&decider, &spec, &batch_policy_zeus,
                                  &(struct policy_parameters){.beta = 2.0}, &arena, &error),
                     FLY_ENOMEM);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),        cmocka_unit_test(test_default_never_moves),
        cmocka_unit_test(test_grid),         cmocka_unit_test(test_pruning),
        cmocka_unit_test(test_rewards),      cmocka_unit_test(test_equal_rewards_have_no_variance),
        cmocka_unit_test(test_stopping),     cmocka_unit_test(test_zeus_explores_and_settles),
        cmocka_unit_test(test_zeus_is_pure), cmocka_unit_test(test_zeus_ends),
        cmocka_unit_test(test_zeus_bound),   cmocka_unit_test(test_refused_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
