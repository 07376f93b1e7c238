/* SPDX-License-Identifier: Apache-2.0 */
/* The guard: by itself, and around the policies in small worlds whose costs change. */
#include <math.h>

#include "test.h"

#include "policy/decider.h"
#include "policy/search_guard.h"

/* ---- by itself ---- */

static void end(struct guard *guard, uint64_t recurrence, double cost)
{
    guard_take_try(guard, recurrence, cost, true);
}

static void run_default(struct guard *guard, uint64_t recurrence, double cost)
{
    guard_take_default(guard, cost);
    end(guard, recurrence, cost);
}

static struct guard guard_with_level(bool follows)
{
    struct guard guard;

    guard_init(&guard, follows);
    run_default(&guard, 0, 100.0);
    return guard;
}

static void test_asks_then_gives_way(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 9; i++)
        end(&guard, i, 80.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 9, 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 10, 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    /* The default still takes what it took: the two stay dear, and a third is one too many. */
    run_default(&guard, 11, 100.0);
    assert_int_equal(guard_dear(&guard), 2);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 12, 121.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    assert_int_equal(guard_advise(&guard, 1), GUARD_GO_ON);
    assert_false(guard_begins_anew(&guard)); /* the search is young */
    for (uint64_t i = 13; guard_advise(&guard, 0) == GUARD_DEFAULT; i++) {
        guard_take_advice(&guard);
        assert_true(i < 19);
        run_default(&guard, i, 100.0);
    }
    assert_int_equal(guard_dear(&guard), 2);
    assert_false(guard.rests);
}

static void test_begins_anew_where_it_should_know(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 40; i++)
        end(&guard, i, i < 36 ? 80.0 : 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    assert_true(guard_begins_anew(&guard));
    guard_take_advice(&guard);
    run_default(&guard, 40, 100.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    assert_false(guard_begins_anew(&guard)); /* once */
}

/* Where the default has become dearer as well, nothing was dear. */
static void test_judges_again(void **state)
{
    struct guard follows = guard_with_level(true), other = guard_with_level(false);

    (void)state;
    end(&follows, 1, 200.0);
    end(&follows, 2, 200.0);
    assert_int_equal(guard_advise(&follows, 0), GUARD_ASK);
    run_default(&follows, 3, 300.0);
    assert_int_equal(guard_dear(&follows), 0);
    assert_int_equal(guard_advise(&follows, 0), GUARD_GO_ON);
    /* A policy that cannot follow begins anew, once. */
    run_default(&other, 1, 300.0);
    assert_int_equal(guard_advise(&other, 0), GUARD_DEFAULT);
    assert_true(guard_begins_anew(&other));
    guard_take_advice(&other);
    run_default(&other, 2, 300.0);
    assert_int_equal(guard_advise(&other, 0), GUARD_GO_ON);
}

static void test_counts_failed_tries(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    guard_take_try(&guard, 1, 60.0, false);
    guard_take_try(&guard, 2, 30.0, true); /* another recurrence, meanwhile */
    assert_int_equal(guard_dear(&guard), 0);
    assert_int_equal(guard_advise(&guard, 1), GUARD_GO_ON);
    guard_take_try(&guard, 1, 60.0, false);
    assert_int_equal(guard_advise(&guard, 2), GUARD_ASK);
    end(&guard, 1, 20.0);
    assert_int_equal(guard_dear(&guard), 1);
}

static void test_asks_where_costs_rose(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 12; i++)
        end(&guard, i, i % 2 == 0 ? 60.0 : 70.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 12, 110.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON); /* one may be bad luck */
    end(&guard, 13, 110.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    run_default(&guard, 14, 50.0); /* it has become cheaper, so they were dear */
    assert_true(guard_dear(&guard) >= 2);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
}

static void test_asks_what_nobody_knows(void **state)
{
    struct guard guard;

    (void)state;
    guard_init(&guard, false);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    for (uint64_t i = 0; i < 20; i++)
        end(&guard, i, 10.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 20, 16.0);
    end(&guard, 21, 16.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
}

static void test_default_fails(void **state)
{
    struct guard guard = guard_with_level(false);

    (void)state;
    for (uint64_t i = 1; i < 6; i++)
        end(&guard, i, 200.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    guard_take_default_failed(&guard);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    assert_int_equal(guard_advise(&guard, 5), GUARD_GO_ON);
    run_default(&guard, 6, 100.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
}

/* Steady costs with a tenth of scatter are luck, whoever is best. */
static void test_luck_is_no_reason(void **state)
{
    static const double scatter[] = {-0.1, 0.05, 0.1, -0.05, 0.0, 0.08, -0.08};
    struct guard guard = guard_with_level(false);

    (void)state;
    for (uint64_t i = 1; i < 200; i++) {
        end(&guard, i, 100.0 * (1.0 + scatter[i % COUNT(scatter)]));
        assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    }
}

static void test_saves(void **state)
{
    struct guard guard = guard_with_level(false), again;
    struct buffer bytes, twice;
    struct bytes_reader reader;

    (void)state;
    for (uint64_t i = 1; i < 12; i++)
        end(&guard, i, 125.0);
    guard_take_try(&guard, 50, 10.0, false);
    guard_take_advice(&guard);
    buffer_init(&bytes, 1 << 16);
    buffer_init(&twice, 1 << 16);
    guard_save(&guard, &bytes);
    guard_init(&again, false);
    reader = bytes_reader(bytes.data, bytes.length);
    guard_load(&again, &reader);
    assert_true(bytes_whole(&reader));
    guard_save(&again, &twice);
    assert_int_equal(twice.length, bytes.length);
    assert_memory_equal(twice.data, bytes.data, bytes.length);
    assert_int_equal(guard_advise(&again, 0), GUARD_DEFAULT);
    buffer_deinit(&bytes);
    buffer_deinit(&twice);
}

static void test_converts_limits(void **state)
{
    static const struct fly_power_point points[] = {{100, 100, 1.2}, {200, 200, 1.0}};
    const struct job_spec job = {.eta = 1.0, .max_power_w = 200.0};

    (void)state;
    check_double(guard_limit_share(&job, points, 2, 100), 0.6);
    check_double(guard_limit_share(&job, points, 2, 200), 1.0);
    check_double(guard_limit_share(&job, points, 2, 150), 1.0);
    check_double(guard_limit_share(&job, NULL, 0, 150), 1.0);
}

/* ---- around policies ---- */

enum { N = 4, DEFAULT = 1, MAX_EPOCHS = 200, TRIES_MAX = 20 };

static const double limits_w[] = {200};
static const struct batch_choice batches[N] = {
    {16, limits_w, 1}, {32, limits_w, 1}, {64, limits_w, 1}, {128, limits_w, 1}};
static const struct job_spec spec = {.name = "job",
                                     .batches = batches,
                                     .batch_count = N,
                                     .default_batch = DEFAULT,
                                     .max_epochs = MAX_EPOCHS,
                                     .max_power_w = 200.0,
                                     .eta = 1.0};
static const double needs[N] = {30, 22, 20, 40};

struct life {
    struct arena arena;
    struct decider decider;
    uint64_t recurrences;
    unsigned guarded, doubts; /* proposals */
};

static void begin(struct life *life, const struct batch_policy *policy, enum guard_choice guard)
{
    struct fly_error error;

    *life = (struct life){.recurrences = 0};
    arena_init(&life->arena, 1 << 22);
    if (decider_init(&life->decider, &spec, policy, &(struct policy_parameters){.beta = 2.0, .guard = guard},
                     &life->arena, &error) < 0)
        fail_msg("%s", error.text);
}

static void finish(struct life *life)
{
    decider_deinit(&life->decider);
    arena_deinit(&life->arena);
}

static void tell(struct life *life, const struct event *event)
{
    assert_int_equal(decider_fold(&life->decider, event, NULL), 0);
}

/* Runs one try where each batch size needs `level` times its epochs. Returns what it cost. */
static double run_try(struct life *life, uint32_t try_number, double level, bool *out_reached)
{
    const struct fly_power_point point = {200, 200, 1.0};
    struct trial_ended ended = {.recurrence = life->recurrences, .try_number = try_number, .limit_w = 200};
    struct proposal proposal;
    uint32_t cap = MAX_EPOCHS;
    double epochs;

    assert_int_equal(decider_propose(&life->decider, life->recurrences, try_number, &proposal, NULL), 0);
    ended.trial = life->decider.trials;
    tell(life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
    life->guarded += proposal.reason == REASON_GUARD;
    life->doubts += proposal.reason == REASON_GUARD_DOUBT;
    if (proposal.reason == REASON_GUARD || proposal.reason == REASON_GUARD_DOUBT) {
        assert_int_equal(proposal.batch, DEFAULT);
        assert_true(proposal.uncapped);
    }
    if (decider_wants_profile(&life->decider, &proposal))
        tell(life, &(struct event){
                       .kind = EVENT_PROFILE_MEASURED,
                       .measured = &(struct profile_measured){
                           .batch = proposal.batch, .points = &point, .count = 1, .units_per_epoch = 1.0}});
    if (!proposal.uncapped)
        assert_int_equal(decider_epoch_cap(&life->decider, proposal.batch, 200.0, 1.0, &cap, NULL), 0);
    epochs = ceil(needs[proposal.batch] * level);
    *out_reached = epochs <= cap;
    ended.batch = proposal.batch;
    ended.epochs = *out_reached ? epochs : cap;
    ended.outcome = *out_reached ? TRIAL_REACHED : cap == 0 ? TRIAL_REFUSED : TRIAL_NOT_REACHED;
    ended.time_s = ended.epochs;
    ended.energy_j = 200.0 * ended.epochs;
    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
    return ended.energy_j;
}

/* Runs one recurrence. Returns what it cost as a share of the default's. */
static double recur(struct life *life, double level)
{
    double cost = 0.0;
    bool reached = false;

    tell(life, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
    for (uint32_t i = 0; i < TRIES_MAX && !reached; i++)
        cost += run_try(life, i, level, &reached);
    life->recurrences++;
    return reached ? cost / (200.0 * ceil(needs[DEFAULT] * level)) : INFINITY;
}

static unsigned count_dear(struct life *life, unsigned recurrences, double level)
{
    unsigned dear = 0;

    for (unsigned i = 0; i < recurrences; i++)
        dear += recur(life, level) > 1.2;
    return dear;
}

/* All costs triple: with the guard each policy soon takes no more than the default, without it zeus never. */
static void test_tripled_costs(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_zeus, &batch_policy_zeus_one_round,
                                                          &batch_policy_hill_climb, &batch_policy_bandit,
                                                          &batch_policy_bayes};
    struct life life;
    unsigned dear[2];

    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        begin(&life, policies[i], GUARD_ON);
        count_dear(&life, 18, 1.0);
        dear[0] = count_dear(&life, 10, 3.0);
        count_dear(&life, 20, 3.0);
        dear[1] = count_dear(&life, 10, 3.0);
        if (dear[0] > 4 || dear[1] > 3 || life.decider.begun_anew > 2)
            fail_msg("%s: %u of the first ten recurrences are dear, %u of the later", policies[i]->name,
                     dear[0], dear[1]);
        finish(&life);
    }
    begin(&life, &batch_policy_zeus, GUARD_OF_POLICY);
    count_dear(&life, 18, 1.0);
    assert_int_equal(count_dear(&life, 10, 3.0), 10);
    assert_int_equal(life.guarded + life.doubts, 0);
    finish(&life);
}

/* A policy whose state is made afresh searches again, and knows the profiles and what does not fit. */
static void test_begins_anew(void **state)
{
    struct life life;

    (void)state;
    begin(&life, &batch_policy_zeus, GUARD_ON);
    tell(&life, &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = N - 1});
    count_dear(&life, 18, 1.0);
    assert_int_equal(life.guarded, 0);
    assert_int_equal(life.decider.begun_anew, 0);
    count_dear(&life, 30, 3.0);
    assert_true(life.guarded > 0);
    assert_true(life.decider.begun_anew > 0);
    for (int i = 0; i < 20; i++) {
        struct proposal proposal;

        assert_int_equal(decider_propose(&life.decider, life.recurrences, 0, &proposal, NULL), 0);
        assert_true(proposal.batch < N - 1);
        assert_false(decider_wants_profile(&life.decider, &proposal));
        recur(&life, 3.0);
    }
    finish(&life);
}

/* Nothing is compared with a default that does not reach its target. */
static void test_says_that_the_default_fails(void **state)
{
    struct life life;
    bool reached;

    (void)state;
    begin(&life, &batch_policy_bayes, GUARD_ON);
    count_dear(&life, 5, 1.0);
    assert_false(decider_default_fails(&life.decider));
    for (uint32_t i = 0; i < 4; i++)
        run_try(&life, i, 100.0, &reached);
    assert_true(decider_default_fails(&life.decider));
    finish(&life);
}

/* A decider whose policy began anew is written down and read back, and goes on alike. */
static void test_decider_saves(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_zeus, &batch_policy_bayes};

    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        const struct proposal anew = {
            .batch = DEFAULT, .limit_rule = LIMIT_PROFILED, .uncapped = true, .reason = REASON_GUARD};
        struct life life, again;
        struct buffer bytes;
        struct bytes_reader reader;

        begin(&life, policies[i], GUARD_ON);
        count_dear(&life, 40, 1.0);
        tell(&life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &anew});
        assert_int_equal(life.decider.begun_anew, 1);
        count_dear(&life, 7, 3.0);
        buffer_init(&bytes, 1 << 20);
        decider_save(&life.decider, &bytes);
        begin(&again, policies[i], GUARD_ON);
        reader = bytes_reader(bytes.data, bytes.length);
        assert_int_equal(decider_load(&again.decider, &reader, NULL), 0);
        again.recurrences = life.recurrences;
        for (int run = 0; run < 20; run++)
            check_double(recur(&again, 3.0), recur(&life, 3.0));
        buffer_deinit(&bytes);
        finish(&again);
        finish(&life);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asks_then_gives_way),
        cmocka_unit_test(test_begins_anew_where_it_should_know),
        cmocka_unit_test(test_judges_again),
        cmocka_unit_test(test_counts_failed_tries),
        cmocka_unit_test(test_asks_where_costs_rose),
        cmocka_unit_test(test_asks_what_nobody_knows),
        cmocka_unit_test(test_default_fails),
        cmocka_unit_test(test_luck_is_no_reason),
        cmocka_unit_test(test_saves),
        cmocka_unit_test(test_converts_limits),
        cmocka_unit_test(test_tripled_costs),
        cmocka_unit_test(test_begins_anew),
        cmocka_unit_test(test_says_that_the_default_fails),
        cmocka_unit_test(test_decider_saves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
