/* SPDX-License-Identifier: Apache-2.0 */
/* The guard around the policies, in small worlds whose costs change. */
#include <math.h>

#include "test.h"

#include "policy/decider.h"

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
    struct fly_trial ended = {.recurrence = life->recurrences, .try_number = try_number, .limit_w = 200};
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
        cmocka_unit_test(test_tripled_costs),
        cmocka_unit_test(test_begins_anew),
        cmocka_unit_test(test_says_that_the_default_fails),
        cmocka_unit_test(test_decider_saves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
