/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that end by themselves before their target, as the policy `bayes` sees them. */
#include "bayes_world.h"

/* A trial whose program ended by itself. */
static void end_early(struct life *life, const struct world *world, size_t batch, double epochs)
{
    const struct fly_trial ended = {.trial = life->decider.trials - 1,
                                    .batch = batch,
                                    .limit_w = 200,
                                    .outcome = TRIAL_STOPPED,
                                    .by_itself = true,
                                    .epochs = epochs,
                                    .energy_j = epochs * epoch_energy_j(world, batch),
                                    .time_s = epochs * world->epoch_s[batch]};

    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

/*
 * Programs that end by themselves: the best known batch size keeps its place and its bound, and where nothing
 * has reached its target yet others get their turn.
 */
static void test_early_ends(void **state)
{
    struct proposal proposal;
    struct life life;
    bool others = false;
    uint32_t before;

    (void)state;
    begin(&life, 0.0);
    for (size_t i = 0; i < 20; i++)
        recur(&life, &larger_is_better, NULL, NULL);
    before = cap(&life, &larger_is_better, 3);
    for (size_t i = 0; i < 5; i++) {
        propose(&life, 1, &proposal);
        assert_int_equal(proposal.batch, 3);
        end_early(&life, &larger_is_better, 3, 15);
    }
    assert_true(cap(&life, &larger_is_better, 3) >= before && cap(&life, &larger_is_better, 3) < 2 * before);
    finish(&life);

    begin(&life, 0.0);
    for (size_t i = 0; i < 4; i++) {
        propose(&life, 0, &proposal);
        others |= proposal.batch != DEFAULT;
        end_early(&life, &larger_is_better, proposal.batch, 5);
    }
    assert_true(others);
    finish(&life);
}

/* A batch size whose program always ends by itself before its target is given up like one that fails. */
static void test_early_ends_again_and_again(void **state)
{
    uint32_t tries[N] = {0};
    struct proposal proposal;
    struct life life;

    (void)state;
    begin(&life, 0.0);
    for (size_t i = 0; i < 20; i++) {
        tell(&life, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
        for (uint32_t number = 0; number == 0 || proposal.batch != DEFAULT; number++) {
            propose(&life, number, &proposal);
            if (decider_wants_profile(&life.decider, &proposal))
                profile(&life, &larger_is_better, proposal.batch);
            tries[proposal.batch]++;
            if (proposal.batch == DEFAULT)
                end(&life, &larger_is_better, DEFAULT, 20, true);
            else
                end_early(&life, &larger_is_better, proposal.batch, 2);
        }
        life.recurrences++;
    }
    for (size_t i = 0; i < N; i++)
        if (i != DEFAULT && tries[i] > 4)
            fail_msg("batch size %zu was tried %u times", i, tries[i]);
    finish(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_early_ends),
                                       cmocka_unit_test(test_early_ends_again_and_again)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
